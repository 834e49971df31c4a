"""Whether the state document and the journal are what Detent wrote, by a look at their ends. Loads nothing slow."""

import posix

from detent.hooks.files import digest, exists, parse, read_file
from detent.store.journal_tail import holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read_document(state: str) -> "Any":
    """The state document; None if there is none, False if it cannot be read or is missing where there is work."""
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
    """Whether there is work to look after; a document that cannot be read may be about some."""
    return document is False or bool(isinstance(document, dict) and document.get("active_workflow"))


def journal_problem(document: "Any", state: str) -> "str | None":
    """Nothing is handed on while the record of what was done is not the one that the document was made from."""
    from detent.core.guard import state_reader
    from detent.core.guard.rules import RELEASE

    # A document without that mark is none that Detent wrote; there is nothing to hold it against.
    if "journal" not in state_reader.workflow(document) or has_prefix(document, state):
        return None
    name = state_reader.workflow(document).get("session_id")
    return f"the journal of {name} is not what Detent wrote; a person should run: detent doctor. {RELEASE}"


def has_drifted(document: "Any", state: str) -> bool:
    """Whether something of Detent's was changed behind its back: by digest and by the journal's last sum."""
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
    """Whether the journal still holds what the document was made from, and nothing behind it if `whole`."""
    flow = document.get("active_workflow") or {} if isinstance(document, dict) else {}
    head = flow.get("journal")
    total, hint = (head.get("sum"), head.get("hint")) if isinstance(head, dict) else (None, None)
    if not isinstance(hint, int) or not isinstance(total, str):
        return False
    return holds(f"{state}/{flow.get('session_id')}/journal.jsonl", total, hint, last=whole)
