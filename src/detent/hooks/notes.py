"""Logs that hooks write for people: decisions about delegations, and crashes of the hook."""

import posix

from detent.hooks.files import append, append_once, is_running, project_root, project_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Call = dict[str, Any]


def note_delegation(document: "Any", call: "Call", state: str, *, denied: bool) -> None:
    """Log one line for each decision about a delegation: denied, delegated, or to another agent of the phase."""
    from _json import encode_basestring_ascii as quote
    from time import time

    from detent.core.guard import state_reader
    from detent.core.guard.call_purpose import agent_name, target_phase

    target, agent = target_phase(document, call), agent_name(call["agent"])
    if not target or not is_running(document):
        return
    agents = state_reader.mapping(state_reader.workflow(document).get("agents"))
    own = agent in ("", agent_name(agents.get(target)))
    event = "denied" if denied else "delegated" if own else "same-phase-bypass"
    line = f'{{"ts":{int(time())},"event":"{event}","phase":{quote(target)},"agent":{quote(agent)}}}\n'
    try:
        append(state + "/hook-activity.log", line)
    except OSError:
        # The decision does not depend on the log.
        return


def note_writing(document: "Any", call: "Call", root: str, state: str, client: str, *, before: bool) -> None:
    """Note the files that a client's write tool makes: before the call whether each is there, afterwards that it ran.

    Afterwards the client is noted too: it cannot review its own work.

    A rollback may remove a file only if the session made it. A commit for every call would cost too much.
    """
    from _json import encode_basestring_ascii as quote

    from detent.core.checkpoint.written import WRITTEN
    from detent.core.guard import state_reader
    from detent.hooks.files import exists, resolve

    session = state_reader.workflow(document).get("session_id") if isinstance(document, dict) else None
    if not isinstance(session, str) or not session or "/" in session:
        return
    lines = []
    for path in dict.fromkeys(resolve(path, call["cwd"]) for path in call["paths"]):
        if not path.startswith(root + "/") or path.startswith(root + "/.workflow/"):
            continue
        there = exists(path)
        mark = "?" if not there else "!" if before else "+"
        lines.append(f"{mark}{quote(path[len(root) + 1 :])}\n")
    if lines and not before:
        lines.append(f"@{quote(f'{client} {state_reader.current_phase(document)}')}\n")
    try:
        if lines:
            append_once(f"{state}/{session}/{WRITTEN}", "".join(lines))
    except OSError:
        # A rollback then keeps these files, and names them.
        return


def note_failure(payload: "Any", error: "BaseException") -> None:
    from detent.clients.dialect import text_of

    fields = payload if isinstance(payload, dict) else {}
    root = project_root(project_roots(text_of(fields.get("cwd")) or posix.getcwd()))
    if root is not None:
        event = text_of(fields.get("hook_event_name"))[:80] or "unreadable event"
        line = " ".join(f"{event} {type(error).__name__}: {error}"[:500].split())
        append(root + "/.workflow/hook-failures.log", line + "\n")
