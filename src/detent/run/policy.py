"""What comes next, told from where things stand. Pure: nothing here does anything.

After a turn of an agent:

| the turn | what comes next |
|---|---|
| finished, every gate is open | the phase is finished |
| finished, a gate is closed that an agent can open | the next turn, with what failed in its prompt |
| the same gates closed, for the same reasons, again and again; or no turn is left | a person decides |
| finished, only gates are closed that a person opens | the phase is held until one has |
| finished, and a person said no | the attempt fails with what was said; a new one follows |
| failed for a passing reason | the same turn again after a pause, a few times |
| failed | the attempt fails; a new one, a few times, then a person decides |
| refused | the attempt fails, and a person decides |
| stopped from here | the attempt fails as interrupted; the next run begins a new one |
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Judgement, Verdict
from detent.core.gate.registry import KINDS
from detent.core.run.agent_event import Failure
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status

#: So often may the same gates be closed for the same reasons after a turn; less often if nothing ran at all.
SAME_FAILURE, SAME_SILENCE = 3, 2


class Next(StrEnum):
    FINISH = "finish"
    TURN = "turn"
    HOLD = "hold"
    REJECTED = "rejected"
    GIVE_UP = "give_up"


def after_gates(
    gates: Sequence[Gate], judged: Sequence[Judgement], *, turns_left: int, repeats: int, sees_tests: bool = True
) -> Next:
    """What follows from the verdicts. `repeats`: how many turns in a row ended with these very verdicts."""
    closed = [one for one in judged if one.verdict is not Verdict.PASS]
    if not closed:
        return Next.FINISH
    for_agents = [one for one in closed if not is_personal(gates, one, sees_tests=sees_tests)]
    if not for_agents:
        return Next.REJECTED if is_rejected(judged) else Next.HOLD
    is_silent = all(one.verdict in (Verdict.PENDING, Verdict.ERROR) for one in for_agents)
    is_stuck = repeats >= (SAME_SILENCE if is_silent else SAME_FAILURE)
    return Next.GIVE_UP if is_stuck or turns_left <= 0 else Next.TURN


def is_rejected(judged: Sequence[Judgement]) -> bool:
    """Whether somebody who had to agree said no, so that nobody is waited for any more."""
    return any(one.verdict is Verdict.FAIL and KINDS[one.kind].opened_by.is_person for one in judged)


def is_personal(gates: Sequence[Gate], judged: Judgement, *, sees_tests: bool = True) -> bool:
    """Whether only a person can open the gate: by voting, by answering, or by judging what no command can.

    `sees_tests`: a gate that asks for tests and names no command can be opened all the same.
    """
    gate = next(gate for gate in gates if gate_name(gate) == judged.gate)
    return gate.needs_person(judged.verdict, sees_tests=sees_tests)


def is_only_stale(judged: Sequence[Judgement]) -> bool:
    """Whether nothing but time stands between the verdicts and an end: what passed has to be run again."""
    closed = [one.verdict for one in judged if one.verdict is not Verdict.PASS]
    return Verdict.STALE in closed and set(closed) <= {Verdict.STALE, Verdict.PENDING}


def may_try_again(failure: Failure, *, tries: int, attempts: int) -> bool:
    """Whether a failed attempt is followed by another one without a person."""
    return failure not in (Failure.REFUSED, Failure.STOPPED) and tries < attempts


def pause_before(again: int, backoff_s: float) -> float:
    """How long to wait before a turn is tried again for the `again`th time: twice as long each time, to a limit."""
    return min(backoff_s * 2.0 ** (again - 1), 300.0)


class Runnable(NamedTuple):
    """A phase that can be worked on now, and how many can work on it at once: on a phase one, on its tasks several."""

    phase: str
    slots: int = 1
    has_tasks: bool = False


def runnable(session: Session, *, busy: Mapping[str, int], held: Collection[str]) -> list[Runnable]:
    """The phases to work on next, in graph order: what is begun first, then what failed, then what is ready."""
    if session.status is not SessionStatus.ACTIVE:
        return []
    asked = {one.phase for one in session.escalations}
    live = [key for key in session.with_status(Status.IN_PROGRESS) if key not in held and key not in asked]
    found = [one for key in live if (one := _runnable(session, key, busy.get(key, 0))).slots > 0]
    if session.escalations or session.awaiting_review:
        # Nothing new begins while a person has something to decide.
        return found
    failed = [key for key in session.with_status(Status.FAILED) if not session.open_needs(key)]
    return found + [Runnable(key) for key in (*failed, *session.ready) if key not in busy]


def _runnable(session: Session, phase: str, busy: int) -> Runnable:
    if phase != task_phase(session) or session.tasks.is_completed:
        return Runnable(phase, 0 if busy else 1)
    return Runnable(phase, session.tasks.ready_count, has_tasks=True)


#: The phases in which tasks are done where the workflow does not say: the first that it has.
_TASK_PHASES = ("IMPLEMENT", "06-implementation", "development")


def task_phase(session: Session) -> str | None:
    """The phase that the session's tasks are done in; none if it has no tasks."""
    if not len(session.tasks):
        return None
    declared = (phase.key for phase in session.workflow.phases if phase.tasks)
    return next((key for key in (*declared, *_TASK_PHASES) if key in session.phases), None)
