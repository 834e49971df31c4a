"""Reads files, JSON, the state document and the end of the journal. Builtins only: every tool call imports it."""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LOG = 1_000_000
_KIND, _REGULAR, _DIRECTORY = 0o170000, 0o100000, 0o040000
_MARK = ".active-"
#: What the settings looked like when hooks saw them last.
SETTINGS_NOTE = ".settings"


class _Plain:
    strict = False
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def parse(data: bytes) -> "Any":
    """Parse JSON with the C scanner of `json`, without the regular expressions that `json` imports."""
    from _json import make_scanner

    text = data.decode("utf-8", "replace").strip(" \t\r\n\ufeff")
    try:
        value, end = make_scanner(_Plain)(text, 0)  # type: ignore[arg-type]
    except (StopIteration, SystemError) as error:
        # The scanner raises nothing for some texts that end too early.
        raise ValueError("this is not JSON") from error
    if text[end:].strip():
        raise ValueError("text follows the JSON")
    return value


def read_all(fd: int) -> bytes:
    chunks = []
    while chunk := posix.read(fd, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)


def read_file(path: str) -> "bytes | None":
    """The bytes of a regular file; None for anything else, which could block."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        return read_all(fd) if posix.fstat(fd).st_mode & _KIND == _REGULAR else None
    except OSError:
        return None
    finally:
        posix.close(fd)


def exists(path: str) -> bool:
    try:
        posix.stat(path)
    except (OSError, ValueError):
        return False
    return True


def blocking_file(state: str) -> "str | None":
    """A file of the state directory that is a pipe or a device: reading it could take forever."""
    journals = [f"{name.removeprefix('.active-')}/journal.jsonl" for name in markers(state)]
    for name in ("state.json", ".documents.json", "history.jsonl", *journals):
        try:
            if posix.stat(f"{state}/{name}").st_mode & _KIND not in (_REGULAR, _DIRECTORY):
                return f"{state}/{name}"
        except (OSError, ValueError):
            continue
    return None


def resolve(path: str, cwd: str = "") -> str:
    """`path` with its symbolic links followed, as far as it exists. `/proc/<pid>/cwd` is `cwd`."""
    parts = [part for part in path.split("/") if part]
    if cwd and parts[:1] == ["proc"] and parts[2:3] in (["cwd"], ["root"]):
        path = "/".join((cwd if parts[2] == "cwd" else "", *parts[3:]))
    done, left, links = "", [part for part in path.split("/") if part], 0
    while left:
        candidate = done + "/" + left.pop(0)
        try:
            target = posix.readlink(candidate)
        except (OSError, ValueError):
            done = candidate
            continue
        links += 1
        if links > 40:
            return path
        if target.startswith("/"):
            done = ""
        left = [part for part in target.split("/") if part not in ("", ".")] + left
        while left and left[0] == "..":
            left.pop(0)
            done = done.rpartition("/")[0]
    return done or "/"


def append(path: str, line: str) -> None:
    """Append a line to a log. A long log is renamed to `<path>.1` and replaces the previous one."""
    fd = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o600)
    try:
        posix.write(fd, line.encode("utf-8", "replace"))
        long = posix.fstat(fd).st_size > MAX_LOG
    finally:
        posix.close(fd)
    if long:
        posix.rename(path, path + ".1")


def append_once(path: str, lines: str) -> None:
    """Append lines to a file that is never replaced, in a directory that is made on first need. A full file stays."""
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND
    try:
        fd = posix.open(path, flags, 0o600)
    except FileNotFoundError:
        posix.mkdir(path.rpartition("/")[0], 0o700)
        fd = posix.open(path, flags, 0o600)
    try:
        if posix.fstat(fd).st_size < MAX_LOG:
            posix.write(fd, lines.encode("utf-8", "replace"))
    finally:
        posix.close(fd)


def project_roots(directory: str) -> "list[str]":
    """The directories at or above `directory` that have a state directory, the nearest first."""
    roots = []
    for start in dict.fromkeys((resolve(directory), directory)):
        place = start
        while place:
            if exists(place + "/.workflow/."):
                roots.append(place)
            place = place.rpartition("/")[0]
    return list(dict.fromkeys(roots))


def project_root(roots: "list[str]") -> "str | None":
    """The nearest project; of several, the nearest with an active session whose files are as Detent wrote them.

    A state directory that another program made below a project would otherwise switch the guard off.
    """
    if len(roots) < 2:
        return roots[0] if roots else None
    active = [root for root in roots if any(map(has_marker, states(root)))]
    whole = [
        root for root in active if not any(has_drifted(read_document(s), s) for s in states(root) if has_marker(s))
    ]
    return (whole or active or roots)[0]


def states(root: str) -> "list[str]":
    """The state directories of a repository: its own, and those of its packages."""
    state = root + "/.workflow"
    try:
        return [state, *(f"{state}/projects/{name}" for name in sorted(posix.listdir(state + "/projects")))]
    except OSError:
        return [state]


# The state document and the journal


def read_document(state: str) -> "Any":
    """The state document; None without one, False if it cannot be used.

    The marker says whether a session is active. A document that is missing then, or that is about another session or
    about none, cannot be used: an edit of it must not end the session. Nor must it together with the marker.
    """
    data, marked = read_file(state + "/state.json"), markers(state)
    if blocking_file(state) is not None:
        return False
    if data is None:
        return False if marked or unmarked(state) else None
    try:
        document = parse(data)
    except (ValueError, RecursionError):
        return False
    if not isinstance(document, dict):
        return False
    flow = document.get("active_workflow")
    name = flow.get("session_id") if isinstance(flow, dict) else None
    if not marked and name is None:
        marked = unmarked(state)
    return False if marked and f".active-{name}" not in marked else document


def markers(state: str) -> "list[str]":
    """The markers of active sessions, by name."""
    try:
        return sorted(name for name in posix.listdir(state) if name.startswith(f"{_MARK}WFS-"))
    except OSError:
        return []


def unmarked(state: str) -> "list[str]":
    """The markers that the last look saw, and that are gone although the sessions' own documents say "active".

    Detent removes a marker after it has written these documents. Without the note of a look all sessions are looked at.
    """
    note = read_file(f"{state.rpartition('/.workflow')[0]}/.workflow/{SETTINGS_NOTE}")
    if note is None:
        try:
            names = [f"{_MARK}{name}" for name in sorted(posix.listdir(state)) if name.startswith("WFS-")]
        except OSError:
            return []
    else:
        names = note.partition(b"\n")[0].decode("utf-8", "replace").split()
    return [name for name in names if _is_active(f"{state}/{name.removeprefix(_MARK)}/workflow-session.json")]


def _is_active(document: str) -> bool:
    """Whether the document of a session says that it is the active one, without parsing it."""
    return b'\n  "status": "active",' in (read_file(document) or b"")


def has_marker(state: str) -> bool:
    """Whether a session is active, or was until its marker was removed."""
    return bool(markers(state) or unmarked(state))


def is_running(document: "Any") -> bool:
    """Whether a session may be active. A document that cannot be used counts as active."""
    return document is False or bool(isinstance(document, dict) and document.get("active_workflow"))


def journal_problem(document: "Any", state: str) -> "str | None":
    """Reason to deny a delegation if the journal is not the one that the document was made from."""
    from detent.core.guard import state_reader
    from detent.core.guard.rules import RELEASE

    # Detent did not write a document without that field, so there is nothing to compare.
    if "journal" not in state_reader.workflow(document) or has_prefix(document, state):
        return None
    name = state_reader.workflow(document).get("session_id")
    return f"the journal of {name} is not what Detent wrote; a person should run: detent doctor. {RELEASE}"


def has_drifted(document: "Any", state: str) -> bool:
    """Whether another program changed Detent's files: compares digests, and the last sum of the journal."""
    from detent.store.state_home import digest

    data = read_file(state + "/state.json")
    try:
        ledger = parse(read_file(state + "/.documents.json") or b"{}")
    except (ValueError, RecursionError):
        return True
    if document is False or data is None or not isinstance(ledger, dict):
        return True
    if digest(data) not in ledger.get("state.json", ()):
        return True
    flow = document.get("active_workflow") or {}
    if markers(state) != [f".active-{flow.get('session_id')}"]:
        return True
    past = read_file(state + "/history.jsonl")
    if "history.jsonl" in ledger and digest(past or b"") not in ledger["history.jsonl"]:
        return True
    return not has_prefix(document, state, whole=True)


