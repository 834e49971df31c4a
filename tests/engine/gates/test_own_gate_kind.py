"""A kind in a module of its own, registered with one line, works everywhere without any other change."""

import json

import pytest

from detent.cli.main import run as detent
from detent.core.gate.registry import KINDS, register
from detent.core.guard import state_reader
from detent.core.session.session import decode_session, encode_session
from detent.engine.project import init_project, open_project
from detent.errors import Corrupt, Invalid
from detent.hooks.answer import main as hook
from tests.support.project import build_project
from tests.support.words_gate import WordsGate

GATE = '{ kind = "words", file = "plan.md", least = 3 }'
#: In its first turn the agent writes too little.
SETTINGS = f"""
[agents.script]
adapter = "command"
command = "cat > prompt; echo more >> plan.md; ! grep -q 'words is FAIL: 1 words' prompt || echo and more >> plan.md"
[run]
agent = "script"
workflow = "w"
[workflows.w]
phases = [{{ key = "plan", agent = "writer", gates = [{GATE}] }}, "code"]
"""
SHORT, ENOUGH = "one two", "one two three"


@pytest.fixture(autouse=True)
def _registered():
    register(WordsGate)
    yield
    KINDS.pop("words", None)


@pytest.fixture
def root(tmp_path, monkeypatch, nobody):
    build_project(tmp_path, SETTINGS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def begun(root, capsys):
    """The phase is in progress, and its file is too short."""
    (root / "plan.md").write_text(SHORT)
    assert detent(["start", "w", "Do it"]) == 0
    capsys.readouterr()
    return root


def judged(capsys):
    capsys.readouterr()
    assert detent(["gates", "--json"]) == 0
    [judgement] = json.loads(capsys.readouterr().out)["gates"]["plan"]
    return judgement


def document(root):
    return json.loads((root / ".workflow/state.json").read_text())


def test_it_is_run_and_judged_by_the_verbs(begun, capsys):
    assert judged(capsys)["verdict"] == "PENDING"

    assert detent(["gate", "run", "words"]) == 3
    assert "FAIL words: 2 words, and 3 are needed" in capsys.readouterr().out
    assert detent(["finish", "-m", "planned"]) != 0
    assert "2 words, and 3 are needed" in capsys.readouterr().err
    assert detent(["why"]) == 0
    assert "gate words is FAIL: 2 words, and 3 are needed" in " ".join(capsys.readouterr().out.split())

    (begun / "plan.md").write_text(ENOUGH)
    assert detent(["gate", "run", "words"]) == 0
    assert judged(capsys)["verdict"] == "PASS"
    (begun / "plan.md").write_text(f"{ENOUGH} four")
    assert judged(capsys)["verdict"] == "STALE"
    assert detent(["gate", "run", "words"]) == 0
    assert detent(["finish", "-m", "planned"]) == 0


def test_the_hook_keeps_the_agent_at_it(begun):
    payload = {"hook_event_name": "Stop", "session_id": "s", "cwd": str(begun)}

    answer = json.loads(hook(["claude-code"], json.dumps(payload).encode()))

    assert answer["decision"] == "block"
    assert "words of plan is PENDING: no run yet (detent gate run words)" in answer["reason"]


def test_the_documents_and_the_guard_have_the_verdict_of_the_judge(begun, capsys):
    detent(["gate", "run", "words"])
    detent(["checkpoint", "create", "too short"])
    verdict = judged(capsys)

    [listed] = document(begun)["phases"]["plan"]["gates"]
    assert (listed["kind"], listed["verdict"], listed["reason"]) == ("words", verdict["verdict"], verdict["reason"])
    assert state_reader.closed_gates(document(begun), "plan", lambda path: True) == [
        f"words: FAIL, {verdict['reason']}"
    ]
    notes = [json.loads(path.read_text()) for path in (begun / ".workflow/checkpoints").glob("run-*/*.json")]
    [note] = [entry for entry in notes if entry["metadata"].get("note") == "too short"]
    [result] = note["governance_results"]["quality_gates"]
    assert (result["kind"], result["verdict"]) == ("words", "FAIL")


def test_a_run_gets_to_its_end_by_it(root, capsys):
    assert detent(["run", "Do it"]) == 0

    # The second turn adds words because its prompt names the shortfall; the last word is the one of `code`.
    assert (root / "plan.md").read_text().split() == ["more", "more", "and", "more", "more"]
    with open_project(root) as project:
        [summary] = project.history()
        assert summary["status"] == "completed"


def test_its_prompt_is_its_own_sentence(root):
    with open_project(root) as project:
        handle = project.start("w", "Do it")
        [gate] = handle.state.workflow.by_key["plan"].gates
    assert gate == WordsGate(file="plan.md", least=3)
    assert "plan.md must have 3 words" in gate.requirement("plan", "")


def test_journal_and_snapshot_give_it_back(root):
    with open_project(root) as project:
        project.start("w", "Do it")
    with open_project(root) as project:
        session = project.session().state
    assert decode_session(encode_session(session)).workflow == session.workflow
    assert session.workflow.by_key["plan"].gates == (WordsGate(file="plan.md", least=3),)


# Kinds that are not registered


def test_a_journal_with_an_unknown_kind_is_refused_by_its_name(begun):
    del KINDS["words"]
    (begun / "detent.toml").unlink()

    with open_project(begun) as project, pytest.raises(Corrupt, match="there is no gate kind 'words'"):
        project.session().state  # noqa: B018 - reading it is the test


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        (GATE, "there is no gate kind 'words'; there are tests, regression, changes, constitution"),
        ('{ kind = "tests", command = 1 }', "tests gate: Expected `str | null`, got `int`"),
        ('{ kind = "tests", comand = "x" }', "tests gate: Object contains unknown field `comand`"),
        ("{ }", "there is no gate kind None"),
        ('"tests"', "a gate is a table with a kind"),
    ],
)
def test_settings_name_what_is_wrong_with_a_gate(tmp_path, gate, problem):
    del KINDS["words"]
    init_project(tmp_path)
    (tmp_path / "detent.toml").write_text(f"[phases.plan]\ngates = [{gate}]\n")

    with pytest.raises(Invalid) as refusal, open_project(tmp_path) as project:
        project.start("feature", "Do it")

    assert problem in refusal.value.message
    assert "phases" in refusal.value.message


def test_two_kinds_of_one_name_are_an_error():
    class Other(WordsGate, frozen=True, kw_only=True, tag="words"):
        pass

    with pytest.raises(ValueError, match=r"already registered by tests\.support\.words_gate"):
        register(Other)
