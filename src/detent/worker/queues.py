"""The task queues of a project: one for its run loops, and one for each set of labels that its phases ask for."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from detent.config.settings import Settings
from detent.core.session.status import Status
from detent.run.policy import runnable

if TYPE_CHECKING:
    from detent.core.session.session import Session

#: Labels of one phase or worker, and the length of one.
MAX_LABELS, MAX_LABEL = 20, 40


def loop_queue(project: str) -> str:
    return f"detent/{project}/loops"


def job_queue(project: str, labels: Iterable[str]) -> str:
    return f"detent/{project}/jobs/{'+'.join(sorted(set(labels)))}"


def phase_labels(settings: Settings, phase: str, role: str) -> tuple[str, ...]:
    """The labels that a worker must have for the phase: those of the phase, else those of its role."""
    labels = settings.run.labels
    return tuple(sorted(set(labels.get(phase) or labels.get(role) or ())))


def needed_labels(settings: Settings, session: "Session") -> dict[str, tuple[str, ...]]:
    """The labels that the phases need which the run would begin now, by phase.

    A session begins its first phase itself: such an attempt waits for a worker until an agent is launched for it.
    """
    waiting = (phase.phase for phase in runnable(session, busy={}, held=()))
    labels = {
        key: phase_labels(settings, key, session.workflow.by_key[key].agent)
        for key in waiting
        if session.phases[key].status is not Status.IN_PROGRESS or not session.phases[key].delegations
    }
    return {key: needed for key, needed in labels.items() if needed}


def label_sets(settings: Settings, own: Iterable[str] | None = None) -> list[tuple[str, ...]]:
    """The sets of labels that phases ask for; with `own`, those that a worker with these labels has."""
    asked = {(), *(tuple(sorted(set(labels))) for labels in settings.run.labels.values())}
    return sorted(labels for labels in asked if own is None or set(labels) <= set(own))


def needing(settings: Settings, labels: Iterable[str]) -> list[str]:
    """The phases and roles that ask for exactly these labels."""
    return sorted(name for name, asked in settings.run.labels.items() if set(asked) == set(labels))
