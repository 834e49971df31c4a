"""Values that tests start from. Every argument has a default, so that a test names only what it is about."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from detent.core.actor import Actor, ActorKind, Channel
from detent.core.session.commands import Start
from detent.core.session.decide import decide_start
from detent.core.session.events import Commit, Discovery, Event, Options, PhaseRedone, TaskWritten
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.phase_state import PhaseState
from detent.core.session.phases import Phases
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from detent.engine.results import Outcome

NOON = datetime(2026, 2, 9, 12, 0, tzinfo=UTC)


class TickingClock:
    """Each reading is `step` later than the one before, so that a run always has the same times."""

    def __init__(self, start: datetime = NOON, step: timedelta = timedelta(seconds=1)) -> None:
        self.now = start
        self.step = step

    def __call__(self) -> datetime:
        self.now += self.step
        return self.now


def workflow(
    needs: Mapping[str, tuple[str, ...]] | None = None,
    *,
    name: str = "trial",
    prefix: str | None = None,
    sizes: dict[str, tuple[str, ...]] | None = None,
) -> Workflow:
    """A graph from phase key to the keys it needs; three phases in a row if nothing is said."""
    needs = {"a": (), "b": ("a",), "c": ("b",)} if needs is None else needs
    phases = tuple(Phase(key=key, title=key.upper(), agent=f"{key}-agent", needs=needs[key]) for key in needs)
    return Workflow(name=name, phases=phases, prefix=prefix, sizes=sizes or {})


def row(*keys: str) -> Workflow:
    """Phases that follow one another."""
    return workflow({key: keys[index - 1 : index] if index else () for index, key in enumerate(keys)})


def diamond() -> Workflow:
    return workflow({"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")})


def start(
    graph: Workflow | None = None,
    *,
    session: str = "WFS-trial",
    task: str = "try it",
    number: int | None = None,
    size: str | None = None,
    discovery: Discovery | None = None,
) -> Start:
    return Start(
        session=session,
        task=task,
        workflow=graph or workflow(),
        number=number,
        folder="try-it",
        options=Options(gates=False),
        size=size,
        discovery=discovery,
    )


def actor(name: str = "tester") -> Actor:
    return Actor(name=name, kind=ActorKind.PERSON, channel=Channel.LIBRARY)


def commit(version: int = 1, *events: Event, at: datetime = NOON, by: str = "tester", state: str = "") -> Commit:
    return Commit(version=version, at=at, actor=actor(by), events=events, state=state)


def opened(graph: Workflow | None = None, **settings: Any) -> Session:
    """A session as `start` leaves it."""
    return evolve(None, commit(1, *decide_start(start(graph, **settings))))


def session_at(
    statuses: dict[str, Status] | None = None, *, graph: Workflow | None = None, version: int = 9
) -> Session:
    """An active session whose phases stand as told; phases not named are pending. Begun phases are at attempt 1."""
    session = opened(graph)
    phases = {key: _phase_at((statuses or {}).get(key, Status.PENDING), key) for key in session.phases}
    return msgspec.structs.replace(session, phases=Phases(phases), version=version)


def _phase_at(status: Status, key: str) -> PhaseState:
    state = PhaseState(status=status, agent=f"{key}-agent")
    match status:
        case Status.PENDING:
            return state
        case Status.SKIPPED:
            return msgspec.structs.replace(state, skip_reason="not needed")
    begun = msgspec.structs.replace(state, attempt=1, fence=1, started=NOON, begun=NOON)
    match status:
        case Status.COMPLETED:
            return msgspec.structs.replace(begun, completed=NOON, gate_passed=NOON, summary=f"{key} is done")
        case Status.FAILED:
            return msgspec.structs.replace(begun, completed=NOON, error=f"{key} broke")
    return begun


def after(session: Session, events: Iterable[Event], *, at: datetime = NOON, by: str = "tester") -> Session:
    return evolve(session, commit(session.version + 1, *events, at=at, by=by))


def journal(length: int, *, graph: Workflow | None = None) -> list[Commit]:
    """`length` commits that a journal could hold, each with the fingerprint of the state after it."""
    session: Session | None = None
    commits: list[Commit] = []
    for version in range(1, length + 1):
        if session is None:
            events = decide_start(start(graph))
        else:
            first = session.workflow.order[0]
            events = (PhaseRedone(phase=first, attempt=session.phases[first].attempt + 1, reason="once more"),)
        draft = commit(version, *events, at=NOON + timedelta(seconds=version))
        session = evolve(session, draft)
        commits.append(msgspec.structs.replace(draft, state=fingerprint(session)))
    return commits


def written_tasks(outcome: Outcome) -> list[str]:
    """The tasks that a command added or changed."""
    return [event.task for event in outcome.events if isinstance(event, TaskWritten)]


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 20, 10, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)
