"""Tasks and markers, checked against the journal and mended from it.

I8 tasks hold together and their files say what the journal says · I9 every task in progress is in one pair of hands.

The journal wins over files, and what a person wrote is kept beside them. Where the journal itself holds the problem,
as with a task whose holder is gone, events mend it. Everything may be done twice.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import msgspec

from detent.core.session.commands import MoveTask, Pause, Resume
from detent.core.session.events import Event, TaskMoved, TaskRemoved, TaskWritten
from detent.core.session.session import Session, SessionStatus
from detent.core.task.document import new_document
from detent.core.task.lifecycle import TRANSITIONS, Action
from detent.core.task.row import Row, TaskStatus, put_row
from detent.core.task.rules import plan_problems
from detent.doctor.finding import ERROR, WARNING, Finding
from detent.documents import session as session_document
from detent.documents import task as task_document
from detent.engine.project import Project
from detent.engine.projections.adopt_task import TaskAdoption
from detent.engine.projections.projector import MARKER
from detent.engine.projections.publish import UNREADABLE
from detent.errors import Corrupt
from detent.render.markdown import impl_plan, todo_list
from detent.store.port import PROJECT, START

_FIX = "detent doctor --fix"
_ADOPT = "detent adopt"


def check_tasks(project: Project, name: str) -> Iterator[Finding]:
    """Whatever is wrong with the tasks of a session. Nothing is changed."""
    with project.journal(name).reading() as session:
        rows = list(session.tasks)
        findings = [*_check_plan(session, rows), *_check_claims(project, session)]
    yield from findings
    for found in _files(project, name, rows):
        if found.fault is not None:
            severity, way_out = (WARNING, _ADOPT) if found.is_edit else (ERROR, _FIX)
            yield _finding("I8", found.file, found.fault, way_out, severity)
    for view in (todo_list.NAME, impl_plan.NAME):
        if project.store.get(f"{name}/{view}") is None:
            yield _finding("I8", f"{name}/{view}", "is missing", _FIX)


def fix_tasks(project: Project, name: str, *, dry_run: bool = False, trust_summaries: bool = False) -> list[str]:
    """Mend what can be mended, and say what was; with `dry_run`, what would be. The caller holds no lock.

    A task whose holder is gone but which has a summary may be done: it is left, unless `trust_summaries`.
    """
    project.flush()
    repairs = _carried_out(_journal_repairs(project, name, trust_summaries=trust_summaries), dry_run=dry_run)
    if repairs and not dry_run:
        project.touched(name)
        project.flush()
    # Only now: what the journal says of a task decides what its file should say.
    with project.store.lock(PROJECT):
        on_disk = _carried_out(_file_repairs(project, name), dry_run=dry_run)
    if on_disk and not dry_run:
        project.touched(name)
        project.flush()
    return [*repairs, *on_disk]


def fix_markers(project: Project, *, dry_run: bool = False) -> list[str]:
    """One marker at most, of an open session, and sessions paused or not as it says. The caller holds no lock."""
    project.flush()
    with project.store.lock(PROJECT):
        markers = _carried_out(_marker_repairs(project), dry_run=dry_run)
    sessions = _carried_out(_pause_repairs(project), dry_run=dry_run)
    active = project.active()
    if (markers or sessions) and active is not None and not dry_run:
        project.touched(active)
    project.flush()
    return [*markers, *sessions]


def _carried_out(repairs: "Iterator[_Repair]", *, dry_run: bool) -> list[str]:
    listed = list(repairs)
    if not dry_run:
        for repair in listed:
            repair.act()
    return [repair.told for repair in listed]


class _Repair(NamedTuple):
    told: str
    act: Callable[[], object]


class _File(NamedTuple):
    """What stands in a file of `.task`; without a fault, all is well."""

    file: str
    #: The task that the file is of; none if the session has no such task.
    task: str | None
    fault: str | None
    #: Somebody wrote something there that Detent did not.
    is_edit: bool = False
    is_readable: bool = True


# Looking


def _check_plan(session: Session, rows: list[Row]) -> Iterator[Finding]:
    for problem in plan_problems(rows):
        yield _finding("I8", session.id, problem.message, "change what they depend on" if _is_circle(problem) else _FIX)


def _is_circle(problem: Any) -> bool:
    return bool(problem.rule == "cycle")


def _check_claims(project: Project, session: Session) -> Iterator[Finding]:
    active = set(session.tasks.with_status(TaskStatus.ACTIVE))
    for task in sorted(session.claims.keys() - active):
        yield _finding("I9", task, f"{session.claims[task].owner} holds it, and it is not in progress", "report it")
    if session.status is not SessionStatus.ACTIVE:
        return
    for task in sorted(_left_alone(project, session)):
        claim = session.claims.get(task)
        if claim is None:
            yield _finding("I9", task, "it is in progress and nobody holds it", _FIX)
        else:
            yield _finding("I9", task, f"it is in progress, and its holder {claim.owner} is gone", _FIX, WARNING)


def _left_alone(project: Project, session: Session) -> frozenset[str]:
    """Tasks in progress that nobody holds, or whose holder is gone."""
    return project.session(session.id).tasks.abandoned()


def _files(project: Project, name: str, rows: list[Row]) -> Iterator[_File]:
    """Every file that is there or should be, beside what the journal says."""
    written = _written(project, name)
    by_id = {row.id: row for row in rows}
    for row in rows:
        file = task_document.name_of(name, row.id)
        yield _standing(file, row, project.store.get(file), put_row(written.get(row.id, {}), row))
    known = {task_document.name_of(name, task) for task in by_id}
    for file in project.store.names(f"{name}/{task_document.FOLDER}/"):
        stem = os.path.basename(file)
        if file not in known and stem.endswith(".json") and not stem.startswith("."):
            readable = isinstance(_decoded(project.store.get(file)), dict)
            yield _File(file, None, "is no file of a task", is_edit=True, is_readable=readable)


def _standing(file: str, row: Row, data: bytes | None, wanted: dict[str, Any]) -> _File:
    if data is None:
        return _File(file, row.id, "is missing")
    found = _decoded(data)
    if not isinstance(found, dict):
        return _File(file, row.id, "cannot be read", is_edit=True, is_readable=False)
    if not task_document.is_untouched(found):
        return _File(file, row.id, "was edited by hand", is_edit=True)
    behind = task_document.plain(found) != wanted
    return _File(file, row.id, "is not what the journal says" if behind else None)


def _written(project: Project, name: str) -> dict[str, dict[str, Any]]:
    """The last document of every task, in one pass over the journal."""
    found: dict[str, dict[str, Any]] = {}
    cursor, more = START, True
    while more:
        commits, cursor, _, more = project.store.read(name, cursor)
        for event in (event for commit in commits for event in commit.events):
            if isinstance(event, TaskWritten):
                found[event.task] = task_document.plain(event.document)
            elif isinstance(event, TaskRemoved):
                found.pop(event.task, None)
    return found


# Mending what the journal says


def _journal_repairs(project: Project, name: str, *, trust_summaries: bool) -> Iterator[_Repair]:
    session = project.journal(name).session()
    if session.status is SessionStatus.ACTIVE:
        yield from _bond_repairs(project, session)
        yield from _claim_repairs(project, session, trust_summaries=trust_summaries)


def _bond_repairs(project: Project, session: Session) -> Iterator[_Repair]:
    plan, orphaned = session.tasks, set[str]()
    for row in plan:
        parent, parts = row.parent, plan.children(row.id)
        if parent is not None and parent not in plan and parent not in orphaned:
            orphaned.add(parent)
            yield _Repair(f"make {parent} again, of which {row.id} is a part", _made_again(project, session, parent))
        if parts and (row.status, Action.SPLIT) in TRANSITIONS:
            split = TaskMoved(task=row.id, action=Action.SPLIT, status=TaskStatus.CONTAINER)
            yield _Repair(f"make {row.id} a container, which has parts", _committed(project, session, split))
        if row.status is TaskStatus.CONTAINER and not parts:
            whole = TaskMoved(task=row.id, action=Action.RESTORE, status=TaskStatus.PENDING)
            yield _Repair(f"make {row.id} a task again, which has no parts", _committed(project, session, whole))
    for task, missing in plan.missing.items():
        told = f"{task} no longer depends on {', '.join(missing)}, which does not exist"
        yield _Repair(told, _without_needs(project, session, task, told))


def _claim_repairs(project: Project, session: Session, *, trust_summaries: bool) -> Iterator[_Repair]:
    tasks = project.session(session.id).tasks
    for task in sorted(_left_alone(project, session)):
        claim = session.claims.get(task)
        gone = f"{claim.owner} is gone" if claim else "nobody holds it"
        if tasks.summary(task) is None:
            yield _Repair(f"give {task} back: {gone}", partial(tasks.release, task, reason=gone))
        elif trust_summaries:
            done = MoveTask(task=task, action=Action.DONE, summary=f"{task}-summary.md")
            handle = project.session(session.id)
            yield _Repair(f"take {task} for done: it has a summary", partial(handle.execute, done))


def _made_again(project: Project, session: Session, task: str) -> Callable[[], object]:
    document = new_document(task, f"Parts of {task}") | {"status": TaskStatus.CONTAINER.value}
    return _committed(project, session, TaskWritten(task=task, document=document, reason="it has parts and was gone"))


def _without_needs(project: Project, session: Session, task: str, reason: str) -> Callable[[], object]:
    def act() -> None:
        with project.journal(session.id).reading() as now:
            known = frozenset(now.tasks.ids)
        document = project.session(session.id).tasks.files.document(task)
        context = document["context"]
        kept = [other for other in context["depends_on"] if other in known]
        changed = {**document, "context": {**context, "depends_on": kept}}
        _committed(project, session, TaskWritten(task=task, document=changed, reason=reason))()

    return act


def _committed(project: Project, session: Session, *events: Event) -> Callable[[], object]:
    """Not by a command: none would have led here, and the table of transitions holds all the same."""
    journal = project.journal(session.id)
    return lambda: journal.commit(lambda _: events, actor=project.actor, now=project.clock())


# Mending what the files say


def _file_repairs(project: Project, name: str) -> Iterator[_Repair]:
    yield from _session_file_repairs(project, name)
    with project.journal(name).reading() as session:
        rows, is_open = list(session.tasks), session.status is SessionStatus.ACTIVE
    edits = False
    for found in _files(project, name, rows):
        if found.fault is None:
            continue
        if found.is_edit and found.is_readable and is_open:
            # An edit of a session that goes on is adopted, or set aside with its reasons: now, or when it is resumed.
            edits = edits or project.active() == name
        elif found.is_edit:
            yield _Repair(f"{found.file} {found.fault}: keep it beside", _put_aside(project, name, found))
        else:
            yield _Repair(f"{found.file} {found.fault}: write it again", _rewritten(project, name, found))
    if edits:
        adoption = TaskAdoption(project, name)
        for file in adoption.pending():
            yield _Repair(
                f"{file} was edited by hand: adopt it, or set it aside", lambda: adoption.adopt_all(every=True)
            )
    for view in (todo_list.NAME, impl_plan.NAME):
        if project.store.get(f"{name}/{view}") is None:
            yield _Repair(f"{name}/{view} is missing: write it again", lambda: None)


def _session_file_repairs(project: Project, name: str) -> Iterator[_Repair]:
    file = f"{name}/{session_document.NAME}"
    data = project.store.get(file)
    found = _decoded(data)
    if data is None:
        yield _Repair(f"{file} is missing: write it again", lambda: None)
    elif not isinstance(found, dict) or found.get("session_id") != name:
        yield _Repair(f"{file} cannot be read: keep it beside and write it again", lambda: _keep(project, file))


def _put_aside(project: Project, name: str, found: _File) -> Callable[[], object]:
    def act() -> None:
        _keep(project, found.file)
        if found.task is not None:
            _rewritten(project, name, found)()

    return act


def _rewritten(project: Project, name: str, found: _File) -> Callable[[], object]:
    def act() -> None:
        assert found.task is not None
        # Away first: what stands there may be Detent's own and yet old.
        project.store.delete(found.file)
        project.session(name).tasks.files.rewrite(found.task)

    return act


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


# Markers


def _marker_repairs(project: Project) -> Iterator[_Repair]:
    known, sound, active = project.store.sessions(), _sound(project), project.active()
    for marker in project.store.names(MARKER):
        name = marker.removeprefix(MARKER)
        if name not in known:
            yield _Repair(f"remove {marker}: there is no such session", _unmarked(project, marker))
        elif name in sound and sound[name].status is not SessionStatus.ACTIVE:
            yield _Repair(f"remove {marker}: the session has ended", _unmarked(project, marker, name))
        elif name in sound and name != active:
            yield _Repair(f"remove {marker}: {active} was marked later", _unmarked(project, marker, name))


def _pause_repairs(project: Project) -> Iterator[_Repair]:
    active = project.active()
    for name, session in _sound(project).items():
        handle = project.session(name)
        if session.status is not SessionStatus.ACTIVE:
            continue
        if name == active and session.paused_at is not None:
            yield _Repair(f"{name} is marked and goes on", partial(handle.execute, Resume()))
        if name != active and session.paused_at is None:
            paused = Pause(reason="no marker names it")
            yield _Repair(f"{name} is not marked and is paused", partial(handle.execute, paused))


def _sound(project: Project) -> dict[str, Session]:
    """The sessions whose journals can be read; the others are for a person to mend."""
    found = {}
    for name in project.store.sessions():
        with suppress(Corrupt):
            found[name] = project.journal(name).session()
    return found


def _unmarked(project: Project, marker: str, name: str | None = None) -> Callable[[], object]:
    def act() -> None:
        project.store.delete(marker)
        if name is not None:
            project.touched(name)

    return act


def _finding(invariant: str, subject: str, message: str, way_out: str, severity: str = ERROR) -> Finding:
    return Finding(invariant=invariant, severity=severity, subject=subject, message=message, way_out=way_out)


def _decoded(data: bytes | None) -> Any:
    try:
        return msgspec.json.decode(data) if data is not None else None
    except UNREADABLE:
        return None
