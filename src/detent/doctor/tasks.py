"""Checks and repairs the tasks of a session and their files.

I8: parents exist, containers have parts, no task waits for itself, and the task files equal the journal. I9: every task
in progress has one holder.

The journal wins over a file, and a person's edit is kept beside it. Where the journal itself violates an invariant, a
command repairs it. Every repair may be repeated.
"""

import os
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from detent.core.session.commands import RepairTask
from detent.core.session.events import TaskRemoved, TaskWritten
from detent.core.session.session import Session
from detent.core.task.row import Row, TaskStatus, put_row
from detent.core.task.rules import damaged_bonds, plan_problems
from detent.doctor.finding import ERROR, FIX, WARNING, Finding, Repair, apply_repairs, finding
from detent.documents import SESSION_DOCUMENT
from detent.documents import task as task_document
from detent.engine.project import Project
from detent.engine.projections.adopt_task import TaskAdoption
from detent.engine.projections.publish import decoded
from detent.engine.session import SessionHandle
from detent.render.markdown import impl_plan, todo_list
from detent.store.port import PROJECT, START

_ADOPT = "detent adopt"


def check_tasks(project: Project, name: str, *, files: bool = True) -> Iterator[Finding]:
    """`files`: those of this machine are checked too."""
    with project.journal(name).reading() as session:
        rows, is_shown = list(session.tasks), session.shows_tasks
        findings = [*_check_plan(session, rows), *_check_claims(project, session)]
    yield from findings
    if not files:
        return
    for file in _files(project, name, rows):
        if file.fault is not None:
            severity, way_out = (WARNING, _ADOPT) if file.is_edit else (ERROR, FIX)
            yield finding("I8", file.name, file.fault, way_out, severity)
    for view in (todo_list.NAME, impl_plan.NAME) if is_shown else ():
        if project.store.get(f"{name}/{view}") is None:
            yield finding("I8", f"{name}/{view}", "is missing", FIX)


def fix_tasks(project: Project, name: str, *, dry_run: bool = False) -> list[str]:
    """Repair the journal and the files, and describe each repair. The caller holds no lock.

    An abandoned task that has a summary may be done: it stays as it is.
    """
    project.flush()
    repairs = apply_repairs(_journal_repairs(project, name), dry_run=dry_run)
    if repairs and not dry_run:
        project.touched(name)
        project.flush()
    # After the journal, because its state decides the content of the files.
    with project.store.lock(PROJECT):
        on_disk = apply_repairs(_file_repairs(project, name), dry_run=dry_run)
    if on_disk and not dry_run:
        project.touched(name)
        project.flush()
    return [*repairs, *on_disk]


class _File(NamedTuple):
    """A file of `.task`, and its fault if it has one."""

    name: str
    #: The task of the file; None if the session has no such task.
    task: str | None
    fault: str | None
    #: A person wrote the content.
    is_edit: bool = False
    is_readable: bool = True


# Checks


def _check_plan(session: Session, rows: list[Row]) -> Iterator[Finding]:
    for problem in plan_problems(rows):
        way_out = "change what they depend on" if problem.rule == "cycle" else FIX
        yield finding("I8", session.id, problem.message, way_out)


def _check_claims(project: Project, session: Session) -> Iterator[Finding]:
    active = set(session.tasks.with_status(TaskStatus.ACTIVE))
    for task in sorted(session.claims.keys() - active):
        yield finding("I9", task, f"{session.claims[task].owner} holds it, and it is not in progress", "report it")
    if session.has_ended:
        return
    tasks = project.session(session.id).tasks
    for task in sorted(tasks.abandoned()):
        claim = session.claims.get(task)
        # A task with a summary may be done, so a person releases it.
        way_out = FIX if tasks.summary(task) is None else f"detent task release {task}"
        if claim is None:
            yield finding("I9", task, "it is in progress and has no claim", way_out)
        else:
            yield finding("I9", task, f"it is in progress, and its holder {claim.owner} is gone", way_out, WARNING)


def _files(project: Project, name: str, rows: list[Row]) -> Iterator[_File]:
    """Every file that exists or should exist, compared with the journal."""
    written = _written(project, name)
    for row in rows:
        file = task_document.name_of(name, row.stem)
        yield _compared(file, row, project.store.get(file), put_row(written.get(row.id, {}), row))
    known = {task_document.name_of(name, row.stem) for row in rows}
    for file in project.store.names(f"{name}/{task_document.FOLDER}/"):
        stem = os.path.basename(file)
        if file not in known and stem.endswith(".json") and not stem.startswith("."):
            readable = isinstance(decoded(project.store.get(file)), dict)
            yield _File(file, None, "is no file of a task", is_edit=True, is_readable=readable)


