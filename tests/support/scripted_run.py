"""A project in which agents of a test do the work, and what a run of it told."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from detent.clients.adapter.agent import Turn
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Finished
from detent.core.run.run_event import End, PersonNeeded, RunEvent
from detent.core.session.phase_state import Report
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.doctor.invariants import check
from detent.engine.project import Clock, Project, open_project, utc_now
from detent.engine.session import SessionHandle
from detent.process.marked import kill_marked, marked
from detent.run.context import RunOptions
from detent.run.scheduler import Runner
from tests.support.project import build_project
from tests.support.waiting import until

Act = Callable[[Turn, Callable[[], bool]], Iterable[AgentEvent]]
ROW = '["a", "b", "c"]'
#: The first phase is done when there is a file called ok.
GATED = '[{key="a", gates=[{kind="command", command="test -e ok || { echo where is ok; false; }"}]}, "b"]'


def done(summary: str = "all of it", **report: Any) -> Finished:
    return Finished(report=Report(summary=summary, **report))


def broken(reason: str = "it broke", failure: Failure = Failure.ERROR) -> Failed:
    return Failed(failure=failure, reason=reason)


def stopped_only(stopping: Callable[[], bool]) -> Failed:
    """What an agent says that never ends by itself."""
    assert until(stopping), "the turn was not stopped"
    return broken("stopped", Failure.STOPPED)


class Cast:
    """One agent for everything. `act` does its turns; without it each is done at once."""

    def __init__(self, act: Act = lambda turn, stopping: (done(),), **settings: Any) -> None:
        self.act = act
        self.settings = AgentSettings(adapter="command", **{"backoff_s": 0.01, **settings})
        self.turns: list[Turn] = []
        self.at_once: Counter[str] = Counter()
        self.most = 0
        #: Of each turn, what was going on besides.
        self.beside: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    def for_phase(self, phase: str, role: str) -> tuple[str, "Cast"]:
        return "actor", self

    def settings_of(self, name: str) -> AgentSettings:
        return self.settings

    def work(self, turn: Turn, stopping: Callable[[], bool]) -> Iterator[AgentEvent]:
        what = turn.task or turn.phase
        with self._lock:
            self.turns.append(turn)
            self.at_once[what] += 1
            going = set(+self.at_once)
            self.most = max(self.most, self.at_once.total())
            for one in going:
                self.beside.setdefault(one, set()).update(going - {one})
        try:
            yield from self.act(turn, stopping)
        finally:
            with self._lock:
                self.at_once[what] -= 1

    @property
    def worked_on(self) -> list[str]:
        return [turn.task or turn.phase for turn in self.turns]

    def prompts(self, phase: str) -> list[str]:
        return [turn.prompt for turn in self.turns if phase in (turn.phase, turn.task)]


class Scene:
    """A session of a workflow called `w`. Whatever is run in it, nothing is left running, and the doctor is content."""

    def __init__(
        self, root: Path, phases: str, *, more: str = "", clock: Clock = utc_now, workflow: str = "w", task: str = "t"
    ) -> None:
        self.root = root
        declared = f"[workflows.w]\nphases = {phases}\n" if phases else ""
        build_project(root, f"{more}\n{declared}")
        self.project: Project = open_project(root, actor="tester", clock=clock)
        self.handle: SessionHandle = self.project.start(workflow, task)
        self.told: list[RunEvent] = []
        self.threads: set[int] = set()

    def close(self) -> None:
        self.project.flush()
        found = check(self.project)
        self.project.close()
        mark = f"DETENT_STATE={self.project.place.state}"
        left = marked(mark)
        kill_marked(mark)
        assert (found, left) == ([], [])

    def runner(
        self, cast: Cast, *, person: Any = None, idle: Callable[[], None] = lambda: None, **options: Any
    ) -> Runner:
        def heard() -> None:
            self.threads.add(threading.get_ident())
            idle()

        return Runner(
            self.project,
            self.handle.id,
            cast,
            options=RunOptions(**options),
            tell=self._tell,
            person=person,
            idle=heard,
        )

    def run(self, cast: Cast | None = None, **given: Any) -> End:
        return self.runner(cast or Cast(), **given).run()

    def beside(self, move: Callable[[SessionHandle], object]) -> object:
        """Do something to the session as another process does it."""
        with open_project(self.root, actor="somebody") as other:
            return move(other.session(self.handle.id))

    @property
    def session(self) -> Session:
        return self.handle.state

    @property
    def statuses(self) -> dict[str, str]:
        return {key: str(state.status) for key, state in self.session.phases.items()}

    @property
    def attempts(self) -> dict[str, int]:
        return {key: state.attempt for key, state in self.session.phases.items()}

    @property
    def escalations(self) -> list[tuple[str, str]]:
        return [(one.kind, one.phase) for one in self.session.escalations]

    @property
    def needed(self) -> list[PersonNeeded]:
        return self.heard(PersonNeeded)

    def heard(self, kind: type) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]

    def is_completed(self, *phases: str) -> bool:
        return all(self.session.phases[key].status is Status.COMPLETED for key in phases)

    def _tell(self, event: RunEvent) -> None:
        self.threads.add(threading.get_ident())
        self.told.append(event)


@contextmanager
def scenes(root: Path) -> Iterator[Callable[..., Scene]]:
    """Makes the scene of a test in the directory, and looks at what is left of it afterwards."""
    made: list[Scene] = []

    def make(phases: str = ROW, **given: Any) -> Scene:
        made.append(Scene(root, phases, **given))
        return made[-1]

    yield make
    for one in made:
        one.close()


FLOW = "plan-implement-review"


#: A run that does not end by itself within this is ended, and the test has failed.
PATIENCE_S = 60.0


def bounded(scene: Scene, cast: Cast, **options: Any) -> End:
    """The end of a run; one that would go on for ever is paused, which is not what anybody expects of it."""
    runner = scene.runner(cast, **options)
    watchdog = threading.Timer(PATIENCE_S, runner.pause, ("it would go on for ever",))
    watchdog.start()
    try:
        return runner.run()
    finally:
        watchdog.cancel()
