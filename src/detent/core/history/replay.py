"""Replays a journal as far as its gates need it: phases, evidence and decisions, without tasks and questions."""

from msgspec.structs import replace

from detent.core.session import events
from detent.core.session.events import Commit, Event
from detent.core.session.evolve import apply
from detent.core.session.session import Session

#: Events that no gate is judged on. Leaving them out halves the time of a replay.
_LEFT_OUT = (
    (events.TaskEvent | events.QuestionEvent | events.ComplexitySet | events.DocumentAdopted | events.TailDropped)
    | (events.TailSetAside | events.SettingsChanged | events.RunOptionsSet | events.SessionPaused)
    | (events.SessionResumed | events.SessionArchived)
)


def relevant(event: Event) -> Event | None:
    """The event as far as gates need it; None if they do not."""
    if isinstance(event, _LEFT_OUT):
        return None
    return replace(event, tasks={}) if isinstance(event, events.RolledBack) and event.tasks else event


def after(session: Session | None, event: Event, commit: Commit) -> Session:
    """The session after one event of the commit."""
    return apply(session, event, at=commit.at, version=commit.version, actor=commit.actor)
