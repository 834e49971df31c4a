"""The interface between the runner and the agents.

An agent receives a turn and answers with a stream of events that ends with exactly one `Finished` or `Failed`. An
attempt of a phase has one or several turns: a failed gate causes another turn, with the failure in its prompt.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from detent.core.run.agent_event import AgentEvent
from detent.process.sandbox import Sandbox


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The input of an agent."""

    #: Its name in the journal.
    agent_id: str
    session: str
    phase: str
    #: The fencing token of the attempt.
    token: str
    prompt: str
    #: The directory it works in.
    cwd: str
    #: A directory for files of the turn. The adapter creates it if needed; the runner removes it.
    scratch: str
    #: Variables in addition to the runner's environment.
    env: dict[str, str]
    timeout_s: float
    task: str | None = None
    #: The agent's id of an earlier conversation about the same work, to be continued if the agent can.
    conversation: str = ""
    #: The cost that the budget of the session still allows, in US dollars; None without such a budget.
    max_cost: float | None = None
    #: Makes the sandbox of the turn, once the adapter has written its files; None without one.
    sandbox: Callable[[], Sandbox] | None = None


class Agent(Protocol):
    """Does the work of turns. Several threads may use one instance at the same time."""

    def work(self, turn: Turn, stopping: Callable[[], bool]) -> Iterator[AgentEvent]:
        """Do one turn. Poll `stopping` several times a second; once it is true, end with `Failure.STOPPED`.

        A mistake of the agent is a `Failed`, never an exception. No process of the turn survives the end or the closing
        of the stream. Texts may be long and hold secrets: the runner redacts and cuts them.
        """
        ...