def has_prefix(document: "Any", state: str, whole: bool = False) -> bool:
    """Whether the journal still holds the commit that the document was made from; with `whole`, as its last."""
    flow = document.get("active_workflow") or {} if isinstance(document, dict) else {}
    head = flow.get("journal")
    total, hint = (head.get("sum"), head.get("hint")) if isinstance(head, dict) else (None, None)
    if not isinstance(hint, int) or not isinstance(total, str):
        return False
    from detent.store.journal_tail import holds

    journal = f"{state}/{flow.get('session_id')}/journal.jsonl"
    return holds(journal, total, hint, last=whole) and head_is_held(state, flow.get("session_id"))


def head_is_held(state: str, session: "Any") -> bool:
    """Whether the journal holds the last line of its second copy outside the project. True if there is no copy."""
    from detent.store.journal_tail import JOURNAL, head, holds
    from detent.store.state_home import COPY, copies_directory, read_entry

    root, _, part = state.rpartition("/.workflow")
    home = own_state_home()
    entry = read_entry(home, resolve(root)) if home else None
    if entry is None:
        return True
    try:
        fd = posix.open(f"{copies_directory(home, entry.id, part.strip('/'))}/{session}{COPY}", posix.O_RDONLY)
    except (OSError, ValueError):
        return True
    try:
        total, size = head(fd)
    except OSError:
        return True
    finally:
        posix.close(fd)
    return holds(f"{state}/{session}/{JOURNAL}", total, size)


