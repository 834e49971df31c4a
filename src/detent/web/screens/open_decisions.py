"""The open decisions of a session, and of all sessions of all projects, oldest first."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from detent.core.actor import Assurance
from detent.core.gate import Gate
from detent.core.session.open_decision import OpenDecision, View, open_decisions
from detent.core.session.session import Session
from detent.engine.decisions import verdicts_now, view_now
from detent.engine.project import Project
from detent.errors import DetentError
from detent.web.actions import actions
from detent.web.projects import KnownProject, Projects

_LATEST = datetime.max.replace(tzinfo=UTC)


class Needs:
    """Collects the open decisions. Sessions that have ended are not read again until something happens in them."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        #: Project and session that ended, with the position of its journal.
        self._ended: dict[tuple[str, str], int] = {}

    def all(self) -> dict[str, Any]:
        needs: list[dict[str, Any]] = []
        problems: list[dict[str, Any]] = []
        for known in self._projects.all():
            try:
                with self._projects.reading(known) as project:
                    for name, position in project.store.positions().items():
                        try:
                            needs += self._of(known, project, name, position)
                        except DetentError as error:
                            # It may be mended before the next look.
                            project.reread(name)
                            problems.append({"project": known.id, "session": name, "message": error.message})
            except DetentError as error:
                problems.append({"project": known.id, "session": None, "message": error.message})
        return {"needs": sorted(needs, key=_since), "problems": problems}

    def _of(self, known: KnownProject, project: Project, name: str, position: int) -> list[dict[str, Any]]:
        if self._ended.get((known.id, name)) == position:
            return []
        session = project.journal(name).session()
        if not session.has_ended:
            return session_needs(known, project, session)
        self._ended[known.id, name] = position
        project.reread(name)
        return []


def session_needs(known: KnownProject, project: Project, session: Session) -> list[dict[str, Any]]:
    view = view_now(project, session)
    return need_records(known, session, open_decisions(session, verdicts_now(project, session), view), view)


def need_records(
    known: KnownProject, session: Session, decisions: Sequence[OpenDecision], view: View
) -> list[dict[str, Any]]:
    return list(_records(known, session, decisions, view))


def _records(
    known: KnownProject, session: Session, decisions: Sequence[OpenDecision], view: View
) -> Iterator[dict[str, Any]]:
    for entry in decisions:
        about = entry.question or entry.task or entry.gate or ""
        yield {
            "id": "/".join((known.id, session.id, entry.kind, entry.phase or "", about)),
            "project": known.id,
            "project_name": known.name,
            "session": session.id,
            "task_text": session.task,
            "kind": entry.kind,
            "what": entry.headline,
            "since": entry.since,
            "phase": entry.phase,
            "gate": entry.gate,
            "task": entry.task,
            "question": entry.question,
            "choices": entry.choices,
            "command": entry.command,
            "others": entry.others,
            "waits_for": entry.waits_for,
            "is_yours": entry.is_yours,
            "actions": [msgspec.structs.asdict(action) for action in actions(entry)] if entry.is_yours else [],
            "assurance": _assurance(session, entry),
            "running": view.running,
        }


def _assurance(session: Session, entry: OpenDecision) -> Assurance:
    """The assurance that the decision needs: that of the gate, else that of the session."""
    phase = session.workflow.by_key.get(entry.phase or "")
    gate = phase.gate(entry.gate or "") if phase is not None else None
    return gate_assurance(session, gate) if gate is not None else session.options.assurance


def gate_assurance(session: Session, gate: Gate) -> Assurance:
    return gate.assurance or session.options.assurance


def _since(need: dict[str, Any]) -> datetime:
    since = need["since"]
    return since if isinstance(since, datetime) else _LATEST
