"""What only a person decides is refused in the shell of an agent, whichever verb it is, and nothing has changed."""

import os
import shutil

import pytest

from detent.clients import installing
from detent.core.gate.evidence import Receipt, Result
from detent.core.guard.rules import PEOPLE_ONLY
from detent.core.testrun.suite import Outcome
from detent.engine.bundles.exporting import export_session
from detent.engine.policy import Decision
from detent.engine.project import open_project
from tests.support.keys import list_approvers, make_ssh_key
from tests.support.project import build_project

#: The first phase is reviewed, the second waits for an answer, an approval and a decision, and it has asked something.
SETTINGS = """
[supervised]
phases = ["a"]
[workflows.w]
phases = ["a", {key = "b", gates = [
    {kind = "elicitation", final = ["go"]}, {kind = "approval"}, {kind = "tests", command = "pytest"}
]}, "c"]
"""
LOST = Receipt(result=Result.PASSED, lost={"t.py::test_old": Outcome.MISSING}, lost_count=1)
SHELLS = ({"CLAUDECODE": "1"}, {"DETENT_PHASE": "b"}, {"DETENT_RUN": "run-1"})
#: For each decision a command line that carries it out.
DECISIONS = {
    "approve": ("approve", "b", "--gate", "approval", "-m", "fine"),
    "resolve": ("resolve", "retry"),
    "review": ("review", "continue"),
    "release": ("release", "b", "--reason", "it is wrong"),
    "skip": ("skip", "c", "--reason", "not needed"),
    "cancel": ("cancel", "--reason", "no more"),
    "import": ("import", "old.json"),
    "uninstall": ("uninstall",),
    "forget": ("forget", "--yes"),
    "doctor --restore": ("doctor", "--restore", "--yes"),
    "reply": ("reply", "blue"),
    "rollback": ("rollback", "PRE_b_v1", "--yes"),
    "undo": ("undo", "--yes"),
    "complete --force": ("complete", "--force"),
    "gate answer": ("gate", "answer", "--choice", "go", "--phase", "b"),
    "gate accept": ("gate", "accept", "tests", "t.py::test_old", "-m", "it is gone"),
    "approver add": ("approver", "add", "ada", "--public-key", "ada.pub"),
    "approver remove": ("approver", "remove", "bob", "--sign", "--key", "ada"),
    "gate set": ("gate", "set", "tests", "--command", "make test", "-m", "it needs a build"),
}
#: The same verbs where they only show something, and what they show.
LOOKING = {
    "reply": (("reply",), "Which colour?"),
    "rollback": (("rollback", "PRE_b_v1", "--dry-run"), "PRE_b_v1"),
    "undo": (("undo", "--dry-run"), "notes.md"),
}


def at_review(handle):
    handle.finish(phase="a", summary="done")


def at_gates(handle):
    at_review(handle)
    handle.review("continue")
    handle.begin("b")
    handle.ask("Which colour?", phase="b")
    handle.gates.record("tests", phase="b", receipt=LOST)
    handle.escalate("stuck", "b", "it does not get on")


def rolled_back(handle, root):
    at_gates(handle)
    (root / "notes.md").write_text("some\n")
    handle.checkpoints.rollback("PRE_b_v1")


@pytest.fixture
def place(detent):
    """Makes the project in which the decision can be made."""

    def make(decision):
        root = detent.directory
        build_project(root, SETTINGS)
        (root / "notes.md").write_text("none\n")
        installing.apply(installing.plan(os.path.realpath(root), ("claude-code",)))
        with open_project(root, actor="ada") as project:
            handle = project.start("w", "Paint it")
            match decision:
                case "review":
                    at_review(handle)
                case "undo":
                    rolled_back(handle, root)
                case _:
                    at_gates(handle)
        key = make_ssh_key(root / "ada")
        if decision == "approver remove":
            list_approvers(root, ada=key, bob=make_ssh_key(root.parent / f"{root.name}-bob"))
        if decision == "import":
            shutil.copy(detent.state / "state.json", root / "old.json")
        if decision == "doctor --restore":
            with (detent.state / handle.id / "journal.jsonl").open("ab") as file:
                file.write(b"oops\n")
        return detent

    return make