def _second_copies(root: str) -> "list[str]":
    """The files outside the project that hold the second copies of active sessions, whether they are there or not."""
    from detent.store.state_home import COPY, PROJECT_ID, copies_directory, is_id, read_text

    known, home = read_text(f"{root}/.workflow/{PROJECT_ID}").strip(), own_state_home()
    if not home or not is_id(known):
        return []
    parts = ((state, state[len(root) + len("/.workflow/") :]) for state in states(root))
    return [
        f"{copies_directory(home, known, part)}/{name.removeprefix('.active-')}{COPY}"
        for state, part in parts
        for name in markers(state)
    ]


def own_state_home() -> str:
    from detent.store.state_home import state_home

    chosen, home = (posix.environ.get(name, b"") for name in (b"XDG_STATE_HOME", b"HOME"))
    return state_home(chosen.decode("utf-8", "surrogateescape"), home.decode("utf-8", "surrogateescape"))


def lost_record(directory: str) -> str:
    """A message about the project around `directory` whose whole record is gone; empty if there is none."""
    from detent.store.state_home import lost_sessions

    directory, home = resolve(directory), own_state_home()
    while home and directory:
        sessions = lost_sessions(home, directory, directory + "/.workflow")
        if sessions:
            return (
                f"Detent: the project {directory} had {len(sessions)} session{'s' if len(sessions) > 1 else ''}, and "
                "the record is gone. A person should run: detent doctor --restore, which brings it back, or detent "
                "forget, which ends it"
            )
        directory = directory.rpartition("/")[0]
    return ""


# The settings of Detent and of the clients


def changed_settings(root: str, paths: "tuple[str, ...]") -> "list[str]":
    """The settings that another program changed since the last look in this session; the look is noted.

    Settings are no part of the record: a person may change them at any time, so a change is only reported.
    """
    from detent.store.state_home import digest

    lines = [" ".join(name for state in states(root) for name in markers(state) or unmarked(state))]
    if not lines[0]:
        return []
    for path in paths:
        data = read_file(f"{root}/{path}")
        lines.append(f"{'-' if data is None else digest(data)} {path}")
    for state in states(root):
        # Of checkpoints only their presence is looked at: the engine verifies what they hold.
        index = f"{state}/checkpoints/index.json"
        lines.append(f"{'+' if exists(index) else '-'} {index[len(root) + 1 :]}")
    lines += [f"{'+' if exists(copy) else '-'} {copy}" for copy in _second_copies(root)]
    note = f"{root}/.workflow/{SETTINGS_NOTE}"
    before = (read_file(note) or b"").decode("utf-8", "replace").split("\n")
    if lines == before:
        return []
    fd = posix.open(note, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
    try:
        posix.write(fd, "\n".join(lines).encode("utf-8", "replace"))
    finally:
        posix.close(fd)
    if lines[0] != before[0]:
        return []
    return [path for mark, _, path in (line.partition(" ") for line in lines if line not in before) if mark != "+"]
