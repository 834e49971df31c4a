"""Events of an agent during one turn. The last one is always `Finished` or `Failed`."""

from enum import StrEnum

import msgspec

from detent.core.session.phase_state import Report, Tokens


class Failure(StrEnum):
    """The kind of failure of a turn. It decides what happens next."""

    #: Unrelated to the work, such as a rate limit or a lost connection. The turn is retried later.
    TRANSIENT = "transient"
    #: The agent refuses the work. A retry does not help.
    REFUSED = "refused"
    #: An error, or output that cannot be parsed.
    ERROR = "error"
    TIMEOUT = "timeout"
    #: Detent stopped it.
    STOPPED = "stopped"


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass


class Started(_Event, frozen=True, kw_only=True, tag="agent_started"):
    #: The agent's id of the conversation, its model, and the version of its program.
    conversation: str = ""
    model: str = ""
    version: str = ""


class ToolStarted(_Event, frozen=True, kw_only=True, tag="tool_started"):
    """The agent began to use a tool; `ToolUsed` follows when the tool has ended."""

    tool: str
    #: The command or path, shortened.
    input: str = ""


class ToolUsed(_Event, frozen=True, kw_only=True, tag="tool_used"):
    tool: str
    #: The command or path, shortened.
    input: str = ""
    succeeded: bool = True


class Said(_Event, frozen=True, kw_only=True, tag="said"):
    text: str
    #: Whether these are not the agent's words but Detent's own about it. They are always shown.
    by_detent: bool = False


class Used(_Event, frozen=True, kw_only=True, tag="used"):
    """Total tokens and cost of the turn so far."""

    tokens: Tokens


class Finished(_Event, frozen=True, kw_only=True, tag="agent_finished"):
    """The turn succeeded. The report has no tool calls: each of them is an event of its own."""

    report: Report = Report()


class Failed(_Event, frozen=True, kw_only=True, tag="agent_failed"):
    failure: Failure
    reason: str
    #: Seconds after which the service wants to be asked again.
    retry_after_s: float = 0.0


AgentEvent = Started | ToolStarted | ToolUsed | Said | Used | Finished | Failed
