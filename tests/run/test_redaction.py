"""Texts of a session are redacted at two boundaries, the journal and the feed, and each once at each of them."""

import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import get_args

import pytest

import detent
from detent.core import redact
from detent.core.limits import MAX_SAID, MAX_TOOL_INPUT
from detent.core.run.agent_event import Failure, Said, ToolUsed
from detent.core.run.run_event import AgentDid, End, PhaseEnded, RunEvent
from detent.core.session.commands import Command, Import, Start
from detent.core.session.events import Event
from detent.engine import redact_command
from detent.run import feed
from tests.support.filled import texts, variants
from tests.support.scripted_run import Cast, broken, done, scenes

SECRET = "ghp_" + "a1B2" * 9
BOUNDARIES = {
    "engine/redact_command.py": "journal",
    "run/feed.py": "feed",
    # Errors of git and of storage libraries repeat the URL of the shared place, with its password.
    "objects/git_transport.py": "travel",
    "objects/url_transport.py": "travel",
}
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


KEY = ("-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", "MIIEpAIB" * 8, "AAKCAQEA" * 8, "c29tZQ==")
END = "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize("lines", [(*KEY, END, "after"), (*KEY, f"{END} after"), (*KEY, "the key was cut off: after")])
def test_a_private_key_that_comes_line_by_line_does_not_reach_the_feed(scene, lines):
    here = scene('["a"]')

    here.run(Cast(lambda turn, stopping: (*(Said(text=line) for line in ("before", *lines)), done("done"))))

    shown = [event.did.text for event in here.heard(AgentDid) if isinstance(event.did, Said)]
    assert shown[0] == "before"
    assert shown[-1].endswith("after")
    assert not any(part in text for text in shown for part in ("MIIE", "AAKC", "c29t"))
    for path in here.root.rglob("*"):
        assert not path.is_file() or b"MIIEpAIB" not in path.read_bytes(), path


def test_base64_that_is_no_key_reaches_the_feed(scene):
    here = scene('["a"]')

    here.run(Cast(lambda turn, stopping: (Said(text="MIIEpAIB" * 8), done("done"))))

    assert [event.did.text for event in here.heard(AgentDid) if isinstance(event.did, Said)] == ["MIIEpAIB" * 8]


#: Fields that hold an id, a key or a name in every record.
NAMES = {"agent", "agent_id", "gate", "id", "phase", "session", "task"}
#: Other texts that are recorded as they come, by the reason for it.
HARMLESS = {
    "names and choices from a fixed list": """
        Approve.identity Approve.stands_for Program.name
        Begin.launch Escalate.kind PersonNeeded.about PersonNeeded.where PhaseEnded.status PhasesImported.source
        ImportedPhase.status Redo.launch Resolve.action Review.decision RunStarted.run SetComplexity.level Skip.phases
        Skip.size Start.size Started.conversation Started.model Started.version StepRan.step
        TaskEnded.status TurnStarted.role Worker.model Worker.version
        PhasesImported.phases RunChoices.agents RunChoices.isolation RunChoices.into
        TailSetAside.kept TailSetAside.reason
    """,
    "digests and commits": """
        Complete.merged_commit Finish.merged_commit KnownTests.names Program.digest ProtectedRun.names Receipt.inputs
        Receipt.names Rollback.archive Rollback.undoes Start.protected Tree.digest Tree.source
        Options.settings RecordSettings.digest TailSetAside.digest
    """,
    "paths, hosts and branches": """
        Receipt.account Receipt.host Reviewer.client Reviewer.role
        Claim.host Claim.owner Fail.artifacts Finish.artifacts ImportedPhase.artifacts Report.artifacts Rollback.paths
        Start.branch Start.folder Supervised.phases Program.path Toolchain.path Toolchain.homes Toolchain.programs
    """,
    "output that was redacted when it was read": """
        Receipt.error Receipt.signature Receipt.tail Receipt.violated ProtectedRun.error
    """,
    "names of tests and variables": """
        AcceptLoss.names ProtectedRun.failing
        Receipt.failing Receipt.lost Receipt.left_out Receipt.new Receipt.shown Receipt.skipped
    """,
    "ids of tasks": "ChildDraft.depends_on",
    "commands that Detent runs": "SetGateCommand.command RecordBaseline.command",
}
#: Fields with values that the engine reads itself, from the journal, the settings and the project's files.
READ_BY_THE_ENGINE: dict[str, object] = dict.fromkeys(("past", "to", "workflow", "tree", "before", "after"))


@pytest.mark.parametrize(
    ("record", "boundary"),
    [
        *((record, redact_command.redact_command) for record in get_args(Command)),
        (Start, redact_command.redact_start),
        (Import, redact_command.redact_import),
        *((record, feed.redact_event) for record in get_args(RunEvent)),
    ],
    ids=lambda value: value.__name__,
)
def test_a_text_is_redacted_or_declared_harmless(record, boundary):
    """Every text of the record is a secret. The fields that still hold it are those that are declared above."""
    harmless = {field for fields in HARMLESS.values() for field in fields.split()}
    values = variants(record, SECRET, instead=READ_BY_THE_ENGINE)

    leaked = {field for value in values for field, text in texts(boundary(value)) if SECRET in text}

    assert {field for field in leaked if field.split(".")[1] not in NAMES} <= harmless


def test_every_text_of_an_event_is_one_of_a_command_or_declared_harmless():
    """`decide` makes events of commands. A text that no command has under this name needs a reason of its own."""
    recorded = {field.split(".")[1] for record in (*get_args(Command), Start, Import) for field in _fields(record)}
    harmless = """
        CheckpointTaken.parent SettingsChanged.working RolledBack.safety RolledBack.tasks VoteCast.approver
    """

    events = {field for event in get_args(Event) for field in _fields(event)}
    # Past states of a phase consist of earlier events.
    events = {field for field in events if field.split(".")[0] not in ("PhaseState", "GateState", "Vote", "Delegated")}

    assert {field for field in events if field.split(".")[1] not in recorded} == set(harmless.split())


def _fields(record):
    """The fields of the record, and of the records in it, that hold text."""
    values = variants(record, SECRET, instead=READ_BY_THE_ENGINE)
    return {field for value in values for field, text in texts(value) if text == SECRET}


def test_only_these_boundaries_redact():
    package = Path(detent.__file__).parent
    users = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"detent\.core(\.redact import| import redact)", path.read_text()) and path.parent.name != "redact"
    }

    assert users == set(BOUNDARIES)
