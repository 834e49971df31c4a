"""The log of a session: its commits as lines, with what they are about."""

from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any

from detent.core.actor import Proof
from detent.core.session import events
from detent.core.session.describe import event_lines
from detent.core.session.events import Commit, Event
from detent.core.session.phase_name import Named, phase_name
from detent.engine.project import Project
from detent.store.port import all_commits

#: Commits of one answer, and characters of one line.
MAX_COMMITS, MAX_LINE = 1_000, 2_000
#: Names of phases, gates or tasks of one commit: an import may write thousands of tasks.
_MAX_NAMES = 50
_KINDS: tuple[tuple[str, Any], ...] = (
    ("phase", events.PhaseEvent | events.PhaseReviewed | events.PhasesImported),
    ("gate", events.GateEvent | events.BaselineEvent),
    ("task", events.TaskEvent | events.ComplexitySet),
    ("agent", events.DelegationEvent),
    ("checkpoint", events.CheckpointEvent),
    ("question", events.QuestionEvent | events.EscalationEvent),
    ("session", events.SessionEvent | events.RecordEvent | events.DocumentAdopted),
)


def commit_record(commit: Commit, named: Named) -> dict[str, Any]:
    """`named` names the phases in its lines."""
    return {
        "version": commit.version,
        "at": commit.at,
        "by": commit.by,
        "actor": commit.actor.kind,
        "channel": commit.actor.channel,
        "mark": commit.actor.mark,
        "proof": proof_record(commit.actor.proof),
        "lines": [line[:MAX_LINE] for line in event_lines(commit.events, named)],
        "kinds": _kinds(commit),
        "phases": _named(commit.events, "phase"),
        "gates": _named(commit.events, "gate"),
        "tasks": _named((event for event in commit.events if isinstance(event, events.TaskEvent)), "task"),
    }


def proof_record(proof: Proof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {
        "assurance": proof.assurance,
        "method": proof.method,
        "identity": proof.identity,
        "statement": proof.statement,
        "key": getattr(proof, "key", ""),
    }


def log_screen(
    project: Project,
    session: str,
    *,
    before: int | None,
    limit: int,
    text: str = "",
    kind: str = "",
    phase: str = "",
) -> dict[str, Any]:
    """The last commits in front of `before` that match, newest first."""
    named = partial(phase_name, project.journal(session).session())
    commits: deque[Commit] = deque(maxlen=min(limit, MAX_COMMITS) + 1)
    wanted = text.casefold()
    for commit in all_commits(project.store, session):
        if before is not None and commit.version >= before:
            break
        if kind and kind not in _kinds(commit):
            continue
        if phase and phase not in _named(commit.events, "phase"):
            continue
        if wanted and wanted not in "\n".join((commit.by, *event_lines(commit.events, named))).casefold():
            continue
        commits.append(commit)
    more = len(commits) == commits.maxlen
    newest = [*reversed(commits)][: min(limit, MAX_COMMITS)]
    return {"commits": [commit_record(commit, named) for commit in newest], "more": more}


def _kinds(commit: Commit) -> list[str]:
    kinds = [name for name, of in _KINDS if any(isinstance(event, of) for event in commit.events)]
    return [*kinds, "decision"] if commit.actor.proof is not None else kinds


def _named(commit_events: Iterable[Event], field: str) -> list[str]:
    values = (getattr(event, field, None) for event in commit_events)
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))[:_MAX_NAMES]
