"""Reads files, JSON, the state document and the end of the journal. Builtins only: every tool call imports it."""

import posix

from detent.store.state_home import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LOG = 1_000_000


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
    try:
        fd = posix.open(path, posix.O_RDONLY)
    except OSError:
        return None
    try:
        return read_all(fd)
    finally:
        posix.close(fd)


def exists(path: str) -> bool:
    try:
        posix.stat(path)
    except (OSError, ValueError):
        return False
    return True


def resolve(path: str) -> str:
    """`path` with its symbolic links followed, as far as it exists."""
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
    fd = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o666)
    try:
        posix.write(fd, line.encode("utf-8", "replace"))
        long = posix.fstat(fd).st_size > MAX_LOG
    finally:
        posix.close(fd)
    if long:
        posix.rename(path, path + ".1")


def project_root(directory: str) -> "str | None":
    """The nearest directory at or above `directory` that contains `.workflow`."""
    while True:
        if exists(directory + "/.workflow"):
            return directory
        if directory in ("", "/"):
            return None
        directory = directory.rpartition("/")[0]


# The state document and the journal


def read_document(state: str) -> "Any":
    """The state document; None without one, False if it is unreadable, or missing while a session is active."""
    data = read_file(state + "/state.json")
    if data is None:
        return False if has_marker(state) else None
    try:
        document = parse(data)
    except (ValueError, RecursionError):
        return False
    return document if isinstance(document, dict) else False


def has_marker(state: str) -> bool:
    try:
        return any(name.startswith(".active-WFS-") for name in posix.listdir(state))
    except OSError:
        return False


def is_running(document: "Any") -> bool:
    """Whether a session may be active. An unreadable document counts as active."""
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
    if not exists(f"{state}/.active-{flow.get('session_id')}"):
        return True
    past = read_file(state + "/history.jsonl")
    if past is not None and "history.jsonl" in ledger and digest(past) not in ledger["history.jsonl"]:
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


def own_state_home() -> str:
    from detent.store.state_home import state_home

    chosen, home = (posix.environ.get(name, b"") for name in (b"XDG_STATE_HOME", b"HOME"))
    return state_home(chosen.decode("utf-8", "surrogateescape"), home.decode("utf-8", "surrogateescape"))


def lost_record(directory: str) -> str:
    """What to say about the project around `directory` whose whole record is gone; empty if there is none."""
    from detent.store.state_home import lost_sessions

    directory, home = resolve(directory), own_state_home()
    while home and directory:
        sessions = lost_sessions(home, directory, directory + "/.workflow")
        if sessions:
            return (
                f"Detent: the project {directory} had {len(sessions)} sessions, and their record is gone. A person "
                "should run: detent doctor --restore, which brings it back, or detent forget, which ends it"
            )
        directory = directory.rpartition("/")[0]
    return ""
