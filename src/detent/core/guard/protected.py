"""The protected files of a project, by kind.

- "journal": an agent never writes it; everything below `.workflow` that is not named below.
- "document": an agent may edit it, and Detent adopts the edit afterwards.
- "config": detent.toml, approvers.toml and the files in which clients keep their hooks.

Outside of projects, the user's state directory is protected: it has the second copies of journals. So are the files of
the account in which clients keep their hooks and plugins.

The files of clients are passed in as `files`: their paths by kind, "config" or "document", and as "account" the
absolute paths of those in the account. Names are compared without regard to case, as some file systems do.
"""

from detent.core.guard.path_pattern import below, is_literal, literal_start, may_meet, normal
from detent.core.guard.shell.fuel import Fuel

JOURNAL, DOCUMENT, CONFIG, ACCOUNT = "journal", "document", "config", "account"
Hit = tuple[str, str, str]

_FREE_FOLDERS = (".summaries", ".chat", ".brainstorming", ".process")
_FREE_FILES = ("impl_plan.md", "todo_list.md")
#: What Detent itself writes below `.process`; the rest is free for the notes of agents.
_PROCESS = ".process"
_RUN_FILES = ("runner.json", "run.jsonl", "check-*.json", "leases", "leases/**", "flow", "flow/**", "bin", "bin/**")
#: The files of Detent in the root of a project.
ROOT_FILES = ("detent.toml", "approvers.toml")
_JOURNAL = (
    "wfs-*/journal.jsonl", "wfs-*/snapshot.json", "wfs-*/.documents.json", ".documents.json", "history.jsonl",
    ".lock", ".active-wfs",
)  # fmt: skip
#: git commands that put the settings of a person back to those of a commit.
_ROLLS_BACK = tuple(
    f"git {verb} of the tree" for verb in ("reset", "checkout", "switch", "read-tree", "checkout-index")
)
_MAX_RESOLVED = 256
_DOCUMENTS = ("state.json", "wfs-*/workflow-session.json", "wfs-*/.task/impl-*.json")
# A path of unknown start is protected only if it contains one of these.
_TELLING = (".workflow", "journal.jsonl", "workflow-session.json", *ROOT_FILES, ".active-wfs")
#: What is in the user's state directory, as `store/state_home.py` describes it.
_SECOND_COPIES = ("", "/index", "/index/0", "/0", "/0/path", "/0/journals", "/0/journals/wfs-x.jsonl")
_TELLING_COPIES = "state/detent"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Files = Mapping[str, tuple[str, ...]]
    #: A path with its symbolic links followed.
    Resolve = Callable[[str], str]


def guarded(path: str, root: str, files: "Files") -> str | None:
    """The kind of an absolute path in the project at `root`; None if it is not protected."""
    path, root = normal(path, "/").lower(), normal(root, "/").lower()
    start = _checkout(path, root).rstrip("/") + "/"
    if not path.startswith(start):
        return None
    inside = path[len(start) :]
    if inside in ROOT_FILES or inside in files[CONFIG]:
        return CONFIG
    if inside in files[DOCUMENT]:
        return DOCUMENT
    first, _, rest = inside.partition("/")
    if first != ".workflow":
        # A state directory of the agent's own would stand before that of the project.
        return JOURNAL if ".workflow" in rest.split("/") else None
    return _of_workflow(rest.split("/"))


def _of_workflow(segments: list[str]) -> str | None:
    for at, segment in enumerate(segments):
        if segment == "checkpoints" or (segment == _PROCESS and _is_of_run(segments[at + 1 : at + 2])):
            return JOURNAL
        if segment in _FREE_FOLDERS or segment in _FREE_FILES:
            return None
    last = segments[-1]
    task = segments[-2:-1] == [".task"] and last.startswith("impl-") and last.endswith(".json")
    return DOCUMENT if task or last in ("state.json", "workflow-session.json") else JOURNAL


