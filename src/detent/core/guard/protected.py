"""The protected files of a project, by kind.

- "journal": an agent never writes it; everything below `.workflow` that is not named below.
- "document": an agent may edit it, and Detent adopts the edit afterwards.
- "config": detent.toml and the files in which clients keep their hooks.

The files of clients are passed in as `files`: their paths by kind, "config" or "document". Names are compared without
regard to case, as some file systems do.
"""

from detent.core.guard.path_pattern import below, is_literal, literal_start, may_match, may_meet, normal
from detent.core.guard.shell.walk import write_targets
from detent.core.guard.shell.writes import EXCEPT, REACHES_BELOW

JOURNAL, DOCUMENT, CONFIG = "journal", "document", "config"
Hit = tuple[str, str, str]

_FREE_FOLDERS = (".summaries", ".chat", ".brainstorming", ".process")
_FREE_FILES = ("impl_plan.md", "todo_list.md")
_CONFIG = "detent.toml"
_JOURNAL = (
    "wfs-*/journal.jsonl", "wfs-*/snapshot.json", "wfs-*/.documents.json", ".documents.json", "history.jsonl",
    ".lock", ".active-wfs",
)  # fmt: skip
_DOCUMENTS = ("state.json", "wfs-*/workflow-session.json", "wfs-*/.task/impl-*.json")
# A path of unknown start is protected only if it contains one of these.
_TELLING = (".workflow", "journal.jsonl", "workflow-session.json", _CONFIG, ".active-wfs")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Files = Mapping[str, tuple[str, ...]]


def guarded(path: str, root: str, files: "Files") -> str | None:
    """The kind of an absolute path in the project at `root`; None if it is not protected."""
    path, root = normal(path, "/").lower(), normal(root, "/").lower()
    start = _checkout(path, root).rstrip("/") + "/"
    if not path.startswith(start):
        return None
    inside = path[len(start) :]
    if inside == _CONFIG or inside in files[CONFIG]:
        return CONFIG
    if inside in files[DOCUMENT]:
        return DOCUMENT
    first, _, rest = inside.partition("/")
    return _of_workflow(rest.split("/")) if first == ".workflow" else None


def _of_workflow(segments: list[str]) -> str | None:
    for segment in segments:
        if segment == "checkpoints":
            return JOURNAL
        if segment in _FREE_FOLDERS or segment in _FREE_FILES:
            return None
    last = segments[-1]
    task = segments[-2:-1] == [".task"] and last.startswith("impl-") and last.endswith(".json")
    return DOCUMENT if task or last in ("state.json", "workflow-session.json") else JOURNAL


def guarded_hits(targets: list[tuple[str, str]], root: str, files: "Files") -> list[Hit]:
    """The targets that can be guarded files, each as (path, how, kind).

    Where several kinds are possible, the kind is the first of journal, config, document.
    """
    hits: list[Hit] = []
    for at, (path, how) in enumerate(targets):
        if how == EXCEPT:
            continue
        spared: list[str] = []
        while at + 1 + len(spared) < len(targets) and targets[at + 1 + len(spared)][1] == EXCEPT:
            spared.append(targets[at + 1 + len(spared)][0].lower())
        kind = _kind(path, normal(root, "/"), spared, files, recursive=how in REACHES_BELOW)
        if kind:
            hits.append((path, how, kind))
    return hits


def command_hits(command: str, cwd: str, root: str, files: "Files", *, home: str = "") -> list[Hit]:
    """The guarded files that a shell command would write when run in `cwd`."""
    return guarded_hits(write_targets(command, cwd, home=home), root, files)


def _kind(path: str, root: str, spared: list[str], files: "Files", *, recursive: bool) -> str | None:
    if is_literal(path):
        exact = None if _is_spared(path.lower(), spared) else guarded(path, root, files)
        if exact or not recursive:
            return exact
    elif path.startswith("**") and not any(name in path.lower() for name in (*_TELLING, *_starts(files))):
        return None
    path, root = path.lower(), root.lower()
    start = _checkout(literal_start(path), root).rstrip("/") + "/"
    # The path of a worktree leads through `.workflow` too, and does not decide about the files in it.
    inner = path.removeprefix(start)
    above, named, _ = inner.partition(".workflow")
    if named and inner == path and not may_meet(above, start):
        return None
    shapes = [shape for shape in ([path, below(path)] if recursive else [path]) if not _is_free(shape)]
    for shape in shapes:
        known = literal_start(shape)
        if not (known.startswith(start) or start.startswith(known)):
            continue
        inside, before = (shape[len(start) :], "") if known.startswith(start) else (shape, start)
        first = inside.partition("/")[0]
        if not before and is_literal(first) and first not in (".workflow", _CONFIG, *_tops(files)):
            continue
        for kind, name in _guards(inner, files):
            if may_meet(inside, before + name) and not _is_spared(start + name, spared):
                return kind
    return None


def _checkout(path: str, root: str) -> str:
    """The worktree that a path is inside of, which is guarded as the project itself is; else the root."""
    worktrees = root.rstrip("/") + "/.workflow/worktrees/"
    name, inside, _ = path[len(worktrees) :].partition("/") if path.startswith(worktrees) else ("", "", "")
    return worktrees + name if name and inside else root


def _starts(files: "Files") -> list[str]:
    """The directories of the clients' files; of a file without a directory, its name."""
    return [path.rpartition("/")[0] + "/" if "/" in path else path for each in files.values() for path in each]


def _tops(files: "Files") -> list[str]:
    return [path.partition("/")[0] for each in files.values() for path in each]


def _guards(path: str, files: "Files") -> list[tuple[str, str]]:
    """The protected names that a pattern is compared with. Only a pattern with `.workflow` can mean any file there."""
    named = ".workflow" in path
    session = "wfs-*" if named or "wfs-" in path else "wfs-x"
    bases = (".workflow/", ".workflow/projects/*/") if named else (".workflow/",)
    return [
        *((JOURNAL, base + name.replace("wfs-*", session)) for base in bases for name in _JOURNAL),
        *((CONFIG, name) for name in (_CONFIG, *files[CONFIG])),
        *((DOCUMENT, base + name.replace("wfs-*", session)) for base in bases for name in _DOCUMENTS),
        *((DOCUMENT, name) for name in files[DOCUMENT]),
        *((JOURNAL, name) for name in (".workflow", ".workflow/**") if named),
    ]


def _is_free(shape: str) -> bool:
    """A pattern is free if it names a place below `.workflow` that is not protected."""
    return any(segment in _FREE_FOLDERS or segment in _FREE_FILES for segment in shape.split("/"))


def _is_spared(path: str, spared: list[str]) -> bool:
    plain = path.replace("**", "x").replace("*", "x")
    return any(may_match(each, plain) for each in spared)
