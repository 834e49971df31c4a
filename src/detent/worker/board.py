"""The board of a session: the jobs that its run loop gave to workers, and their ends.

A board is pure, and holds nothing that counts: the journal decides what was done. If a board is lost, the next loop
begins with an empty one and records the work of the lost one as interrupted. The session's workflow keeps one.
"""

from typing import NamedTuple

import msgspec

from detent.core.run.agent_event import Failure
from detent.run.job import JobOutcome


class Order(NamedTuple):
    """The place of a worker's run among those of the same workflow: a later one replaces an earlier one."""

    #: The workflow that gave the job.
    flow: str
    #: The term of its loop, the number of the job in it, and how often the job was given to a worker.
    term: int
    job: int
    tries: int

    def is_after(self, other: "Order") -> bool:
        """Whether both are of one workflow, and this one is later. Between workflows there is no order."""
        return self.flow == other.flow and self[1:] > other[1:]


def flow_name(run_id: str) -> str:
    """The name of a workflow in the ids of its runs, from the id that Temporal gave to its execution.

    The end of the id: it begins with the time, which workflows of the same minute share.
    """
    return run_id.replace("-", "")[-12:]


def loop_run(flow: str, term: int) -> str:
    """The id of the run of a loop."""
    return f"run-{flow}-{term}"


def job_run(job: str, tries: int) -> str:
    """The id of the run of a worker that does a job."""
    return f"{job}-{tries}"


def is_later_loop(run: str, other: str) -> bool:
    """Whether `run` is a later loop of the same workflow as the loop `other`."""
    flow, _, term = run.rpartition("-")
    same, _, before = other.rpartition("-")
    return flow == same and term.isdecimal() and before.isdecimal() and int(term) > int(before)


def order_of(run: str) -> Order | None:
    """The order in the id of a run, or of an agent of it; None if no worker of a distributed run made it."""
    parts = run.partition("/")[0].split("-")
    if len(parts) != len(Order._fields) + 1 or not "".join(parts[2:]).isdecimal():
        return None
    return Order(parts[1], *map(int, parts[2:]))


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A job for a worker of any machine."""

    #: Unique in the session.
    id: str
    phase: str
    #: Version of the session in which the phase was runnable.
    version: int
    does_task: bool = False
    #: Labels that the worker must have.
    labels: tuple[str, ...] = ()
    #: The reason of the last failure of each task, for the next attempt.
    failures: dict[str, str] = {}
    #: Whether the machine of an earlier loop may still work on the phase.
    takes_over: bool = False


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a job: its result, or its error."""

    id: str
    outcome: JobOutcome = JobOutcome.ELSEWHERE
    failure: Failure | None = None
    reason: str = ""
    version: int = 0
    #: The attempt or task that was claimed; empty if none was.
    token: str = ""
    task: str | None = None
    fence: int = 0
    had_turn: bool = False
    #: Number of turns that agents were given.
    turns: int = 0
    #: The error that ended the job instead of a result.
    error: str = ""


class Board:
    def __init__(self) -> None:
        #: The loop that was attached last. Messages of earlier loops are ignored.
        self.loop = ""
        self.open: dict[str, Assignment] = {}
        #: Why each stopping job is stopped.
        self.stopping: dict[str, str] = {}
        self.ended: list[Ended] = []

    def attach(self, loop: str) -> list[Assignment]:
        """A loop begins, and every earlier one is over. Returns the jobs that workers still do."""
        self.loop, self.ended = loop, []
        return list(self.open.values())

    def submit(self, loop: str, job: Assignment) -> bool:
        """Whether the job is new. A message that arrives twice, or from an earlier loop, changes nothing."""
        is_known = job.id in self.open or any(ended.id == job.id for ended in self.ended)
        if loop != self.loop or is_known:
            return False
        self.open[job.id] = job
        return True

    def stop(self, loop: str, job: str, why: str) -> bool:
        """Whether the job is to be stopped now."""
        if loop != self.loop or job not in self.open or job in self.stopping:
            return False
        self.stopping[job] = why
        return True

    def end(self, ended: Ended) -> bool:
        """Whether this is the first end of an open job."""
        self.stopping.pop(ended.id, None)
        if self.open.pop(ended.id, None) is None:
            return False
        self.ended.append(ended)
        return True
