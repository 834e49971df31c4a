"""What an agent tells while it works on a turn. The last is always `Finished` or `Failed`."""

from enum import StrEnum

import msgspec

from detent.core.session.phase_state import Report, Tokens


class Failure(StrEnum):
    """Why a turn came to nothing, as far as it decides what happens next."""

    #: Nothing to do with the work: a rate limit, a broken connection. Worth the same turn again, a little later.
    TRANSIENT = "transient"
    #: The agent will not do it. Asking again does not change its mind.
    REFUSED = "refused"
    #: It ended with an error, or with something that cannot be understood.
    ERROR = "error"
    TIMEOUT = "timeout"
    #: It was ended from here.
    STOPPED = "stopped"


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass


class Started(_Event, frozen=True, kw_only=True, tag="agent_started"):
    #: What the agent calls its own conversation, and the model that answers it.
    conversation: str = ""
    model: str = ""


class ToolUsed(_Event, frozen=True, kw_only=True, tag="tool_used"):
    tool: str
    #: In short: a command, a path.
    input: str = ""
    succeeded: bool = True


class Said(_Event, frozen=True, kw_only=True, tag="said"):
    text: str


class Used(_Event, frozen=True, kw_only=True, tag="used"):
    """Tokens and cost of the turn so far, all together."""

    tokens: Tokens


class Finished(_Event, frozen=True, kw_only=True, tag="agent_finished"):
    """The agent says that it is done, and what it did. Its report has no tools: those were told one by one."""

    report: Report = Report()


class Failed(_Event, frozen=True, kw_only=True, tag="agent_failed"):
    failure: Failure
    reason: str


AgentEvent = Started | ToolUsed | Said | Used | Finished | Failed
