"""What is interrupted: how it is prepared, what is done, and what must hold whatever came in between."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from detent.core.session.session import Session, SessionStatus
from detent.doctor.invariants import fix
from detent.engine.confirm import is_confirmed
from detent.engine.project import Project, open_project
from detent.engine.projections.history import NAME as HISTORY
from tests.support.project import build_project
from tests.support.values import TickingClock, diamond, row

TASK = "try it"
EDIT = "a person wrote this"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    name: str
    prepare: Callable[[Project], None]
    act: Callable[[Project], object]
    #: So many fault points there must be, or the test counts nothing.
    least: int
    #: What a person does to the files between the preparation and the act.
    edit: Callable[[Path], None] = field(default=lambda _: None)
    #: How it is set right afterwards.
    repair: Callable[[Project], object] = Project.reconcile

    def __str__(self) -> str:
        return self.name


def reopen(directory: Path, *, late: bool = False) -> Project:
    """Always at the same time, so that the same commands make the same journal; `late` is after all of them."""
    clock = TickingClock()
    if late:
        clock.now = clock.now.replace(year=2027)
    project = open_project(directory, actor="tester", clock=clock)
    # The question at the terminal is no call of the store.
    project.confirm = is_confirmed
    return project


def prepare(scenario: Scenario, directory: Path) -> Path:
    directory.mkdir()
    build_project(directory)
    with reopen(directory) as project:
        scenario.prepare(project)
    scenario.edit(directory)
    return directory


class Act(Protocol):
    """What a scenario does to a project."""

    @property
    def act(self) -> Callable[[Project], object]: ...


def carry_out(scenario: Act, directory: Path, acknowledge: Callable[[], object]) -> None:
    with reopen(directory) as project:
        scenario.act(project)
        acknowledge()


def copy_of(directory: Path, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(directory, place))


@dataclass(frozen=True)
class Picture:
    """Where everything stands, without a trace of how it came about."""

    active: str | None
    sessions: dict[str, Session]


def picture(directory: Path) -> Picture:
    project = reopen(directory)
    try:
        sessions = {name: project.session(name).state for name in project.store.sessions()}
        active = project.active()
        # The marker of a session that ended may still be there; it is as good as gone.
        ended = active is not None and sessions[active].status is not SessionStatus.ACTIVE
        return Picture(None if ended else active, sessions)
    finally:
        project.store.close()


def documents(directory: Path) -> dict[str, bytes]:
    """All that is for people and other programs to read."""
    found = [*directory.glob(".workflow/*.json*"), *directory.glob(".workflow/WFS-*/*.json")]
    found += directory.glob(".workflow/.active-*")
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in found
        if not path.name.endswith(".tmp") and path.name not in (".documents.json", "snapshot.json")
    }


def history_lines(directory: Path, session: str) -> int:
    path = directory / ".workflow" / HISTORY
    lines = path.read_bytes().splitlines() if path.exists() else []
    return sum(json.loads(line)["session_id"] == session for line in lines)


def _started(project: Project) -> None:
    project.start(row("a", "b"), TASK)


def _between(project: Project) -> None:
    project.start(row("a", "b"), TASK).finish("a is done")


def _last_in_progress(project: Project) -> None:
    handle = project.start(row("a", "b"), TASK)
    handle.finish("a is done")
    handle.begin("b")


def _two(project: Project) -> None:
    project.start(row("a", "b"), TASK)
    project.start(row("x", "y"), "another thing")


def _built_up(project: Project) -> None:
    handle = project.start(diamond(), TASK)
    handle.finish("a is done")
    for key in "bc":
        handle.begin(key)
        handle.finish(f"{key} is done", phase=key)
    handle.begin("d")


def _ended(project: Project) -> None:
    project.start(row("a"), TASK).finish("all is done")


def _mark_completed(directory: Path) -> None:
    path = directory / ".workflow/state.json"
    document = json.loads(path.read_text())
    document["phases"]["a"] |= {"status": "completed", "summary": EDIT}
    document["active_workflow"]["phase_status"]["a"] = "completed"
    path.write_text(json.dumps(document))


def _write_nonsense(directory: Path) -> None:
    (directory / ".workflow/state.json").write_text(json.dumps({"note": EDIT}))


def _tear(directory: Path) -> None:
    with next(directory.glob(".workflow/WFS-*/journal.jsonl")).open("ab") as file:
        file.write(b'{"version":2,"at":"2026-02')


def _redo_all(project: Project) -> None:
    project.session().redo("a", cascade=True)


def _import(project: Project) -> None:
    document = {
        "state_version": 7,
        "active_workflow": {
            "type": "feature",
            "phases": ["01-requirements", "06-implementation"],
            "phase_status": {"01-requirements": "completed", "06-implementation": "in_progress"},
        },
        "phases": {"01-requirements": {"summary": "asked everybody"}},
    }
    project.import_state(document, source="elsewhere.json")


def _cancel_paused(project: Project) -> None:
    project.session("try-it").cancel("no longer wanted")


SCENARIOS = [
    Scenario(name="start", prepare=lambda _: None, act=_started, least=20),
    Scenario(name="begin", prepare=_between, act=lambda p: p.session().begin(), least=10),
    Scenario(name="finish", prepare=_started, act=lambda p: p.session().finish("a is done"), least=10),
    Scenario(name="redo with cascade", prepare=_built_up, act=_redo_all, least=10),
    Scenario(name="finish the last", prepare=_last_in_progress, act=lambda p: p.session().finish("done"), least=15),
    Scenario(name="cancel", prepare=_started, act=lambda p: p.session().cancel("no longer wanted"), least=15),
    Scenario(name="cancel a paused session", prepare=_two, act=_cancel_paused, least=10, repair=fix),
    Scenario(name="start a second", prepare=_started, act=lambda p: p.start(row("x"), "more"), least=25),
    Scenario(name="start after an end", prepare=_ended, act=lambda p: p.start(row("x"), "more"), least=20),
    Scenario(name="import", prepare=lambda _: None, act=_import, least=20),
    Scenario(name="begin over a torn tail", prepare=_between, edit=_tear, act=lambda p: p.session().begin(), least=10),
    Scenario(name="adopt an edit", prepare=_started, edit=_mark_completed, act=lambda p: p.reconcile(), least=8),
    Scenario(name="refuse an edit", prepare=_started, edit=_write_nonsense, act=lambda p: p.reconcile(), least=8),
]
