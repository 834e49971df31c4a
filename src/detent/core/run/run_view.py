"""What somebody who looks on knows of a run: a fold over what it told, which loses what is no longer going on."""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from detent.core.gate.evidence import Verdict
from detent.core.run.agent_event import AgentEvent, Failed, Finished, Said, Started, ToolUsed, Used
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

#: Of what an agent says, so many lines of so many characters are remembered.
MOST_SAID, MAX_SAID = 3, 300
NOTHING = Tokens()


class Doing(StrEnum):
    """What is going on at a phase."""

    WORKING = "working"
    STEPS = "steps"
    GATE = "gate"
    RETRYING = "retrying"
    #: The turn is over, and what comes of it is being found out.
    TURN_OVER = "turn_over"


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """An agent at a phase, or at one task of it."""

    phase: str
    task: str | None = None
    agent: str = ""
    role: str = ""
    model: str = ""
    attempt: int = 1
    turn: int = 1
    since: datetime
    doing: Doing = Doing.WORKING
    #: More about that: the gate and its command, the step, why it is tried again.
    note: str = ""
    #: When the next try comes.
    until: datetime | None = None
    tool: ToolUsed | None = None
    tools: int = 0
    #: The last sign of life.
    heard: datetime
    said: tuple[str, ...] = ()
    #: What the turn has used so far.
    tokens: Tokens = NOTHING


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    run: str = ""
    session: str = ""
    parallel: int = 1
    started_at: datetime | None = None
    taken_over: tuple[str, ...] = ()
    #: What is going on, in the order in which it began.
    jobs: tuple[JobView, ...] = ()
    #: By phase and gate, of the phases that are being worked on.
    verdicts: dict[str, dict[str, GateJudged]] = {}
    #: By phase, what the turns used that are over.
    spent: dict[str, Tokens] = {}
    #: What only a person can give, oldest first.
    needs: tuple[PersonNeeded, ...] = ()
    ended: RunEnded | None = None

    @property
    def tokens(self) -> Tokens:
        """Of the whole run, so far."""
        return sum(self.spent.values(), self.unreported)

    @property
    def unreported(self) -> Tokens:
        """Of the turns that are not over."""
        return sum((job.tokens for job in self.jobs), NOTHING)

    def tokens_of(self, phase: str) -> Tokens:
        return sum((job.tokens for job in self.of_phase(phase)), self.spent.get(phase, NOTHING))

    def of_phase(self, phase: str) -> tuple[JobView, ...]:
        return tuple(job for job in self.jobs if job.phase == phase)


def fold(view: RunView, event: RunEvent) -> RunView:
    """The picture when `event` was told too. Nothing that is told can fail: a picture may begin in the middle."""
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
            known = msgspec.structs.replace(view, verdicts=verdicts)
            if event.verdict is Verdict.PASS:
                known = _needless(known, event.phase, event.gate)
            return _changed(known, event, None, doing=Doing.TURN_OVER, note="") if _is_shown(known, event) else known
        case TaskEnded():
            return _without(view, event.phase, event.task)
        case PhaseEnded():
            gone = _needless(view, event.phase)
            for job in view.of_phase(event.phase):
                gone = _without(gone, event.phase, job.task)
            verdicts = {phase: found for phase, found in gone.verdicts.items() if phase != event.phase}
            return msgspec.structs.replace(gone, verdicts=verdicts)
        case PersonNeeded():
            others = [one for one in view.needs if one.key != event.key]
            return msgspec.structs.replace(view, needs=(*others, event))
        case RunEnded():
            for job in view.jobs:
                view = _without(view, job.phase, job.task)
            return msgspec.structs.replace(view, ended=event)


def _turn_started(view: RunView, event: TurnStarted) -> RunView:
    paid = _needless(_paid(view, event.phase, event.task), event.phase)
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
        case ToolUsed():
            used = _job(view, event.phase, event.task, event.at).tools + 1
            return _changed(view, event, event.task, doing=Doing.WORKING, tool=did, tools=used)
        case Said():
            lines = [line.strip()[:MAX_SAID] for line in did.text.splitlines() if line.strip()]
            before = _job(view, event.phase, event.task, event.at).said
            said = (*before, *lines)[-MOST_SAID:]
            return _changed(view, event, event.task, doing=Doing.WORKING, said=said)
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
    """Whether the verdict is about work that is shown; one that is judged without a run is no work of its own."""
    return any(job.task is None for job in view.of_phase(event.phase))


def _changed(view: RunView, event: RunEvent, task: str | None, **changes: object) -> RunView:
    assert not isinstance(event, RunStarted | RunEnded)
    job = _job(view, event.phase, task, event.at)
    return _put(view, msgspec.structs.replace(job, heard=event.at, **changes))


def _job(view: RunView, phase: str, task: str | None, at: datetime) -> JobView:
    found = (job for job in view.jobs if (job.phase, job.task) == (phase, task))
    return next(found, None) or JobView(phase=phase, task=task, since=at, heard=at)


def _put(view: RunView, job: JobView) -> RunView:
    key = (job.phase, job.task)
    if any((one.phase, one.task) == key for one in view.jobs):
        jobs = tuple(job if (one.phase, one.task) == key else one for one in view.jobs)
    else:
        jobs = (*view.jobs, job)
    return msgspec.structs.replace(view, jobs=jobs)


def _paid(view: RunView, phase: str, task: str | None) -> RunView:
    """What the turn used is counted as used; a turn that follows counts from nothing."""
    for job in view.jobs:
        if (job.phase, job.task) == (phase, task) and job.tokens != NOTHING:
            spent = {**view.spent, phase: view.spent.get(phase, NOTHING) + job.tokens}
            paid = msgspec.structs.replace(view, spent=spent)
            return _put(paid, msgspec.structs.replace(job, tokens=NOTHING))
    return view


def _without(view: RunView, phase: str, task: str | None) -> RunView:
    paid = _paid(view, phase, task)
    jobs = tuple(job for job in paid.jobs if (job.phase, job.task) != (phase, task))
    return msgspec.structs.replace(paid, jobs=jobs)


def _needless(view: RunView, phase: str, about: str | None = None) -> RunView:
    """The phase goes on, so nobody is waited for there any more; with `about`, not for that."""
    kept = tuple(one for one in view.needs if one.phase != phase or about not in (None, one.about))
    return msgspec.structs.replace(view, needs=kept)
