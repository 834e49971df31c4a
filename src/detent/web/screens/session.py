"""The screen of a session, and the list of the sessions of a project."""

from collections.abc import Sequence
from typing import Any

import msgspec

from detent.core.gate.evidence import Judgement
from detent.core.gate.judge import judge_recorded
from detent.core.run.run_view import RunView
from detent.core.session.budget import budget_status, spent
from detent.core.session.open_decision import open_decisions
from detent.core.session.phase_state import Tokens
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.engine.decisions import verdicts_now, view_now
from detent.engine.project import Project
from detent.engine.run_lease import RunLease, live_lease
from detent.render.json.graph import graph_record
from detent.render.next_commands import next_commands, progress
from detent.render.terminal.tasks import tally
from detent.web.projects import KnownProject
from detent.web.screens.open_decisions import need_records
from detent.web.screens.runs import run_record, run_view

_STATES = ("ready", "waiting", "active", "blocked", "failed", "completed")


def sessions_record(known: KnownProject, project: Project) -> dict[str, Any]:
    active = project.active()
    return {
        "sessions": [
            {
                "session": entry.id,
                "status": entry.status,
                "is_active": entry.id == active,
                "task": entry.task,
                "workflow": entry.workflow,
                "phase": entry.phase,
                "started_at": entry.started_at,
                "last_activity": entry.last_activity,
                "last_by": entry.last_by,
                "tasks": entry.tasks,
                "tasks_done": entry.tasks_done,
                "archived": entry.archived,
                "needs": _need_count(project, entry.id) if entry.problem is None else 0,
                "problem": entry.problem,
                "project": known.id,
            }
            for entry in project.sessions.sessions(archived=True)
        ]
    }


def _need_count(project: Project, name: str) -> int:
    session = project.journal(name).session()
    if session.has_ended:
        return 0
    view = view_now(project, session)
    return sum(entry.is_yours for entry in open_decisions(session, view=view))


def session_screen(known: KnownProject, project: Project, name: str) -> dict[str, Any]:
    journal = project.journal(name)
    with journal.reading() as session:
        end = journal.end
        lease = live_lease(project.store, name, now=project.clock())
        view, judged = view_now(project, session, running=lease is not None), verdicts_now(project, session)
        decisions = open_decisions(session, judged, view)
        done, total = progress(session)
        run = run_view(project, name) if lease is not None else None
        return {
            "project": known.id,
            "project_name": known.name,
            "session": session.id,
            "task": session.task,
            "workflow": session.workflow.name,
            "status": session.status,
            "is_active": view.active and not session.has_ended,
            "paused_at": session.paused_at,
            "branch": session.branch,
            "started_at": session.started_at,
            "ended_at": session.ended_at,
            "updated_at": session.updated_at,
            "cancel_reason": session.cancel_reason,
            "position": {"version": end.version, "sum": end.sum},
            "progress": {"completed": done, "total": total, "skipped": len(session.with_status(Status.SKIPPED))},
            "phases": _phases(session),
            "graph": graph_record(session.workflow),
            "gates": _gates(session, judged),
            "needs": need_records(known, session, decisions, view),
            "next": next_commands(session, view, judged=judged, decisions=decisions),
            "runner": runner_record(lease),
            "run": run_record(run),
            "tokens": tokens_record(session.all_tokens),
            "budget": _budget(project, session, run),
            "tasks": task_counts(session) if len(session.tasks) else None,
            "checkpoints": project.takes_checkpoints,
            "notices": list(dict.fromkeys(project.notices)),
        }


def _phases(session: Session) -> list[dict[str, Any]]:
    ready = set(session.ready)
    return [
        {
            "phase": key,
            "title": phase.title,
            "status": state.status,
            "agent": state.agent or phase.agent,
            "attempt": state.attempt,
            "retries": state.retries,
            "needs": phase.needs,
            "started_at": state.started,
            "begun_at": state.begun,
            "completed_at": state.completed,
            "spent_s": (state.completed - state.started).total_seconds() if state.started and state.completed else None,
            "summary": state.summary,
            "error": state.error,
            "skip_reason": state.skip_reason,
            "tokens": tokens_record(state.all_tokens),
            "review": state.review,
            "ready": key in ready,
        }
        for key in session.workflow.order
        for phase, state in ((session.workflow.by_key[key], session.phases[key]),)
    ]


def _gates(session: Session, judged: "dict[str, Any] | Any") -> dict[str, list[dict[str, Any]]]:
    """The verdicts of now for the phases in progress, and those that the journal supports for the others."""
    if not session.gates_apply:
        return {}
    lines: dict[str, list[dict[str, Any]]] = {}
    for key in session.workflow.order:
        gates = session.workflow.by_key[key].gates
        if not gates:
            continue
        known = judged.get(key)
        lines[key] = gate_lines(known if known is not None else [judge_recorded(session, key, gate) for gate in gates])
    return lines


def gate_lines(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    return [msgspec.structs.asdict(judgement) for judgement in judgements]


def tokens_record(tokens: Tokens) -> dict[str, Any]:
    return {"input": tokens.input, "output": tokens.output, "cost": tokens.cost}


def runner_record(lease: RunLease | None) -> dict[str, Any] | None:
    if lease is None:
        return None
    return {name: getattr(lease, name) for name in ("run", "owner", "host", "pid", "since")}


def _budget(project: Project, session: Session, run: RunView | None) -> list[dict[str, Any]]:
    """The used part of each budget, for the phase in progress."""
    live = session.in_progress
    if not live or session.options.budget is None:
        return []
    more = run.unreported if run is not None else Tokens()
    return [
        {"name": name, "used": used, "limit": limit, "status": budget_status(used, limit)}
        for name, used, limit in spent(session, live[0], project.clock(), more)
    ]


def task_counts(session: Session) -> dict[str, int]:
    counts = tally(session.tasks)
    return {**{state: counts.get(state, 0) for state in _STATES}, "total": len(session.tasks)}
