"""What somebody who looks on knows of a run: a fold over what it told, which loses what is no longer going on."""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from detent.core.agent_event import AgentEvent, Failed, Finished, Said, Started, ToolUsed, Used
from detent.core.gate.evidence import Verdict
from detent.core.phase_state import Tokens
from detent.core.run_event import (
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


class Work(msgspec.Struct, frozen=True, kw_only=True):
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


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    run: str = ""
    session: str = ""
    parallel: int = 1
    started_at: datetime | None = None
    taken_over: tuple[str, ...] = ()
    #: What is going on, in the order in which it began.
    works: tuple[Work, ...] = ()
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
        return sum((work.tokens for work in self.works), NOTHING)

    def tokens_of(self, phase: str) -> Tokens:
        return sum((work.tokens for work in self.of_phase(phase)), self.spent.get(phase, NOTHING))

    def of_phase(self, phase: str) -> tuple[Work, ...]:
        return tuple(work for work in self.works if work.phase == phase)


def after(picture: Picture, event: RunEvent) -> Picture:
    """The picture when `event` was told too. Nothing that is told can fail: a picture may begin in the middle."""
    match event:
        case RunStarted():
            return Picture(
                run=event.run,
                session=event.session,
                parallel=event.parallel,
                started_at=event.at,
                taken_over=event.taken_over,
            )
        case TurnStarted():
            return _turn_started(picture, event)
        case AgentDid():
            return _agent_did(picture, event, event.did)
        case StepRan():
            note = f"{event.step}: {event.said}" if event.said else event.step
            return _changed(picture, event, event.task, doing=Doing.STEPS, note=note)
        case Retrying():
            until = event.at + timedelta(seconds=event.pause_s)
            note = f"try {event.again} of {event.of}: {event.reason}"
            paid = _paid(picture, event.phase, event.task)
            return _changed(paid, event, event.task, doing=Doing.RETRYING, note=note, until=until)
        case GateStarted():
            note = f"{event.gate}: {event.command}" if event.command else event.gate
            return _changed(picture, event, None, doing=Doing.GATE, note=note)
        case GateJudged():
            judged = {**picture.verdicts.get(event.phase, {}), event.gate: event}
            verdicts = {**picture.verdicts, event.phase: judged}
            known = msgspec.structs.replace(picture, verdicts=verdicts)
            if event.verdict is Verdict.PASS:
                known = _needless(known, event.phase, event.gate)
            return _changed(known, event, None, doing=Doing.TURN_OVER, note="") if _is_shown(known, event) else known
        case TaskEnded():
            return _without(picture, event.phase, event.task)
        case PhaseEnded():
            gone = _needless(picture, event.phase)
            for work in picture.of_phase(event.phase):
                gone = _without(gone, event.phase, work.task)
            verdicts = {phase: found for phase, found in gone.verdicts.items() if phase != event.phase}
            return msgspec.structs.replace(gone, verdicts=verdicts)
        case PersonNeeded():
            others = [one for one in picture.needs if one.key != event.key]
            return msgspec.structs.replace(picture, needs=(*others, event))
        case RunEnded():
            for work in picture.works:
                picture = _without(picture, work.phase, work.task)
            return msgspec.structs.replace(picture, ended=event)


def _turn_started(picture: Picture, event: TurnStarted) -> Picture:
    paid = _needless(_paid(picture, event.phase, event.task), event.phase)
    work = Work(
        phase=event.phase,
        task=event.task,
        agent=event.agent,
        role=event.role,
        attempt=event.attempt,
        turn=event.turn,
        since=event.at,
        heard=event.at,
    )
    return _put(paid, work)


def _agent_did(picture: Picture, event: AgentDid, did: AgentEvent) -> Picture:
    match did:
        case Started():
            return _changed(picture, event, event.task, model=did.model)
        case ToolUsed():
            used = _work(picture, event.phase, event.task, event.at).tools + 1
            return _changed(picture, event, event.task, doing=Doing.WORKING, tool=did, tools=used)
        case Said():
            lines = [line.strip()[:MAX_SAID] for line in did.text.splitlines() if line.strip()]
            before = _work(picture, event.phase, event.task, event.at).said
            said = (*before, *lines)[-MOST_SAID:]
            return _changed(picture, event, event.task, doing=Doing.WORKING, said=said)
        case Used():
            return _changed(picture, event, event.task, tokens=did.tokens)
        case Finished():
            if did.report.tokens != NOTHING:
                picture = _changed(picture, event, event.task, tokens=did.report.tokens)
            over = _changed(picture, event, event.task, doing=Doing.TURN_OVER, note="")
            return _paid(over, event.phase, event.task)
        case Failed():
            over = _changed(picture, event, event.task, doing=Doing.TURN_OVER, note=f"{did.failure}: {did.reason}")
            return _paid(over, event.phase, event.task)


def _is_shown(picture: Picture, event: GateJudged) -> bool:
    """Whether the verdict is about work that is shown; one that is judged without a run is no work of its own."""
    return any(work.task is None for work in picture.of_phase(event.phase))


def _changed(picture: Picture, event: RunEvent, task: str | None, **changes: object) -> Picture:
    assert not isinstance(event, RunStarted | RunEnded)
    work = _work(picture, event.phase, task, event.at)
    return _put(picture, msgspec.structs.replace(work, heard=event.at, **changes))


def _work(picture: Picture, phase: str, task: str | None, at: datetime) -> Work:
    found = (work for work in picture.works if (work.phase, work.task) == (phase, task))
    return next(found, None) or Work(phase=phase, task=task, since=at, heard=at)


def _put(picture: Picture, work: Work) -> Picture:
    key = (work.phase, work.task)
    if any((one.phase, one.task) == key for one in picture.works):
        works = tuple(work if (one.phase, one.task) == key else one for one in picture.works)
    else:
        works = (*picture.works, work)
    return msgspec.structs.replace(picture, works=works)


def _paid(picture: Picture, phase: str, task: str | None) -> Picture:
    """What the turn used is counted as used; a turn that follows counts from nothing."""
    for work in picture.works:
        if (work.phase, work.task) == (phase, task) and work.tokens != NOTHING:
            spent = {**picture.spent, phase: picture.spent.get(phase, NOTHING) + work.tokens}
            paid = msgspec.structs.replace(picture, spent=spent)
            return _put(paid, msgspec.structs.replace(work, tokens=NOTHING))
    return picture


def _without(picture: Picture, phase: str, task: str | None) -> Picture:
    paid = _paid(picture, phase, task)
    works = tuple(work for work in paid.works if (work.phase, work.task) != (phase, task))
    return msgspec.structs.replace(paid, works=works)


def _needless(picture: Picture, phase: str, about: str | None = None) -> Picture:
    """The phase goes on, so nobody is waited for there any more; with `about`, not for that."""
    kept = tuple(one for one in picture.needs if one.phase != phase or about not in (None, one.about))
    return msgspec.structs.replace(picture, needs=kept)
