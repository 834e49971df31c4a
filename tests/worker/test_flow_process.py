"""The process that starts a workflow: its errors reach the parent."""

import subprocess
import sys
from concurrent.futures import Future
from queue import SimpleQueue

import msgspec
import pytest

from detent.core.run.run_event import End
from detent.errors import Conflict, DetentError, StoreFailed
from detent.worker.address import Address
from detent.worker.client import run_on
from detent.worker.flow_process import FlowProcess, Wanted
from tests.support.values import row

#: A port without a server.
NOWHERE = Address("127.0.0.1", 1, "default")
WANTED = Wanted(name="n", id="i", queue="q", given=msgspec.Raw(b"{}"), queues=("q",))


def test_the_reason_why_it_cannot_start_a_workflow_reaches_the_parent():
    with (
        FlowProcess(NOWHERE) as flow,
        pytest.raises(DetentError, match=r"cannot be reached|needs temporalio") as refusal,
    ):
        flow.start(WANTED)

    assert refusal.value.way_out


def test_a_process_that_is_killed_is_an_error():
    with FlowProcess(NOWHERE) as flow:
        flow._child.kill()
        with pytest.raises(StoreFailed, match="ended without an answer"):
            flow.start(WANTED)
        with pytest.raises(StoreFailed, match="ended without an answer"):
            flow.result.result(60.0)


def test_a_log_that_a_library_writes_is_no_message():
    code = (
        "import os; from detent.worker.flow_child import _messages; from detent.worker.flow_process import Away;"
        "say = _messages(); os.write(1, b'a log'); say(Away())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert (ran.stdout, ran.stderr) == ('{"type":"Away"}\n', "a log")


class _Lost(FlowProcess):
    """A flow whose workflow Temporal has lost; without a process."""

    def __init__(self):
        self.address, self.result, self.news = NOWHERE, Future(), SimpleQueue()
        self.result.set_exception(Conflict("Temporal does not know the workflow any more"))

    def start(self, wanted):
        return "run"


def test_a_session_that_ended_counts_more_than_a_workflow_that_is_lost(project):
    handle = project.start(row("a"), "work")
    handle.cancel("not needed")

    assert run_on(project, handle, _Lost(), wait=False) is End.CANCELLED


def test_a_workflow_that_is_lost_before_its_session_ended_is_an_error(project):
    with pytest.raises(Conflict, match="does not know the workflow"):
        run_on(project, project.start(row("a"), "work"), _Lost(), wait=False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            'Failed: tonic(ConnectError("dns error", Custom { error: "failed to lookup: not known" }))',
            "failed to lookup: not known",
        ),
        ('Status { code: 14, message: "outer", source: Os { message: "Connection refused" } }', "Connection refused"),
        ("timed out", "timed out"),
    ],
)
def test_the_reason_of_a_library_is_shown_without_its_structures(text, reason):
    pytest.importorskip("temporalio")
    from detent.worker.temporal import _reason

    assert _reason(RuntimeError(text)) == reason


def test_the_parent_does_not_load_what_the_process_loads():
    code = (
        "import sys, detent.worker.client; print([name for name in sys.modules if name in ('temporalio', 'asyncio')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