def _is_of_run(names: list[str]) -> bool:
    """Whether a run or a check of Detent writes the file or directory of this name below `.process`."""
    return bool(names) and (names[0] in _RUN_FILES or names[0].startswith("check-"))


def guarded_hits(
    targets: list[tuple[str, str, bool]], root: str, files: "Files", resolve: "Resolve", fuel: Fuel
) -> list[Hit]:
    """The targets that can be guarded files, each as (path, how, kind).

    Where several kinds are possible, the kind is the first of journal, config, document.
    """
    hits: list[Hit] = []
    roots = dict.fromkeys((normal(root, "/"), resolve(normal(root, "/"))))
    for at, (path, how, recursive) in enumerate(targets):
        for place in dict.fromkeys((path, _resolved(path, resolve) if at < _MAX_RESOLVED else path)):
            kinds = [_kind(place, each, how, files, fuel, recursive=recursive) for each in roots]
            kind = next((kind for kind in kinds if kind), None)
            if kind:
                hits.append((place, how, kind))
                break
    return hits


def second_copy_hits(targets: list[tuple[str, str, bool]], directory: str, resolve: "Resolve", fuel: Fuel) -> list[Hit]:
    """The targets that can be in `directory`, the user's state directory, or that take it along."""
    hits: list[Hit] = []
    top = directory.lower()
    for path, how, recursive in targets[:_MAX_RESOLVED]:
        for place in dict.fromkeys((path, _resolved(path, resolve))):
            lowered = place.lower()
            if place.startswith("**") and _TELLING_COPIES not in lowered:
                continue
            shapes = (lowered, below(lowered)) if recursive else (lowered,)
            if lowered.startswith(f"{top}/") or any(
                may_meet(shape, top + name, fuel) for shape in shapes for name in _SECOND_COPIES
            ):
                hits.append((place, how, JOURNAL))
                break
    return hits


def account_hits(targets: list[tuple[str, str, bool]], files: "Files", resolve: "Resolve", fuel: Fuel) -> list[Hit]:
    """The targets that can be the clients' files in the account, or in a directory of them, or that take one along."""
    hits: list[Hit] = []
    known = [path.lower() for path in files.get(ACCOUNT, ())]
    for path, how, recursive in targets[:_MAX_RESOLVED] if known else ():
        for place in dict.fromkeys((path, _resolved(path, resolve))):
            lowered = place.lower()
            if not lowered.startswith("**") and any(_meets(lowered, each, fuel, recursive=recursive) for each in known):
                hits.append((place, how, CONFIG))
                break
    return hits


def _meets(path: str, known: str, fuel: Fuel, *, recursive: bool) -> bool:
    """Whether a path or pattern can be `known` or below it; with `recursive` also whether it can be above it."""
    if is_literal(path):
        return f"{path}/".startswith(f"{known}/") or (recursive and f"{known}/".startswith(f"{path.rstrip('/')}/"))
    shapes = (path, below(path)) if recursive else (path,)
    return any(may_meet(shape, name, fuel) for shape in shapes for name in (known, f"{known}/x"))


def mentioned(text: str, files: "Files") -> str:
    """The first guarded name that stands in a text as a name of its own; empty if there is none."""
    lowered = text.lower()
    for name in (".workflow", *ROOT_FILES, *files[CONFIG], *files[DOCUMENT]):
        at = lowered.find(name)
        while at >= 0:
            before, after = lowered[at - 1 : at], lowered[at + len(name) : at + len(name) + 1]
            if not (before.isalnum() or before == "_" or after.isalnum() or after in ("_", "-", ".")):
                return name
            at = lowered.find(name, at + 1)
    return ""


def _resolved(path: str, resolve: "Resolve") -> str:
    """`path` with the links in its literal beginning followed."""
    if is_literal(path):
        return resolve(path)
    folder, slash, _ = literal_start(path).rpartition("/")
    return resolve(folder or "/").rstrip("/") + path[len(folder) :] if slash else path


