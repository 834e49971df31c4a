"""Checks and repairs the marker of the active session.

I3: there is at most one marker, and its session exists and is open. Every other open session is paused.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from detent.core.session.commands import Pause, Resume
from detent.core.session.session import Session
from detent.doctor.finding import FIX, Finding, Repair, apply_repairs, finding
from detent.engine.project import Project
from detent.engine.projections.projector import MARKER
from detent.engine.projections.publish import shown_session
from detent.errors import Corrupt
from detent.store.port import PROJECT


def check_markers(project: Project, folded: dict[str, Session]) -> Iterator[Finding]:
    marked = [name.removeprefix(MARKER) for name in project.store.names(MARKER)]
    # The marker of a damaged session stays until the session is mended.
    sound = [name for name in marked if name in folded]
    if len(sound) > 1:
        yield finding("I3", ", ".join(sound), "more than one session is marked active", FIX)
    lost = unmarked(project)
    if lost in folded and not folded[lost].has_ended and folded[lost].paused_at is None:
        message = "the state document is about it, but its marker is gone, so no session is active"
        yield finding("I3", lost, message, FIX)
    for name in marked:
        if name not in project.store.sessions():
            yield finding("I3", name, "the marker names a session that does not exist", FIX)
        elif name in folded and folded[name].has_ended:
            message = f"the marker names a session that was {folded[name].status}"
            yield finding("I3", name, message, "any command finishes that, for example detent adopt")


def unmarked(project: Project) -> str | None:
    """The session that the state document is about, if nothing marks any session as the active one."""
    if project.store.names(MARKER):
        return None
    name = shown_session(project.store)
    return name if name in project.store.sessions() else None


def fix_markers(project: Project, *, dry_run: bool = False) -> list[str]:
    """Leave at most one marker, of an open session, and pause or resume sessions to match. The caller holds no lock."""
    project.flush()
    with project.store.lock(PROJECT):
        markers = apply_repairs(_marker_repairs(project), dry_run=dry_run)
    sessions = apply_repairs(_pause_repairs(project), dry_run=dry_run)
    active = project.active()
    if (markers or sessions) and active is not None and not dry_run and not project.is_damaged(active):
        project.touched(active)
    project.flush()
    return [*markers, *sessions]


def _marker_repairs(project: Project) -> Iterator[Repair]:
    known, sound, active = project.store.sessions(), _sound(project), project.active()
    for marker in project.store.names(MARKER):
        name = marker.removeprefix(MARKER)
        if name not in known:
            yield Repair(f"remove {marker}: there is no such session", _remove(project, marker))
        elif name in sound and sound[name].has_ended:
            yield Repair(f"remove {marker}: the session has ended", _remove(project, marker, name))
        elif name in sound and name != active:
            yield Repair(f"remove {marker}: {active} was marked later", _remove(project, marker, name))


def _pause_repairs(project: Project) -> Iterator[Repair]:
    active = project.active()
    for name, session in _sound(project).items():
        handle = project.session(name)
        if session.has_ended:
            continue
        if name == active and session.paused_at is not None:
            yield Repair(f"{name} is marked and goes on", partial(handle.execute, Resume()))
        if name != active and session.paused_at is None:
            paused = Pause(reason="no marker names it")
            yield Repair(f"{name} is not marked and is paused", partial(handle.execute, paused))


def _sound(project: Project) -> dict[str, Session]:
    """The sessions whose journals can be read."""
    sessions = {}
    for name in project.store.sessions():
        with suppress(Corrupt):
            sessions[name] = project.journal(name).session()
    return sessions


def _remove(project: Project, marker: str, name: str | None = None) -> Callable[[], object]:
    def act() -> None:
        project.store.delete(marker)
        if name is not None:
            project.touched(name)

    return act
