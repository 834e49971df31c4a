"""The view of a run: a fold over its events that keeps the work in progress."""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from detent.core.gate.evidence import Verdict
from detent.core.run.agent_event import AgentEvent, Failed, Finished, Said, Started, ToolStarted, ToolUsed, Used
from detent.core.run.run_event import (
    AgentDid,
    GateJudged,
    GateStarted,
    PersonNeeded,
    PhaseEnded,
    Retrying,
    RunEnded,
    RunEvent,
    RunStarted,
    StepRan,
    TaskEnded,
    TurnStarted,
)
from detent.core.session.phase_state import Tokens

#: Maximum number of lines of an agent that a view keeps, and their length.
MAX_LINES, MAX_LINE = 3, 300
NOTHING = Tokens()


class Doing(StrEnum):
    """The activity of a job."""

    WORKING = "working"
    STEPS = "steps"
    GATE = "gate"
    RETRYING = "retrying"
    #: The turn has ended, and its result is judged.
    TURN_OVER = "turn_over"


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """The work of an agent on a phase, or on one task of it."""

    phase: str
    task: str | None = None
    agent: str = ""
    role: str = ""
    model: str = ""
    attempt: int = 1
    turn: int = 1
    since: datetime
    doing: Doing = Doing.WORKING
    #: Details: the gate and its command, the step, the reason of a retry.
    note: str = ""
    #: The time of the next retry.
    until: datetime | None = None
    #: The tool in use, or the last one.
    tool: ToolStarted | ToolUsed | None = None
    tools: int = 0
    #: The time of the last event.
    heard: datetime
    #: The last lines of the agent.
    lines: tuple[str, ...] = ()
    #: The tokens of the turn so far.
    tokens: Tokens = NOTHING


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    run: str = ""
    session: str = ""
    parallel: int = 1
    started_at: datetime | None = None
    taken_over: tuple[str, ...] = ()
    #: Jobs in progress, in the order in which they began.
    jobs: tuple[JobView, ...] = ()
    #: Phase in progress to its gates and their verdicts.
    verdicts: dict[str, dict[str, GateJudged]] = {}
    #: Phase to the tokens of its finished turns.
    spent: dict[str, Tokens] = {}
    #: Open requests to a person, oldest first.
    needs: tuple[PersonNeeded, ...] = ()
    ended: RunEnded | None = None

    @property
    def tokens(self) -> Tokens:
        """The tokens of the run so far."""
        return sum(self.spent.values(), self.unreported)

    @property
    def unreported(self) -> Tokens:
        """The tokens of turns in progress."""
        return sum((job.tokens for job in self.jobs), NOTHING)

    def tokens_of(self, phase: str) -> Tokens:
        return sum((job.tokens for job in self.of_phase(phase)), self.spent.get(phase, NOTHING))

    def of_phase(self, phase: str) -> tuple[JobView, ...]:
        return tuple(job for job in self.jobs if job.phase == phase)


def fold(view: RunView, event: RunEvent) -> RunView:
    """The view after `event`. Never fails: a view may start in the middle of a run."""
    match event:
        case RunStarted():
            return RunView(
                run=event.run,
                session=event.session,
                parallel=event.parallel,
                started_at=event.at,
                taken_over=event.taken_over,
            )
        case TurnStarted():
            return _turn_started(view, event)
        case AgentDid():
            return _agent_did(view, event, event.did)
        case StepRan():
            note = f"{event.step}: {event.said}" if event.said else event.step
            return _changed(view, event, event.task, doing=Doing.STEPS, note=note)
        case Retrying():
            until = event.at + timedelta(seconds=event.pause_s)
            note = f"try {event.again} of {event.of}: {event.reason}"
            paid = _paid(view, event.phase, event.task)
            return _changed(paid, event, event.task, doing=Doing.RETRYING, note=note, until=until)
        case GateStarted():
            note = f"{event.gate}: {event.command}" if event.command else event.gate
            return _changed(view, event, None, doing=Doing.GATE, note=note)
        case GateJudged():
            judged = {**view.verdicts.get(event.phase, {}), event.gate: event}
            verdicts = {**view.verdicts, event.phase: judged}
            known = replace(view, verdicts=verdicts)
            if event.verdict is Verdict.PASS:
                known = _without_needs(known, event.phase, event.gate)
            return _changed(known, event, None, doing=Doing.TURN_OVER, note="") if _is_shown(known, event) else known
        case TaskEnded():
            return _without(view, event.phase, event.task)
        case PhaseEnded():
            left = _without_needs(view, event.phase)
            for job in view.of_phase(event.phase):
                left = _without(left, event.phase, job.task)
            verdicts = {phase: judged for phase, judged in left.verdicts.items() if phase != event.phase}
            return replace(left, verdicts=verdicts)
        case PersonNeeded():
            others = [need for need in view.needs if need.key != event.key]
            return replace(view, needs=(*others, event))
        case RunEnded():
            for job in view.jobs:
                view = _without(view, job.phase, job.task)
            return replace(view, ended=event)