def _compared(file: str, row: Row, data: bytes | None, wanted: dict[str, Any]) -> _File:
    if data is None:
        return _File(file, row.id, "is missing")
    document = decoded(data)
    if not isinstance(document, dict):
        return _File(file, row.id, "cannot be read", is_edit=True, is_readable=False)
    if not task_document.is_untouched(document):
        return _File(file, row.id, "was edited by hand", is_edit=True)
    behind = task_document.plain(document) != wanted
    return _File(file, row.id, "is not what the journal says" if behind else None)


def _written(project: Project, name: str) -> dict[str, dict[str, Any]]:
    """The last document of every task, in one pass over the journal."""
    documents: dict[str, dict[str, Any]] = {}
    cursor, more = START, True
    while more:
        commits, cursor, _, more = project.store.read(name, cursor)
        for event in (event for commit in commits for event in commit.events):
            if isinstance(event, TaskWritten):
                documents[event.task] = task_document.plain(event.document)
            elif isinstance(event, TaskRemoved):
                documents.pop(event.task, None)
    return documents


# Repairs of the journal


def _journal_repairs(project: Project, name: str) -> Iterator[Repair]:
    session = project.journal(name).session()
    if not session.has_ended:
        yield from _bond_repairs(project, session)
        yield from _claim_repairs(project, session)


def _bond_repairs(project: Project, session: Session) -> Iterator[Repair]:
    plan, handle = session.tasks, project.session(session.id)
    for task, description in damaged_bonds(plan).items():
        yield Repair(description, partial(handle.execute, RepairTask(task=task)))
    for task, missing in plan.missing.items():
        reason = f"{task} no longer depends on {', '.join(missing)}, which does not exist"
        yield Repair(reason, partial(_drop_missing, handle, task, reason))


def _drop_missing(handle: SessionHandle, task: str, reason: str) -> None:
    handle.execute(RepairTask(task=task, document=handle.tasks.files.document(task), reason=reason))


def _claim_repairs(project: Project, session: Session) -> Iterator[Repair]:
    tasks = project.session(session.id).tasks
    for task in sorted(tasks.abandoned()):
        claim = session.claims.get(task)
        gone = f"{claim.owner} is gone" if claim else "no claim"
        if tasks.summary(task) is None:
            yield Repair(f"give {task} back: {gone}", partial(tasks.release, task, reason=gone))


# Repairs of files


def _file_repairs(project: Project, name: str) -> Iterator[Repair]:
    yield from _session_file_repairs(project, name)
    with project.journal(name).reading() as session:
        rows, is_open = list(session.tasks), not session.has_ended
        is_shown = session.shows_tasks
    edits = False
    for file in _files(project, name, rows):
        if file.fault is None:
            continue
        if file.is_edit and file.is_readable and is_open:
            # An edit in an open session is adopted or rejected with its reasons, now or when the session is resumed.
            edits = edits or project.active() == name
        elif file.is_edit:
            yield Repair(f"{file.name} {file.fault}: keep it beside", partial(_replace_edit, project, name, file))
        else:
            yield Repair(f"{file.name} {file.fault}: write it again", partial(_rewrite, project, name, file))
    if edits:
        edited = ", ".join(project.session(name).tasks.files.edited(every=True))
        yield Repair(f"adopt or set aside the edits of {edited}", partial(_adopt_edits, project, name), tells=True)
    for view in (todo_list.NAME, impl_plan.NAME) if is_shown else ():
        if project.store.get(f"{name}/{view}") is None:
            yield Repair(f"{name}/{view} is missing: write it again", lambda: None)


def _adopt_edits(project: Project, name: str) -> list[str]:
    return [adoption.describe() for adoption in TaskAdoption(project, name).adopt_all(every=True)]


def _session_file_repairs(project: Project, name: str) -> Iterator[Repair]:
    file = f"{name}/{SESSION_DOCUMENT}"
    data = project.store.get(file)
    document = decoded(data)
    if data is None:
        yield Repair(f"{file} is missing: write it again", lambda: None)
    elif not isinstance(document, dict) or document.get("session_id") != name:
        yield Repair(f"{file} cannot be read: keep it beside and write it again", lambda: _keep(project, file))


def _replace_edit(project: Project, name: str, file: _File) -> None:
    _keep(project, file.name)
    if file.task is not None:
        _rewrite(project, name, file)


def _rewrite(project: Project, name: str, file: _File) -> None:
    assert file.task is not None
    # Delete first, because an outdated file of Detent's own is not rewritten.
    project.store.delete(file.name)
    project.session(name).tasks.files.rewrite(file.task)


def _keep(project: Project, file: str) -> str:
    """Move a file to the first free name; the same text is kept once."""
    store = project.store
    data = store.get(file) or b""
    taken = store.names(f"{file}.corrupt-")
    kept = next((other for other in taken if store.get(other) == data), None)
    if kept is None:
        kept = next(free for number in count(1) if (free := f"{file}.corrupt-{number}") not in taken)
        store.put(kept, data)
    store.delete(file)
    return kept
