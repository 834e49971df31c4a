"""The sessions that are measured, and the transitions that are made in them."""

import os
from collections.abc import Callable
from itertools import cycle, islice
from typing import Self

import msgspec

from detent.core.session.commands import Begin, Command, Finish, Redo
from detent.core.session.evolve import MAX_NOTES
from detent.core.session.session import Session, encode_session
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow, chain
from detent.engine.project import Project, init_project, open_project
from detent.engine.session import SessionHandle

ACTOR = "bench"
SUMMARY = "The parser handles nested groups, and every error names its line and column."
_REASON = "the review found a gap"
_CONTEXT = "The lexer keeps offsets in bytes; convert them before they are shown to a person. " * 100
_STEPS = ("requirements", "impact", "architecture", "design", "tests", "implementation", "quality", "review")
_MOVED, _LAST = "phase_6", "phase_7"
_ARTIFACT = "docs/quality/report.md"


class Fill(msgspec.Struct, frozen=True):
    """What each of the phases that stay finished leaves in the state, besides its summary."""

    context: int = 0
    artifacts: int = 1


SMALL = Fill()
#: With the notes of the last hundred transitions this makes a state of 20 KB.
KB_20 = Fill(context=480, artifacts=8)


class Work:
    """A session whose last two phases are moved for ever: finish one, begin the other, redo the first."""

    def __init__(self, project: Project, session: SessionHandle) -> None:
        self.project = project
        self.session = session
        self.directory = project.place.root
        self.journal = os.path.join(project.place.state, session.id, "journal.jsonl")
        moves: tuple[Callable[[], object], ...] = (
            lambda: session.finish(SUMMARY, artifacts=[_ARTIFACT]),
            session.begin,
            lambda: session.redo(_MOVED, cascade=True, reason=_REASON),
        )
        self._moves = islice(cycle(moves), _next_move(session.state), None)

    @classmethod
    def start(cls, directory: str, fill: Fill = SMALL, *, checkpoints: bool = False) -> Self:
        """A new project with a session that stands at its last phase but one and has a full set of notes."""
        project = make_project(directory, checkpoints=checkpoints)
        session = project.start(chain("bench", [(step, f"{step}-agent") for step in _STEPS]), "Measure it")
        _touch(directory, _ARTIFACT)
        for step in _STEPS[:-2]:
            paths = [f"docs/{step}/part-{part}.md" for part in range(fill.artifacts)]
            for path in paths:
                _touch(directory, path)
            session.finish(SUMMARY, artifacts=paths, context=_CONTEXT[: fill.context])
            session.begin()
        work = cls(project, session)
        work.move_and_flush(MAX_NOTES)
        return work

    @classmethod
    def open(cls, directory: str) -> Self:
        project = open_project(directory, actor=ACTOR)
        return cls(project, project.session())

    def move(self, count: int) -> None:
        """Make `count` transitions."""
        for move in islice(self._moves, count):
            move()

    def move_and_flush(self, count: int) -> None:
        """The same, and wait for the documents that are written behind, so that their cost is counted."""
        self.move(count)
        self.project.flush()


def next_command(session: Session) -> Command:
    """What `Work.move` would ask for next, as a value."""
    commands = (
        Finish(summary=SUMMARY, artifacts=(_ARTIFACT,)),
        Begin(),
        Redo(phase=_MOVED, cascade=True, reason=_REASON),
    )
    return commands[_next_move(session)]


def make_project(directory: str, *, checkpoints: bool = True) -> Project:
    os.makedirs(directory)
    if not checkpoints:
        with open(os.path.join(directory, "detent.toml"), "w", encoding="utf-8") as file:
            file.write('[checkpoint]\ncapture = "off"\n')
    init_project(directory)
    return open_project(directory, actor=ACTOR)


def state_bytes(session: Session) -> int:
    return len(encode_session(session))


def side_by_side(count: int) -> Workflow:
    """So many phases that can be in progress at once, and a last one that keeps the session from ending."""
    keys = tuple(f"part-{number}" for number in range(count))
    parts = tuple(Phase(key=key, agent="developer") for key in keys)
    return Workflow(name="side-by-side", phases=(*parts, Phase(key="end", needs=keys)))


def _next_move(session: Session) -> int:
    if session.phases[_LAST].status is Status.IN_PROGRESS:
        return 2
    return 0 if session.phases[_MOVED].status is Status.IN_PROGRESS else 1


def _touch(directory: str, path: str) -> None:
    full = os.path.join(directory, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "a", encoding="utf-8"):
        pass
