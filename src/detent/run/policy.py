"""The policy of a run: pure functions from the state of the session to the next step.

After a turn of an agent:

| the turn | next step |
|---|---|
| finished, every gate is open | finish the phase |
| finished, a gate is closed that an agent can open | another turn, with the failure in its prompt |
| the same gates closed several times for the same reasons; or no turn is left | escalate to a person |
| finished, only gates are closed that a person opens | hold the phase until a person opens them |
| finished, and a person rejected it | fail the attempt with the reason; begin a new one |
| failed for a passing reason | retry the turn after a pause, a few times |
| never answered, for a passing reason | retry it as often as all attempts would; then escalate, in the same attempt |
| failed | fail the attempt; begin a new one, a few times, then escalate to a person |
| refused | fail the attempt and escalate to a person |
| stopped by the run | fail the attempt as interrupted; the next run begins a new one |
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from itertools import chain, islice
from typing import NamedTuple

from detent.core.gate import Gate
from detent.core.gate.closed import closed_gates, closed_now, is_personal, is_rejected
from detent.core.gate.evidence import Judgement, Verdict
from detent.core.run.agent_event import Failure
from detent.core.session.open_decision import task_phase
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status

#: Maximum number of turns in a row with the same closed gates and reasons; fewer if no gate could run.
SAME_FAILURE, SAME_SILENCE = 3, 2
#: The longest wait that a service can ask for.
MAX_RETRY_AFTER_S = 3_600.0


class Next(StrEnum):
    FINISH = "finish"
    TURN = "turn"
    HOLD = "hold"
    REJECTED = "rejected"
    GIVE_UP = "give_up"


def after_gates(
    gates: Sequence[Gate], judged: Sequence[Judgement], *, turns_left: int, repeats: int, sees_tests: bool = True
) -> Next:
    """The next step after the verdicts. `repeats`: number of turns in a row with these verdicts."""
    closed = closed_now(gates, judged)
    if not closed:
        return Next.FINISH
    for_agents = [judgement for judgement in closed if not is_personal(gates, judgement, sees_tests=sees_tests)]
    if not for_agents:
        return Next.REJECTED if is_rejected(judged) else Next.HOLD
    is_silent = all(judgement.verdict in (Verdict.PENDING, Verdict.ERROR) for judgement in for_agents)
    is_stuck = repeats >= (SAME_SILENCE if is_silent else SAME_FAILURE)
    return Next.GIVE_UP if is_stuck or turns_left <= 0 else Next.TURN


def is_only_stale(judged: Sequence[Judgement]) -> bool:
    """Whether no gate failed and some are stale: passed gates must run again."""
    verdicts = {judgement.verdict for judgement in closed_gates(judged)}
    return Verdict.STALE in verdicts and verdicts <= {Verdict.STALE, Verdict.PENDING}


def may_try_again(failure: Failure, *, tries: int, attempts: int) -> bool:
    """Whether another attempt follows a failed one without a person."""
    return failure not in (Failure.REFUSED, Failure.STOPPED) and tries < attempts


def pause_before(retry: int, backoff_s: float, retry_after_s: float = 0.0) -> float:
    """Seconds to wait before a retry; doubles with each `retry`, up to a limit. Not shorter than the service asks."""
    return max(min(backoff_s * 2.0 ** (retry - 1), 300.0), min(retry_after_s, MAX_RETRY_AFTER_S))


def retries_left(retry: int, *, retries: int, attempts: int, answered: bool) -> int:
    """Number of retries of a turn that failed for a passing reason; `retry` is the next one.

    A turn that was never answered uses up no attempt, so it has the retries of all attempts.
    """
    return (retries if answered else (retries + 1) * attempts - 1) - retry + 1


class Runnable(NamedTuple):
    """A phase to work on now, and its number of parallel jobs: one for a phase, several for its tasks."""

    phase: str
    slots: int = 1
    has_tasks: bool = False


def runnable(
    session: Session, *, busy: Mapping[str, int], held: Collection[str], most: int | None = None
) -> list[Runnable]:
    """The phases to work on next, in graph order: those in progress first, then failed ones, then ready ones.

    `most` is the number of phases after which the search ends.
    """
    if session.status is not SessionStatus.ACTIVE:
        return []
    escalated = {escalation.phase for escalation in session.escalations}
    live = [key for key in session.with_status(Status.IN_PROGRESS) if key not in held and key not in escalated]
    in_progress = [phase for key in live if (phase := _runnable(session, key, busy.get(key, 0))).slots > 0]
    if session.escalations or session.awaiting_review:
        # No phase begins while a decision of a person is open.
        return in_progress
    failed = (key for key in session.with_status(Status.FAILED) if not session.open_needs(key))
    new = (Runnable(key) for key in chain(failed, session.each_ready()) if key not in busy)
    return list(islice(chain(in_progress, new), most))


def _runnable(session: Session, phase: str, busy: int) -> Runnable:
    if phase != task_phase(session) or session.tasks.is_completed:
        return Runnable(phase, 0 if busy else 1)
    return Runnable(phase, session.tasks.ready_count, has_tasks=True)