def _kind(path: str, root: str, how: str, files: "Files", fuel: Fuel, *, recursive: bool) -> str | None:
    if is_literal(path):
        exact = guarded(path, root, files)
        if exact or not recursive:
            return exact
        if how in _ROLLS_BACK:
            place = f"{path.rstrip('/')}/"
            top = f"{_checkout(place, root)}/"
            return CONFIG if place.startswith(top) or top.startswith(place) else None
    elif path.startswith("**") and not any(name in path.lower() for name in (*_TELLING, *_starts(files))):
        return None
    path, root = path.lower(), root.lower()
    start = _checkout(literal_start(path), root).rstrip("/") + "/"
    # The path of a worktree leads through `.workflow` too, and does not decide about the files in it.
    inner = path.removeprefix(start)
    above, named, _ = inner.partition(".workflow")
    if named and inner == path and not may_meet(above, start, fuel):
        return None
    shapes = [shape for shape in ([path, below(path)] if recursive else [path]) if not _is_free(shape)]
    for shape in shapes:
        known = literal_start(shape)
        if not (known.startswith(start) or start.startswith(known)):
            continue
        inside, before = (shape[len(start) :], "") if known.startswith(start) else (shape, start)
        first = inside.partition("/")[0]
        if not before and is_literal(first) and first not in (".workflow", *ROOT_FILES, *_tops(files)):
            continue
        guards = _run_guards() if _PROCESS in inside.split("/") else _guards(inner, files)
        for kind, name in guards:
            if may_meet(inside, before + name, fuel):
                return kind
    return None


def _checkout(path: str, root: str) -> str:
    """The worktree that a path is inside of, which is guarded as the project itself is; else the root."""
    worktrees = root.rstrip("/") + "/.workflow/worktrees/"
    name, inside, _ = path[len(worktrees) :].partition("/") if path.startswith(worktrees) else ("", "", "")
    return worktrees + name if name and inside else root


def _starts(files: "Files") -> list[str]:
    """The directories of the clients' files; of a file without a directory, its name."""
    return [path.rpartition("/")[0] + "/" if "/" in path else path for path in _of_project(files)]


def _tops(files: "Files") -> list[str]:
    return [path.partition("/")[0] for path in _of_project(files)]


def _of_project(files: "Files") -> list[str]:
    return [*files[CONFIG], *files[DOCUMENT]]


def _guards(path: str, files: "Files") -> list[tuple[str, str]]:
    """The protected names that a pattern is compared with. Only a pattern with `.workflow` can mean any file there."""
    named = ".workflow" in path
    session = "wfs-*" if named or "wfs-" in path else "wfs-x"
    bases = (".workflow/", ".workflow/projects/*/") if named else (".workflow/",)
    return [
        *((JOURNAL, base + name.replace("wfs-*", session)) for base in bases for name in _JOURNAL),
        *((CONFIG, name) for name in (*ROOT_FILES, *files[CONFIG])),
        *((DOCUMENT, base + name.replace("wfs-*", session)) for base in bases for name in _DOCUMENTS),
        *((DOCUMENT, name) for name in files[DOCUMENT]),
        *((JOURNAL, name) for name in (".workflow", ".workflow/**") if named),
    ]


def _run_guards() -> list[tuple[str, str]]:
    """The names that a pattern below `.process` is compared with."""
    return [
        (JOURNAL, f"{base}wfs-*/{_PROCESS}/{name}")
        for base in (".workflow/", ".workflow/projects/*/")
        for name in _RUN_FILES
    ]


def _is_free(shape: str) -> bool:
    """A pattern is free if it names a place below `.workflow` that is not protected."""
    segments = shape.split("/")
    return any(segment in _FREE_FILES or (segment in _FREE_FOLDERS and segment != _PROCESS) for segment in segments)
