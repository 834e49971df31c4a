"""The rules that the code keeps: layers, purity, names and calls that are not allowed."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from detent.core.gate.registry import KINDS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
#: Imports go down only. A package that is not listed here has no place yet, and that fails too.
LAYERS = {
    "errors": 0,
    "core": 1,
    "store": 2,
    "objects": 2.5,
    "documents": 2.5,  # the document of hybrid workflows is a file of its own
    "render": 2,
    "config": 2,
    "process": 2,
    "engine": 3,
    "doctor": 4,
    "compat": 4,
    # Facts about clients, and nothing of their rooms: builtins only, so that every layer and the hook may read them.
    "clients.dialect": 0.5,
    "clients.registry": 0.6,
    "clients": 4.5,
    "hooks": 5,
    "run": 5,
    "worker": 5.2,
    "cli": 6,
    "web": 5.5,
    "mcp": 5.5,
    "topics": 0,
    "extras": 0,
    "load_msgspec": 0,
    "sha256": 0,
    "__main__": 7,
}
IMPURE = {
    "os",
    "io",
    "time",
    "random",
    "subprocess",
    "socket",
    "pathlib",
    "sqlite3",
    "secrets",
    "threading",
    "_thread",
    "shutil",
}
#: A lock makes a value of a plan whose versions share an index; it reads and writes nothing.
LOCKED = {"detent.core.task.plan": {"_thread"}}
CLOCKS = {"now", "utcnow", "today"}
BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "service", "base", "misc"}
REGISTRIES = ("pypi.org", "pythonhosted.org", "npmjs", "crates.io", "rubygems.org", "conda.io", "anaconda.org")

MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path.read_text()
    for path in sorted(SOURCE.rglob("*.py"))
}


@cache
def trees() -> dict[str, ast.Module]:
    """The modules, parsed once in a process that needs them."""
    return {name: ast.parse(text) for name, text in MODULES.items()}


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package(name: str) -> str | None:
    """`core` of `detent.core.workflow.graph`; none for `detent` itself, which only has the version."""
    parts = name.split(".")
    if parts[0] != "detent" or len(parts) == 1:
        return None
    return next((own for own in (".".join(parts[1:3]),) if own in LAYERS), parts[1])


def layer_problems(name: str, tree: ast.AST) -> list[str]:
    here = package(name)
    if here is None:
        return []
    used = {other for other in map(package, imports(tree)) if other} - {here, "__version__"}
    unknown = [other for other in used if other not in LAYERS]
    return [f"{name}: {other} has no layer" for other in (*unknown, *([here] if here not in LAYERS else []))] + [
        f"{name} imports {other}" for other in sorted(used - set(unknown)) if LAYERS[other] >= LAYERS[here]
    ]


def purity_problems(tree: ast.AST, module: str = "") -> list[str]:
    used = {name.split(".")[0] for name in imports(tree)} & IMPURE - LOCKED.get(module, set())
    clocks = [
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.attr in CLOCKS and node.value.id in ("datetime", "date")
    ]
    calls = [
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("open", "print", "input")
    ]
    return [*sorted(used), *clocks, *calls]


#: Modules that may know the state directory. The hook process reads the local views with a bare interpreter.
AT_THE_STATE_DIRECTORY = {
    "detent.config.place": "says where it is",
    "detent.engine.stores": "the composition root",
    "detent.engine.sandbox": "makes it read-only for what a run starts, and opens no file of it",
    "detent.hooks.answer": "the hook process",
    "detent.hooks.files": "the hook process",
    "detent.hooks.left_out": "the hook process",
    "detent.hooks.notes": "the hook process",
    "detent.hooks.plugin": "the hook process",
    "detent.core.guard.protected": "tells paths of tool calls apart, and opens none",
    "detent.clients.codex.dialect": "asks whether the hook was started in a project, and opens no file of it",
    "detent.clients.installing.files": "names the files that an installation made in the checkout",
}
#: Modules that may know where the worktrees are: directories that git makes on this machine, whatever the store is.
AT_THE_WORKTREES = {
    *("detent.run.worktree", "detent.run.worktree_record", "detent.run.merging"),
    *("detent.engine.sandbox", "detent.worker.ended_trees", "detent.worker.trees"),
}
STORES = {"FileStore", "MemoryStore", "PostgresStore"}
STATE_DIRECTORY = ".workflow"
LOCATION = "a location"


def store_problems(name: str, tree: ast.AST) -> list[str]:
    """Constructing a store outside the composition root, or naming the module of one."""
    if name.startswith("detent.store.") or name == "detent.engine.stores":
        return []
    problems = [
        other
        for other in imports(tree)
        if other.startswith(("detent.store.files", "detent.store.memory", "detent.store.postgres"))
    ]
    return sorted({*problems, *(last_name(node) for node in ast.walk(tree) if last_name(node) in STORES)})


def state_problems(name: str, tree: ast.AST) -> list[str]:
    """Uses of the state directory: `place.state`, a path that is made of it, or one that is made of a location."""
    if name in AT_THE_STATE_DIRECTORY:
        return []
    problems = [other for other in imports(tree) if other == "detent.config.place.STATE"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "state" and "place" in last_name(node.value):
            problems.append(f"{node.lineno}: place.state")
        if isinstance(node, ast.Attribute) and node.attr == "root" and "store" in last_name(node.value):
            problems.append(f"{node.lineno}: store.root")
        if last_name(node) == "worktrees" and name not in AT_THE_WORKTREES and isinstance(node, ast.Attribute):
            problems.append(f"{node.lineno}: worktrees")
        problems += [
            f"{part.lineno}: a path made of {used}"
            for part in parts_of_a_path(node)
            for used in map(state_part, ast.walk(part))
            if used and not (used == LOCATION and isinstance(node, ast.JoinedStr))
        ]
    return problems


def parts_of_a_path(node: ast.AST) -> list[ast.expr]:
    """The parts if the expression joins a path or opens one: `join`, `open`, `Path`, `/`, `+`, an f-string."""
    match node:
        case ast.Call() if last_name(node.func) in {"join", "open", "Path", "listdir", "scandir", "stat", "makedirs"}:
            return node.args
        case ast.BinOp(op=ast.Add() | ast.Div()):
            return [node.left, node.right]
        case ast.JoinedStr():
            return node.values
    return []


def state_part(node: ast.AST) -> str | None:
    match node:
        case ast.Constant(value=str(text)) if " " not in text and STATE_DIRECTORY in text.split("/"):
            return text
        case ast.Attribute(value=ast.Name(id="places" | "place"), attr="STATE"):
            return "STATE"
        case ast.Call() if last_name(node.func) == "location":
            return LOCATION
    return None


def last_name(node: ast.AST) -> str:
    """`c` of `a.b.c` and of `c`; empty for anything else."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def catches_everything(tree: ast.AST) -> list[int]:
    """Lines with a bare `except`, or one of `Exception`; `BaseException` is fine if it is raised again."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        if node.type is None
        or (isinstance(node.type, ast.Name) and node.type.id == "Exception")
        or (
            isinstance(node.type, ast.Name)
            and node.type.id == "BaseException"
            and not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
        )
    ]


def test_there_is_something_to_look_at():
    assert len(MODULES) > 30


def test_imports_go_down_only():
    assert [problem for name, tree in trees().items() for problem in layer_problems(name, tree)] == []


def test_the_core_knows_no_clock_no_files_and_no_chance():
    core = {name: text for name, text in MODULES.items() if name.startswith("detent.core")}

    assert core
    problems = [(name, problem) for name in core for problem in purity_problems(trees()[name], name)]
    assert problems == []


def test_every_module_says_what_it_is_for():
    said = {name: ast.get_docstring(trees()[name]) for name, text in MODULES.items() if text.strip()}

    assert [name for name, docstring in said.items() if not docstring] == []


def test_no_module_is_named_for_nothing_in_particular():
    assert [name for name in MODULES if BANNED_NAMES & set(name.split("."))] == []


#: The guard's reader of documents that Detent did not write: their records have no verdicts, only names of kinds.
KIND_READERS = {"detent.core.guard.state_reader", "detent.core.guard.rules"}


def kind_problems(tree: ast.AST) -> list[str]:
    """Uses of the class of a gate kind, and comparisons with the name of one."""
    classes = {kind.__name__ for kind in KINDS.values()}
    names: set[str] = set()
    compared: list[ast.AST] = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                names.add(name)
            case ast.Compare(left=left, comparators=others) if any(map(_is_kind, (left, *others))):
                compared.append(node)
            case ast.Match(subject=subject) if _is_kind(subject):
                compared.append(node)
    inner = (child for node in compared for child in ast.walk(node) if isinstance(child, ast.Constant))
    return sorted((names & classes) | ({str(constant.value) for constant in inner} & set(KINDS)))


def _is_kind(node: ast.AST) -> bool:
    """`kind`, `gate.kind`, `gate.get("kind")` or `gate["kind"]`."""
    match node:
        case ast.Name(id="kind") | ast.Attribute(attr="kind"):
            return True
        case ast.Call(args=[ast.Constant(value="kind"), *_]) | ast.Subscript(slice=ast.Constant(value="kind")):
            return True
    return False


def test_only_the_gate_package_knows_gate_kinds():
    """Everything else asks a gate, so that a new kind is one module."""
    inside = {name for name in MODULES if name.startswith("detent.core.gate")}
    outside = {name: kind_problems(tree) for name, tree in trees().items() if name not in inside}

    assert inside
    assert {name: problems for name, problems in outside.items() if problems and name not in KIND_READERS} == {}


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("from detent.core.gate.kinds.tests import TestsGate", ["TestsGate"]),
        ("isinstance(gate, kinds.ApprovalGate | ConsensusGate)", ["ApprovalGate", "ConsensusGate"]),
        ('one.kind in ("tests", "command")', ["command", "tests"]),
        ('gate.get("kind") == "artifacts"', ["artifacts"]),
        ('match gate.kind:\n    case "tests":\n        pass', ["tests"]),
        ('entry.kind == "l"', []),
        ("gate.opened_by is Opener.VOTE", []),
    ],
)
def test_gate_kinds_are_found_where_they_are_known(text, problems):
    assert kind_problems(ast.parse(text)) == problems


OUTERMOST = {"detent.cli.main", "detent.hooks.answer", "detent.mcp.server"}


def test_only_the_outermost_boundaries_catch_everything():
    found = {name: catches_everything(tree) for name, tree in trees().items() if name not in OUTERMOST}

    assert {name: lines for name, lines in found.items() if lines} == {}


def test_only_the_composition_root_constructs_a_store():
    problems = {name: store_problems(name, tree) for name, tree in trees().items()}

    assert {name: used for name, used in problems.items() if used} == {}
    assert "FileStore(" in MODULES["detent.engine.stores"]


def test_nothing_above_the_store_builds_a_path_into_the_state_directory():
    problems = {name: state_problems(name, tree) for name, tree in trees().items()}

    assert {name: used for name, used in problems.items() if used} == {}
    assert MODULES.keys() >= AT_THE_STATE_DIRECTORY.keys() | AT_THE_WORKTREES


def test_no_package_registry_is_named():
    assert [(name, host) for name, text in MODULES.items() for host in REGISTRIES if host in text] == []


CLIENT_NAMES = re.compile("claude|codex|gemini", re.IGNORECASE)
#: Modules outside of `clients` that may name one, and why.
NAMES_A_CLIENT = {
    "documents/workflow/file.py": "the seed prescribes the path of this document",
}


def client_names(directory: Path) -> dict[str, set[str]]:
    """The clients that files outside of `clients` name, by file; texts that are installed and settings included."""
    files = {path.relative_to(directory).as_posix(): path for path in sorted(directory.rglob("*")) if path.is_file()}
    return {
        name: names
        for name, path in files.items()
        if not name.startswith("clients/") and path.suffix != ".pyc"
        if (names := {each.lower() for each in CLIENT_NAMES.findall(path.read_text())})
    }


def test_only_the_room_of_a_client_names_it():
    assert client_names(SOURCE / "detent").keys() == NAMES_A_CLIENT.keys()


def test_the_name_of_a_client_is_noticed(tmp_path):
    for name in ("clients/codex/adapter.py", "cli/a.py", "config/data/b.toml", "core/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("nothing" if name == "core/c.py" else "in Codex or .claude/settings.json")

    assert client_names(tmp_path) == {name: {"codex", "claude"} for name in ("cli/a.py", "config/data/b.toml")}


#: Modules of the interpreter itself, which cost nothing to import.
BUILTIN = {"_json", "posix", "sys"}


def loaded_at_once(tree: ast.Module) -> list[str]:
    """The imports that run with the module: not those in functions or for types only."""
    return [
        name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in imports(ast.Module([node], []))
    ]


@pytest.mark.parametrize(
    "name", [name for name in MODULES if re.match(r"detent\.clients\.(.*\.)?(dialect|registry)$", name)]
)
def test_the_hook_process_can_load_a_dialect_without_loading_anything_else(name):
    modules = loaded_at_once(ast.parse(MODULES[name]))

    assert [each for each in modules if each.partition(".")[0] not in BUILTIN and "clients.dialect" not in each] == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("detent.core.workflow.graph", "import detent.store.files", "detent.core.workflow.graph imports store"),
        (
            "detent.core.workflow.graph",
            "from detent.engine import project",
            "detent.core.workflow.graph imports engine",
        ),
        ("detent.store.files", "def f():\n    import detent.documents.x", "detent.store.files imports documents"),
        ("detent.engine.project", "from detent import cli", "detent.engine.project imports cli"),
        ("detent.errors", "from detent.core import slug", "detent.errors imports core"),
        ("detent.engine.project", "from detent.clients.codex import dialect", "detent.engine.project imports clients"),
        (
            "detent.core.workflow.graph",
            "from detent.nowhere import x",
            "detent.core.workflow.graph: nowhere has no layer",
        ),
        ("detent.nowhere", "", "detent.nowhere: nowhere has no layer"),
    ],
)
def test_an_import_that_goes_up_is_noticed(name, text, problem):
    assert layer_problems(name, ast.parse(text)) == [problem]


@pytest.mark.parametrize(
    "text",
    ["import time", "from os import path", "import os.path", "datetime.now(UTC)", "date.today()", "open('x')"],
)
def test_impurity_is_noticed(text):
    assert purity_problems(ast.parse(text))


@pytest.mark.parametrize("kind", ["except:", "except Exception:", "except Exception as e:", "except BaseException:"])
def test_catching_everything_is_noticed(kind):
    assert catches_everything(ast.parse(f"try:\n    pass\n{kind}\n    pass"))
    assert not catches_everything(ast.parse("try:\n    pass\nexcept BaseException:\n    raise"))


@pytest.mark.parametrize(
    "text",
    [
        "from detent.store.files import FileStore",
        "from detent.store import memory",
        "import detent.store.files as kept",
        "store = files.FileStore(path)",
        "make = MemoryStore",
    ],
)
def test_a_store_that_is_made_elsewhere_is_noticed(text):
    assert store_problems("detent.run.workspaces", ast.parse(text))
    assert not store_problems("detent.engine.stores", ast.parse(text))
    assert not store_problems("detent.run.workspaces", ast.parse("from detent.store.port import Store"))


@pytest.mark.parametrize(
    "text",
    [
        "os.path.join(project.place.state, name)",
        "path = self._place.state",
        "os.listdir(place.state)",
        "os.path.join(project.store.root, name)",
        "os.path.join(root, '.workflow', name)",
        "root + '/.workflow/state.json'",
        "f'{root}/.workflow/{name}'",
        "Path(root) / '.workflow'",
        "open(root + '/.workflow')",
        "os.path.join(root, places.STATE)",
        "from detent.config.place import STATE",
        "open(project.store.location(name))",
        "os.path.join(store.location(''), name)",
        "places.worktrees(root)",
    ],
)
def test_a_path_into_the_state_directory_is_noticed(text):
    assert state_problems("detent.engine.project", ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "handle.state",
        "session.phases[key].state",
        "NEVER = ('.workflow', '.git')",
        "os.path.join(store.directory('checkpoints'), name)",
        "change.path.startswith('.workflow/')",
        "f'put back .workflow/checkpoints from a backup {name}'",
        "return store.location(name)",
        "f'remove {store.location(name)}'",
    ],
)
def test_what_is_no_path_into_the_state_directory_is_let_through(text):
    assert not state_problems("detent.engine.project", ast.parse(text))


SUPPORT = "tests.support"
#: Suites with a command of their own. Their modules may import each other.
SUITES = ("tests.book", "tests.ci", "tests.clients", "tests.conformance", "tests.ui")


def borrowed_builders(name: str, tree: ast.AST) -> list[str]:
    """Imports from tests outside of `tests.support`. A builder that two test modules need belongs there."""
    allowed = (SUPPORT, *(suite for suite in SUITES if name.startswith(f"{suite}.")))
    modules = {other for other in imports(tree) if other.startswith("tests.")}
    return sorted(other for other in modules if not other.startswith(allowed))


def test_tests_import_from_tests_support_only():
    files = sorted((ROOT / "tests").rglob("*.py"))
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in files}
    problems = {name: borrowed_builders(name, ast.parse(path.read_text())) for name, path in names.items()}

    assert len(files) > 100
    assert {name: modules for name, modules in problems.items() if modules} == {}


@pytest.mark.parametrize(
    ("name", "text", "modules"),
    [
        (
            "tests.run.test_feed",
            "from tests.cli.conftest import Tool",
            ["tests.cli.conftest", "tests.cli.conftest.Tool"],
        ),
        ("tests.run.test_feed", "def f():\n    from tests import factories", ["tests.factories"]),
        ("tests.run.test_feed", "from tests.clients import scripts", ["tests.clients", "tests.clients.scripts"]),
        ("tests.support.story", "from tests.run.test_feed import x", ["tests.run.test_feed", "tests.run.test_feed.x"]),
        ("tests.clients.test_server", "from tests.clients.scripts import do", []),
        ("tests.run.test_feed", "from tests.support.values import row", []),
    ],
)
def test_a_builder_borrowed_from_another_test_is_noticed(name, text, modules):
    assert borrowed_builders(name, ast.parse(text)) == modules


def open_matches(tree: ast.AST) -> list[int]:
    """Lines of a `case _` that a new member of a union or an enum would fall into without a word.

    A match without it is checked by mypy. Text is matched as it comes, so it needs a case for the rest.
    """
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Match):
            continue
        patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
        is_closed_set = any(
            isinstance(part, ast.MatchClass)
            or (isinstance(part, ast.MatchValue) and isinstance(part.value, ast.Attribute))
            for part in patterns
        )
        for case in node.cases if is_closed_set else ():
            is_rest = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None
            if is_rest and "assert_never" not in ast.unparse(case):
                lines.append(case.pattern.lineno)
    return lines


def test_a_match_over_a_union_or_an_enum_has_no_case_for_the_rest():
    assert {name: lines for name, tree in trees().items() if (lines := open_matches(tree))} == {}


@pytest.mark.parametrize(
    ("cases", "lines"),
    [
        ("case A() | B(): pass\n case _: pass", [3]),
        ("case Status.OPEN: pass\n case other: pass", [3]),
        ("case A(): pass\n case _: assert_never(x)", []),
        ("case A(): pass", []),
        ("case 'text': pass\n case _: pass", []),
    ],
)
def test_an_open_match_is_noticed(cases, lines):
    assert open_matches(ast.parse(f"match x:\n {cases}")) == lines


#: Who may do what only a few do: the callee's name, the modules that call it.
CALLERS = {
    "open_project": {"detent.engine.workspace"},
    "Project": {"detent.engine.project", "detent.run.workspaces"},
    "Commit": {"detent.engine.journal", "detent.engine.project", "detent.documents.state.reading"},
    "store.append": {"detent.engine.journal"},
    # A bundle holds commits that were decided where it was made.
    "store.create": {"detent.engine.project", "detent.engine.bundles.importing"},
}
#: A module that commits decides. Edits of the state document are decided in `documents.state.edits`.
DECIDERS = ("detent.core.session.decide.decide", "detent.documents.state.edits.edit_events")


def calls(tree: ast.AST) -> Iterator[str]:
    """Every call by name: `Commit`, or `store.append` for an attribute of something called store."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Attribute(attr=attr, value=ast.Name(id=owner) | ast.Attribute(attr=owner))):
                yield f"{owner.lstrip('_')}.{attr}"
            case ast.Call(func=ast.Attribute(attr=attr)):
                yield f".{attr}"


def door_problems(name: str, tree: ast.AST) -> list[str]:
    made = set(calls(tree))
    problems = [
        f"{name} calls {callee}" for callee, callers in CALLERS.items() if callee in made and name not in callers
    ]
    commits = {"journal.commit", ".commit"} & made
    if commits and not set(DECIDERS) & set(imports(tree)):
        problems.append(f"{name} commits without deciding")
    return problems


def test_every_commit_is_decided_and_goes_through_the_door():
    assert [problem for name, tree in trees().items() for problem in door_problems(name, tree)] == []
    committing = [name for name, tree in trees().items() if {"journal.commit", ".commit"} & set(calls(tree))]
    assert len(committing) >= 5


@pytest.mark.parametrize(
    "text",
    [
        "open_project('.')",
        "Project(store, place, settings, actor=actor)",
        "Commit(version=2)",
        "self._store.append(name, cursor, commit)",
        "project.store.create(name, commit)",
        "self._journal.commit(lambda _: events, actor=actor, now=now)",
        "project.journal(name).commit(lambda _: events, actor=actor, now=now)",
    ],
)
def test_a_way_around_the_door_is_noticed(text):
    assert door_problems("detent.web.page", ast.parse(text))