def _turn_started(view: RunView, event: TurnStarted) -> RunView:
    paid = _without_needs(_paid(view, event.phase, event.task), event.phase)
    job = JobView(
        phase=event.phase,
        task=event.task,
        agent=event.agent,
        role=event.role,
        attempt=event.attempt,
        turn=event.turn,
        since=event.at,
        heard=event.at,
    )
    return _put(paid, job)


def _agent_did(view: RunView, event: AgentDid, did: AgentEvent) -> RunView:
    match did:
        case Started():
            return _changed(view, event, event.task, model=did.model)
        case ToolStarted():
            return _changed(view, event, event.task, doing=Doing.WORKING, tool=did)
        case ToolUsed():
            used = _job(view, event.phase, event.task, event.at).tools + 1
            return _changed(view, event, event.task, doing=Doing.WORKING, tool=did, tools=used)
        case Said():
            lines = [line.strip()[:MAX_LINE] for line in did.text.splitlines() if line.strip()]
            before = _job(view, event.phase, event.task, event.at).lines
            return _changed(view, event, event.task, doing=Doing.WORKING, lines=(*before, *lines)[-MAX_LINES:])
        case Used():
            return _changed(view, event, event.task, tokens=did.tokens)
        case Finished():
            if did.report.tokens != NOTHING:
                view = _changed(view, event, event.task, tokens=did.report.tokens)
            over = _changed(view, event, event.task, doing=Doing.TURN_OVER, note="")
            return _paid(over, event.phase, event.task)
        case Failed():
            over = _changed(view, event, event.task, doing=Doing.TURN_OVER, note=f"{did.failure}: {did.reason}")
            return _paid(over, event.phase, event.task)


def _is_shown(view: RunView, event: GateJudged) -> bool:
    """Whether the view has a job for the verdict. A verdict without a run is no job."""
    return any(job.task is None for job in view.of_phase(event.phase))


def _changed(view: RunView, event: RunEvent, task: str | None, **changes: object) -> RunView:
    assert not isinstance(event, RunStarted | RunEnded)
    job = _job(view, event.phase, task, event.at)
    return _put(view, replace(job, heard=event.at, **changes))


def _job(view: RunView, phase: str, task: str | None, at: datetime) -> JobView:
    matches = (job for job in view.jobs if (job.phase, job.task) == (phase, task))
    return next(matches, None) or JobView(phase=phase, task=task, since=at, heard=at)


def _put(view: RunView, job: JobView) -> RunView:
    key = (job.phase, job.task)
    jobs = {(other.phase, other.task): other for other in view.jobs} | {key: job}
    return replace(view, jobs=tuple(jobs.values()))


def _paid(view: RunView, phase: str, task: str | None) -> RunView:
    """Adds the tokens of the job to those of its phase; the next turn of the job starts at zero."""
    for job in view.jobs:
        if (job.phase, job.task) == (phase, task) and job.tokens != NOTHING:
            spent = {**view.spent, phase: view.spent.get(phase, NOTHING) + job.tokens}
            paid = replace(view, spent=spent)
            return _put(paid, replace(job, tokens=NOTHING))
    return view


def _without(view: RunView, phase: str, task: str | None) -> RunView:
    paid = _paid(view, phase, task)
    jobs = tuple(job for job in paid.jobs if (job.phase, job.task) != (phase, task))
    return replace(paid, jobs=jobs)


def _without_needs(view: RunView, phase: str, about: str | None = None) -> RunView:
    """The view without the requests of the phase; with `about`, only without that one."""
    needs = tuple(need for need in view.needs if need.phase != phase or about not in (None, need.about))
    return replace(view, needs=needs)
