"""The words of the field: no private word of the table below is the name of a module, class, function or attribute."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "detent"
#: Wrong wherever they are defined or used, and the better word.
PRIVATE = {
    "Desk": "RunContext",
    "desk": "run_context",
    "Rooms": "Workspaces",
    "Came": "JobOutcome",
    "hands": "slots",
    "course": "policy",
    "Due": "Runnable",
    "take_over": "recover",
    "runner_note": "run_lease",
    "Holder": "RunLease",
    "being_run": "live_leases",
    "Behind": "WriteBehind",
    "_Bells": "_Timers",
    "hurries": "urgent",
    "take_back": "cancel",
    "Keeper": "Projector",
    "keeper": "projector",
    "Replica": "SessionJournal",
    "replica": "journal",
    "Gated": "session.gates",
    "Returnable": "session.checkpoints",
    "SessionPart": "session.gates",
    "Bound": "AgentBinding",
    "works_for": "AgentBinding",
    "Switching": "Sessions",
    "switching": "sessions",
    "without_secrets": "redact_command",
    "Scene": "GuardInput",
    "once": "lazy",
    "Stretch": "Chunk",
    "Picture": "RunView",
    "Land": "RecordAgentEnded",
    "landed": "record_agent_ended",
    "Paper": "Canvas",
    "paper": "canvas",
    "rails": "graph_lanes",
    "weighed": "fit",
    "complain": "print_error",
    "_confess": "_report_bug",
}
#: Wrong in one meaning only: the place, the word, the better one.
IN_PLACE = (
    (r"run/", "Work", "Job"),
    (r"run/", "Target", "JobClaim"),
    (r"run/", "Ended", "JobResult"),
    (r"run/", "due", "runnable"),
    (r"core/run/", "Work", "JobView"),
    (r"core/run/", "after", "fold"),
    (r"run/people|run/scheduler", "carry_out", "apply_answer"),
    (r"engine/run_lease|run/lease", "noted", "read_lease"),
    (r"engine/run_lease|run/lease", "holder", "live_lease"),
    (r"engine/projections/write_behind", "ring", "fire"),
    (r"engine/agents/", "bound", "AgentBinding"),
    (r"engine/gates", "Checks", "GateChecks"),
    (r"engine/gates", "Manifest", "FileDigests"),
    (r"core/session/commands|engine/", "Launch", "RecordAgentStarted"),
    (r"core/gate|config/", "Tests", "TestsGate"),
    (r"core/gate|config/", "Command", "CommandGate"),
    (r"core/checkpoint/", "Kind", "CheckpointKind"),
    (r"cli/", "meant", "resolve_run"),
)
MODULES = frozenset(
    (
        "aside",
        "behind",
        "bound",
        "course",
        "desk",
        "ended",
        "intent",
        "keeper",
        "launcher",
        "needs",
        "once",
        "opening",
        "paper",
        "rails",
        "replica",
        "rooms",
        "runner_note",
        "standing",
        "switching",
        "take_over",
        "weighed",
        "without_secrets",
    )
)
#: They hide what a variable holds.
VAGUE = frozenset({"found", "told", "said", "one"})
#: A documented attribute and JSON key of run events.
PUBLIC = frozenset({("core/run/run_event.py", "said")})


def identifiers(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Each identifier, and whether it names a variable."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, True
            case ast.Name(id=name, ctx=context):
                yield name, isinstance(context, ast.Store)
            case ast.arg(arg=name) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, True
            case ast.ExceptHandler(name=str(name)):
                yield name, True
            case ast.Attribute(attr=name, ctx=context):
                yield name, isinstance(context, ast.Store)
            case ast.alias(name=name, asname=asname):
                yield from ((part, asname is not None) for part in (asname or name).split("."))


def problems(path: str, text: str) -> set[str]:
    wrong = {f"{path} is named {Path(path).stem}"} if Path(path).stem in MODULES else set()
    for name, is_variable in identifiers(ast.parse(text)):
        better = PRIVATE.get(name) or next(
            (word for place, private, word in IN_PLACE if private == name and re.match(place, path)), None
        )
        if better:
            wrong.add(f"{path}: {name}, better {better}")
        if is_variable and name in VAGUE and (path, name) not in PUBLIC:
            wrong.add(f"{path}: {name}, better the noun that it holds")
    return wrong


def test_the_source_has_no_private_words():
    texts = {str(path.relative_to(SOURCE)): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}

    assert sorted(problem for path, text in texts.items() for problem in problems(path, text)) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("run/desk.py", ""),
        ("run/x.py", "class Work: ..."),
        ("engine/x.py", "class Replica: ..."),
        ("engine/x.py", "self.keeper.publish()"),
        ("core/x.py", "found = 1"),
        ("core/x.py", "def told(): ..."),
        ("core/x.py", "lambda one: 1"),
        ("core/x.py", "for said in (): ..."),
        ("cli/x.py", "from detent.x import meant"),
    ],
)
def test_a_private_word_is_noticed(path, text):
    assert problems(path, text)


@pytest.mark.parametrize("text", ["'found'", "x = {'told': 1}", "class Worker: ...", "x.one"])
def test_prose_and_keys_are_exempt(text):
    assert not problems("core/x.py", text)


#: `a|b` in a command: a shell would make a pipe of it.
CHOICE = re.compile(r"detent [a-z-]+(?: [a-z-]+)*\|[a-z]")


def untypable(tree: ast.AST) -> list[str]:
    """Texts with a command that nobody can type."""
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [text for text in texts if CHOICE.search(text)]


def test_a_command_that_is_shown_can_be_typed():
    found = {path.name: untypable(ast.parse(path.read_text())) for path in SOURCE.rglob("*.py")}

    assert {name: texts for name, texts in found.items() if texts} == {}


def test_a_command_with_a_choice_in_it_is_noticed():
    assert untypable(ast.parse("a = 'detent resolve retry|skip'; b = f'detent resolve skip {a}'")) == [
        "detent resolve retry|skip"
    ]


#: A docstring begins with its subject or its verb, so that it can be skimmed and searched for.
HIDDEN_SUBJECT = re.compile(r"(What|Where|Who|Whoever|How|Those|That)\b")


def _hidden_subjects(text: str) -> list[str]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = (ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, documented))
    return [docstring for docstring in docstrings if docstring and HIDDEN_SUBJECT.match(docstring)]


def test_a_docstring_begins_with_its_subject_or_its_verb():
    assert [
        (str(path), docstring) for path in SOURCE.rglob("*.py") for docstring in _hidden_subjects(path.read_text())
    ] == []


def test_a_docstring_without_a_subject_is_noticed():
    assert _hidden_subjects('def f():\n    """What is due."""\n') == ["What is due."]
