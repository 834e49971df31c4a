"""What the runner and the agents say to each other.

An agent is given a turn and answers with a stream of events that ends with exactly one `Finished` or `Failed`. One
attempt of a phase has one turn, or several: a gate that fails makes the next one, with what failed in its prompt.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from detent.core.run.agent_event import AgentEvent


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is given."""

    #: Its name in the journal.
    agent_id: str
    session: str
    phase: str
    #: The token that goes with everything that is done about the attempt.
    token: str
    prompt: str
    #: The directory it works in.
    cwd: str
    #: A directory of its own for files that come with the turn: to be made if it is needed, removed afterwards.
    scratch: str
    #: What its environment has besides that of the runner.
    env: dict[str, str]
    timeout_s: float
    task: str | None = None


class Agent(Protocol):
    """Does the work of turns. An instance may be asked for several turns at once, from several threads."""

    def work(self, turn: Turn, stopping: Callable[[], bool]) -> Iterator[AgentEvent]:
        """Do one turn. `stopping` is asked several times a second; once it is true the turn ends as `Failure.STOPPED`.

        Never raises for what an agent can do wrong: that is a `Failed`. Nothing that was started for the turn goes on
        when the stream has ended, or was closed.
        """
        ...