def files(tool):
    """All there is, with the state; what locks it holds nothing."""
    found = [path for path in tool.directory.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path): path.read_bytes() for path in found}


def test_every_decision_of_a_person_is_tried_here():
    assert set(DECISIONS) == set(PEOPLE_ONLY)


#: Decisions that the engine refuses to an agent, and the hook does not look at.
ENGINE_ONLY = {
    *(Decision.PAUSE, Decision.SWITCH, Decision.REPLACE, Decision.QUORUM, Decision.REPORT, Decision.REOPEN),
    *(Decision.ARCHIVE, Decision.FIX, Decision.COLLECT, Decision.FORGET, Decision.INTO),
    *(Decision.LIMITS, Decision.STORE),
}


def test_what_the_policy_leaves_to_people_is_also_denied_by_the_hook():
    assert set(map(str, Decision)) - {Decision.STEP, Decision.BASELINE} - ENGINE_ONLY <= set(PEOPLE_ONLY)


@pytest.mark.parametrize("decision", PEOPLE_ONLY)
def test_a_decision_is_refused_in_the_shell_of_an_agent_and_is_a_persons_to_take(place, decision):
    tool = place(decision)
    before = files(tool)

    for shell in SHELLS:
        code, message, way_out = tool(*DECISIONS[decision], **shell).error()
        assert (code, way_out.partition(",")[0]) == (1, "type it in a terminal of your own")
        assert f"is a person's decision, and this is an agent's shell ({next(iter(shell))} is set)" in message
        assert files(tool) == before

    tool(*DECISIONS[decision]).ok()
    assert files(tool) != before


def test_a_bundle_is_imported_by_a_person(place):
    tool = place("import")
    elsewhere = tool.directory.parent / "elsewhere"
    build_project(elsewhere, SETTINGS)
    with open_project(elsewhere, actor="ada") as project:
        export_session(project, project.start("w", "Another one").id, elsewhere / "other.tar")
    before = files(tool)

    for shell in SHELLS:
        _, message, _ = tool("import", str(elsewhere / "other.tar"), **shell).error()
        assert "import is a person's decision" in message
        assert files(tool) == before

    tool("import", str(elsewhere / "other.tar")).ok()


@pytest.mark.parametrize("before", [("-C", "."), ("--json",)])
def test_options_before_the_verb_change_nothing_about_whose_decision_it_is(place, before):
    tool = place("skip")
    state = files(tool)

    assert tool(*before, *DECISIONS["gate answer"], DETENT_PHASE="b").code == 1
    assert tool(*before, *DECISIONS["skip"], DETENT_PHASE="b").code == 1
    assert files(tool) == state


def test_a_refusal_is_said_in_json_where_that_is_asked_for(place):
    ran = place("skip")("skip", "c", "--reason", "x", "--json", DETENT_RUN="run-1")

    assert ran.code == 1
    assert ran.json()["error"]["kind"] == "refused"


@pytest.mark.parametrize("decision", LOOKING)
def test_an_agent_may_look_at_what_it_may_not_decide(place, decision):
    tool = place(decision)
    before = files(tool)
    words, shown = LOOKING[decision]

    for shell in SHELLS:
        assert shown in tool(*words, **shell).ok().out
        assert files(tool) == before


def test_completing_without_force_is_nobodys_decision(place):
    """It only says that all is done, which is refused while it is not."""
    code, message, _ = place("complete --force")("complete", DETENT_PHASE="b").error()

    assert code == 1
    assert "person" not in message


def test_importing_tasks_is_not_importing_a_session(place):
    tool = place("skip")
    (tool.directory / "PLAN.md").write_text("# Plan\n\n- [ ] One\n")

    tool("task", "import", "--from", "markdown", "PLAN.md", DETENT_PHASE="b").ok()
