"""The task queues of a project: one for its run loops, and one for each set of labels that its phases ask for."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from detent.config.settings import Settings

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
    """The labels that the phases which can begin now need, by phase."""
    labels = {key: phase_labels(settings, key, session.workflow.by_key[key].agent) for key in session.ready}
    return {key: needed for key, needed in labels.items() if needed}


def label_sets(settings: Settings, own: Iterable[str] | None = None) -> list[tuple[str, ...]]:
    """The sets of labels that phases ask for; with `own`, those that a worker with these labels has."""
    asked = {(), *(tuple(sorted(set(labels))) for labels in settings.run.labels.values())}
    return sorted(labels for labels in asked if own is None or set(labels) <= set(own))


def needing(settings: Settings, labels: Iterable[str]) -> list[str]:
    """The phases and roles that ask for exactly these labels."""
    return sorted(name for name, asked in settings.run.labels.items() if set(asked) == set(labels))
