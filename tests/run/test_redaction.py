"""Secrets are redacted at two boundaries, the journal and the feed, and each text once at each of them."""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import get_args

import msgspec
import pytest

import detent
from detent.core import redact
from detent.core.limits import MAX_SAID, MAX_TOOL_INPUT
from detent.core.run.agent_event import AgentEvent, Failure, Said, ToolUsed
from detent.core.run.run_event import AgentDid, End, PhaseEnded, RunEvent
from detent.core.session.commands import Command
from detent.engine import redact_command
from detent.run import feed
from tests.support.scripted_run import Cast, broken, done, scenes

SECRET = "ghp_" + "a1B2" * 9
BOUNDARIES = {"engine/redact_command.py": "journal", "run/feed.py": "feed"}
GATED = '[{key="a", gates=[{kind="command", command="echo output of the check"}]}]'


@pytest.fixture
def scene(tmp_path):
    with scenes(tmp_path) as make:
        yield make


@pytest.fixture
def trace(monkeypatch):
    """Counts each text that is redacted, by boundary."""
    calls, real = Counter(), redact.redact

    def traced(text):
        calls[_boundary(), text] += 1
        return real(text)

    monkeypatch.setattr(redact, "redact", traced)
    return calls


def _boundary():
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        for file, boundary in BOUNDARIES.items():
            if frame.f_code.co_filename.endswith(file):
                return boundary
        frame = frame.f_back
    return "elsewhere"


def worked(turn, stopping):
    yield Said(text="looking around")
    yield ToolUsed(tool="Bash", input="ls the directory")
    yield done("the summary", context="the context", deliverables=("the deliverable",))


@pytest.mark.parametrize("phases", ['["a"]', GATED], ids=["without gates", "with a gate"])
def test_a_phase_of_a_run_redacts_each_text_once_per_boundary(scene, trace, phases):
    here = scene(phases)
    trace.clear()

    assert here.run(Cast(worked)) is End.COMPLETED

    assert {key: count for key, count in trace.items() if count > 1} == {}
    assert {boundary for boundary, _ in trace} == {"journal", "feed"}
    said = {text for boundary, text in trace if boundary == "feed"}
    assert {"looking around", "ls the directory", "the summary"} <= said
    recorded = {text for boundary, text in trace if boundary == "journal"}
    assert {"ls the directory", "the summary", "the context", "the deliverable"} <= recorded
    assert ("output of the check\n" in recorded) is (phases == GATED)


def test_a_secret_is_redacted_before_its_text_is_cut(scene):
    here = scene('["a"]')
    text = "x" * (MAX_SAID - 10) + f" {SECRET}"
    used = ToolUsed(tool="Bash", input="y" * (MAX_TOOL_INPUT - 10) + f" {SECRET}")

    here.run(Cast(lambda turn, stopping: (Said(text=text), used, broken(f"denied {SECRET}", Failure.REFUSED))))
    here.project.flush()

    shown, tool = (event.did for event in here.heard(AgentDid))
    assert (len(shown.text), len(tool.input)) == (MAX_SAID, MAX_TOOL_INPUT)
    assert here.heard(PhaseEnded)[0].said == "denied [redacted:github-token]"
    assert SECRET[:9] not in repr(here.told)
    for path in here.root.rglob("*"):
        assert not path.is_file() or SECRET[:9].encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("records", "prose", "names"),
    [
        (
            RunEvent | AgentEvent,
            feed._PROSE,
            "about agent conversation gate model phase role run session status step task",
        ),
        (
            Command,
            redact_command._PROSE,
            """action agent agent_id archive artifacts choice decision digest gate id kind launch level merged_commit
            paths phase phases protected size task undoes who""",
        ),
    ],
    ids=["events", "commands"],
)
def test_every_text_of_a_record_is_redacted_or_a_name(records, prose, names):
    fields = {
        field.name for record in get_args(records) for field in msgspec.structs.fields(record) if _has_text(field)
    }

    assert fields - set(prose) == set(names.split())


def _has_text(field):
    return field.type in (str, str | None, tuple[str, ...])


def test_only_the_two_boundaries_redact():
    package = Path(detent.__file__).parent
    users = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "detent.core.redact import" in path.read_text() and path.parent.name != "redact"
    }

    assert users == set(BOUNDARIES)
