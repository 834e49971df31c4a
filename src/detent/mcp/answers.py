"""The answer to a tool call: a record for the agent, as text and as structured content.

A refusal is an answer too, marked as an error, so that the model reads the reason. A call that only a person can move
on answers `pending`.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from detent.core.limits import MAX_NAME
from detent.errors import CheckRunning, DetentError

if TYPE_CHECKING:
    from detent.core.actor import Actor
    from detent.core.session.open_decision import OpenDecision
    from detent.engine.workspace import Workspace
    from detent.mcp.server import Context
    from detent.mcp.tools import Arguments, Tool

#: Bytes of one answer. Longer texts in it are cut by their call.
MAX_ANSWER = 256 * 1024
WHERE = "in a terminal of their own: detent decide; or on the page: detent ui"
_NAMELESS = "mcp-client"


class Pending(DetentError):
    """A person has to decide first."""

    kind = "pending"

    def __init__(self, message: str, decisions: "Iterable[OpenDecision]") -> None:
        super().__init__(message)
        self.decisions = tuple(decisions)


def workspace_of(context: "Context") -> "Workspace":
    from detent.engine.workspace import Workspace  # noqa: PLC0415 - the engine is loaded with the first call

    return Workspace(context.directory, project=context.project)


def actor_of(workspace: "Workspace", context: "Context") -> "Actor":
    """The agent behind this server. Whatever started the process, its client speaks for a model."""
    from detent.core.actor import ActorKind, Channel  # noqa: PLC0415

    actor = workspace.actor(Channel.MCP, changes=True)
    if actor.kind is ActorKind.AGENT:
        return actor
    name = "".join(c if c.isprintable() else " " for c in context.client).strip()[:MAX_NAME] or _NAMELESS
    return msgspec.structs.replace(actor, kind=ActorKind.AGENT, name=name)


def answered(tool: "Tool", arguments: "Arguments", context: "Context") -> dict[str, Any]:
    """The result of a tool call."""
    from detent.mcp import calls  # noqa: PLC0415

    notices: list[str] = []
    try:
        record = getattr(calls, tool.name)(arguments, context, notices)
    except Pending as pending:
        return _result(_pending_record(pending), notices)
    except CheckRunning as running:
        again = f"call {tool.name} again to wait for it"
        return _result({"state": "running", "reason": running.message, "way_out": again}, notices)
    except DetentError as error:
        # A way out is a command of a shell, which the agent may not have.
        following = calls.next_call(error.way_out or "")
        refusal = {
            "state": error.kind,
            "reason": error.message,
            "way_out": error.way_out,
            "next": [following] if following else [],
        }
        return _result({key: value for key, value in refusal.items() if value}, notices, is_error=True)
    return _result(record, notices)


def decision_record(entry: "OpenDecision") -> dict[str, Any]:
    """The open decisions, for people to read, with the command that they type."""
    record = {
        "what": entry.what,
        "kind": entry.kind,
        "phase": entry.phase,
        "gate": entry.gate,
        "task": entry.task,
        "question": entry.question,
        "since": entry.since,
        "waits_for": list(entry.waits_for),
        "person_types": entry.command,
    }
    return {key: value for key, value in record.items() if value}


def _pending_record(pending: Pending) -> dict[str, Any]:
    return {
        "state": "pending",
        "reason": pending.message,
        "waits_for": [decision_record(entry) for entry in pending.decisions],
        "person_decides": WHERE,
        "way_out": "tell the person, and stop; only a person can decide this",
    }


def _result(record: Mapping[str, Any], notices: list[str], *, is_error: bool = False) -> dict[str, Any]:
    whole = {**record, **({"notices": list(dict.fromkeys(notices))} if notices else {})}
    structured = msgspec.to_builtins(whole)
    data = msgspec.json.encode(structured)
    if len(data) > MAX_ANSWER:
        structured = {"state": "too_large", "reason": f"the answer has {len(data)} bytes, and {MAX_ANSWER} are allowed"}
        data, is_error = msgspec.json.encode(structured), True
    return {
        "content": [{"type": "text", "text": data.decode()}],
        "structuredContent": structured,
        "isError": is_error,
    }
