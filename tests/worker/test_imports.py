"""Local paths import neither the client of Temporal nor that of Postgres, and no transport of files."""

import subprocess
import sys

import pytest

from detent.config.settings import parse_settings
from detent.worker.queues import job_queue, label_sets, needed_labels, phase_labels
from tests.support.project import build_project
from tests.support.values import row

HEAVY = ("temporalio", "psycopg", "fsspec", "google.protobuf")


@pytest.mark.parametrize("arguments", [["status"], ["start", "feature", "t"], ["run", "--check"], ["worker", "--help"]])
def test_a_local_command_loads_nothing_of_other_machines(tmp_path, arguments):
    build_project(tmp_path)
    code = (
        "import sys; from detent.cli.main import run\n"
        "run(sys.argv[1:])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.stderr.splitlines()[-1] == "[]"


LABELS = parse_settings('[run.labels]\ntrain = ["gpu", "linux"]\nreviewer = ["linux"]\n', "t")


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ((), [()]),
        (("linux",), [(), ("linux",)]),
        (("big", "gpu", "linux"), [(), ("gpu", "linux"), ("linux",)]),
        (None, [(), ("gpu", "linux"), ("linux",)]),
    ],
)
def test_a_worker_takes_the_work_whose_labels_it_has(own, expected):
    assert label_sets(LABELS, own) == expected


def test_a_phase_waits_for_its_labels_until_an_agent_works_on_it(project):
    settings = parse_settings('[run.labels]\na = ["gpu"]\nb = ["fpga"]\n', "t")
    handle = project.start(row("a", "b"), "work")
    begun = handle.state
    handle.fail("the machine is gone")
    failed = handle.state
    handle.redo("a", agent="sh", launch="run-f-1-1-1/sh")
    at_work = handle.state

    assert [needed_labels(settings, state) for state in (begun, failed, at_work)] == [{"a": ("gpu",)}] * 2 + [{}]


def test_labels_of_a_phase_come_before_those_of_its_role():
    assert phase_labels(LABELS, "train", "reviewer") == ("gpu", "linux")
    assert phase_labels(LABELS, "check", "reviewer") == ("linux",)
    assert phase_labels(LABELS, "check", "other") == ()
    assert job_queue("p", ("b", "a")) == job_queue("p", ("a", "b")) != job_queue("p", ())
