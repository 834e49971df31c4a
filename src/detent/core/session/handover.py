"""The handover of a phase: the artifact folder, and the results and context of the phases before it.

Pure: the engine looks up which paths exist.
"""

from datetime import datetime, timedelta

import msgspec

from detent.core.session.session import Session
from detent.core.session.status import Status

DISCOVERY_FRESH = timedelta(hours=24)
ARTIFACT_ROOT = "docs/requirements"


class Passed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The results of one earlier phase."""

    phase: str
    summary: str
    artifacts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    context: str = ""


class Handover(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Returned by every `begin`. `warnings` do not stop the phase: the agent judges missing input."""

    session: str
    task: str
    phase: str
    agent: str
    artifact_folder: str
    artifact_path: str
    passed: tuple[Passed, ...] = ()
    discovery: str | None = None
    warnings: tuple[str, ...] = ()


def handover(session: Session, phase: str, *, now: datetime, exists: frozenset[str]) -> Handover:
    """The handover of `phase`. `exists` are those of `expected_paths` that exist."""
    passed = tuple(_passed(session, source, exists) for source in _sources(session, phase))
    node = session.workflow.by_key[phase]
    discovery = session.discovery if node.discovery else None
    warnings = [f"{item.phase} recorded {path}, which is not there" for item in passed for path in item.missing]
    if discovery and now - discovery.at > DISCOVERY_FRESH:
        hours = int((now - discovery.at).total_seconds() // 3600)
        warnings.append(f"the discovery context is {hours} hours old; check it against the code")
    return Handover(
        session=session.id,
        task=session.task,
        phase=phase,
        agent=session.phases[phase].agent,
        artifact_folder=session.folder,
        artifact_path=f"{ARTIFACT_ROOT}/{session.folder}",
        passed=passed,
        discovery=discovery.text if discovery else None,
        warnings=tuple(warnings),
    )


def expected_paths(session: Session, phase: str) -> tuple[str, ...]:
    """The artifacts of the phases that hand over to `phase`."""
    recorded = (path for source in _sources(session, phase) for path in session.phases[source].artifacts)
    return tuple(dict.fromkeys(recorded))


def _passed(session: Session, source: str, exists: frozenset[str]) -> Passed:
    state = session.phases[source]
    return Passed(
        phase=source,
        summary=state.summary or "",
        artifacts=tuple(path for path in state.artifacts if path in exists),
        missing=tuple(path for path in state.artifacts if path not in exists),
        context=state.context,
    )


def _sources(session: Session, phase: str) -> tuple[str, ...]:
    """The completed phases directly before this one; in place of a skipped phase, those before it."""
    completed: set[str] = set()
    seen: set[str] = set()
    waiting = list(session.workflow.by_key[phase].needs)
    while waiting:
        key = waiting.pop()
        if key in seen:
            continue
        seen.add(key)
        match session.phases[key].status:
            case Status.COMPLETED:
                completed.add(key)
            case Status.SKIPPED:
                waiting.extend(session.workflow.by_key[key].needs)
            case Status.PENDING | Status.IN_PROGRESS | Status.FAILED:
                pass
    return tuple(sorted(completed, key=session.workflow.rank.__getitem__))
