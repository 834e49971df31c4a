"""The board of tasks, and one task in full."""

from functools import partial
from typing import Any

from detent.core.session.phase_name import phase_name
from detent.core.session.session import Session
from detent.core.task.id import canonical
from detent.core.task.row import Row, TaskStatus
from detent.engine.flow.record import FlowFiles, Mask
from detent.engine.project import Project
from detent.errors import Corrupt, Invalid
from detent.render.terminal.tasks import task_record
from detent.store.port import all_commits
from detent.web.screens.log import commit_record
from detent.web.screens.session import task_counts

#: Rows of one answer; commits of the history of a task.
MAX_ROWS, MAX_COMMITS = 1_000, 100
#: A pending task is ready or waiting.
_WORDS = ("ready", "waiting", "active", "blocked", "failed", "completed", "container")


def tasks_screen(
    project: Project, name: str, *, status: str = "", offset: int = 0, limit: int = 200, text: str = ""
) -> dict[str, Any]:
    if status and status not in _WORDS:
        raise Invalid(f"{status[:40]!r} is no status of a task; there are {', '.join(_WORDS)}")
    wanted = text.casefold()
    with project.journal(name).reading() as session:
        matching = [row for row in _with_status(session, status) if wanted in f"{row.id} {row.title}".casefold()]
        page = matching[offset : offset + min(limit, MAX_ROWS)]
        return {
            "total": len(matching),
            "offset": offset,
            "tasks": [row_record(session, row) for row in page],
            "counts": {
                **task_counts(session),
                "container": session.tasks.counts.get(TaskStatus.CONTAINER, 0),
                "total": len(session.tasks),
            },
        }


def _with_status(session: Session, status: str) -> list[Row]:
    plan = session.tasks
    if not status:
        return list(plan)
    if status in ("ready", "waiting"):
        ready = set(plan.ready)
        pending = plan.with_status(TaskStatus.PENDING)
        return [plan[key] for key in pending if (key in ready) is (status == "ready")]
    return [plan[key] for key in plan.with_status(TaskStatus(status))]


def row_record(session: Session, row: Row) -> dict[str, Any]:
    return {**task_record(session, row), "children": len(session.tasks.children(row.id))}


def task_screen(project: Project, name: str, task: str) -> dict[str, Any]:
    own = canonical(task)
    tasks = project.session(name).tasks
    with project.journal(name).reading() as session:
        record = row_record(session, session.tasks[own])
        dependents = session.tasks.dependants(own)
        children = session.tasks.children(own)
        named = partial(phase_name, session)
    commits = [
        commit
        for commit in all_commits(project.store, name)
        if any(getattr(event, "task", None) == own for event in commit.events)
    ]
    return {
        "task": record,
        "document": tasks.document(own),
        "summary": tasks.summary(own),
        "dependents": dependents,
        "children": children,
        "flow": _flow(project, name, own),
        "history": [commit_record(commit, named) for commit in reversed(commits[-MAX_COMMITS:])],
    }


def _flow(project: Project, name: str, task: str) -> dict[str, Any] | None:
    """The steps of the task as far as they ran."""
    try:
        record = FlowFiles(project, name, task, Mask({})).load()
    except Corrupt:
        return None
    if record is None:
        return None
    return {"steps": [{"step": step.step, "state": step.state, "said": step.reason or ""} for step in record.run.steps]}
