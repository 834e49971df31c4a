"""Decides commands about tasks, and the transitions of phases that follow from them.

The table in `core/task/lifecycle.py` lists the legal moves of one task. The checks here add what the table cannot
express: dependencies, claims, the state of the session.

In a workflow with the phases PLAN, IMPLEMENT and REVIEW, tasks move the phases:

| task | phases |
|---|---|
| the first one is started | PLAN is finished, IMPLEMENT begins |
| one is started after IMPLEMENT has ended | IMPLEMENT is redone, REVIEW is reset |
| the last one is done | IMPLEMENT is finished, REVIEW begins |
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, assert_never

from msgspec.structs import replace

from detent.core.gate.evidence import Facts
from detent.core.limits import MAX_ERROR, MAX_REASON, check_optional, check_text, cut
from detent.core.problem import Problem
from detent.core.session.commands import (
    Begin,
    Finish,
    MoveTask,
    Redo,
    RemoveTask,
    RepairTask,
    SetComplexity,
    SplitTask,
    TaskCommand,
    WriteTasks,
)
from detent.core.session.decide_phase import decide_phase
from detent.core.session.events import Claim, ComplexitySet, Event, TaskMoved, TaskRemoved, TaskWritten
from detent.core.session.evolve import apply
from detent.core.session.session import TASK_PHASES, Session
from detent.core.session.status import Status
from detent.core.task.complexity import Complexity, check_override
from detent.core.task.document import document_problems, new_document
from detent.core.task.id import canonical, parent_of
from detent.core.task.lifecycle import Action, check_start, next_status
from detent.core.task.plan import Plan
from detent.core.task.row import Row, TaskStatus, put_row, row_of
from detent.core.task.split import split
from detent.errors import GateClosed, Invalid, NotFound, Refused

PLAN, IMPLEMENT, REVIEW = TASK_PHASES
#: Maximum number of tasks of a session.
MAX_TASKS = 200_000
_NEEDS_REASON = {Action.BLOCK: "a reason to block it", Action.FAIL: "a reason of the failure"}


def decide_task(session: Session, command: TaskCommand, facts: Facts) -> tuple[Event, ...]:
    return _with_phases(session, _task_events(session, command, facts), facts)


def _task_events(session: Session, command: TaskCommand, facts: Facts) -> tuple[Event, ...]:
    match command:
        case WriteTasks():
            return _write(session, command)
        case SplitTask():
            return _split(session, command)
        case RemoveTask():
            return tuple(_remove(session, command))
        case MoveTask():
            return tuple(_move(session, command, facts))
        case RepairTask():
            return tuple(_repair(session, command))
        case SetComplexity():
            if command.level not in list(Complexity):
                raise Invalid(f"{command.level!r} is none of {', '.join(Complexity)}")
            return (ComplexitySet(level=check_override(session.complexity, Complexity(command.level))),)
        case _:
            assert_never(command)


def _write(session: Session, command: WriteTasks) -> tuple[Event, ...]:
    plan = session.tasks
    problems = [
        f"{document.get('id') if isinstance(document, dict) else at}: {problem.path}: {problem.message}"
        for at, document in enumerate(command.documents)
        for problem in task_problems(document)
        if problem.severity == "error"
    ]
    if problems:
        raise Invalid("the tasks cannot be taken as they are", problems[:100])
    documents = command.documents
    rows = [row_of(document) for document in documents]
    if command.gathers:
        made = [_container_of(parent) for parent in _missing_containers(session, rows)]
        documents, rows = (*documents, *made), [*rows, *map(row_of, made)]
    numbers = Counter(row.id for row in rows)
    problems += [f"{task} is written {times} times at once" for task, times in numbers.items() if times > 1]
    if len(plan) + len(rows) > MAX_TASKS:
        raise Invalid(f"a session may have {MAX_TASKS} tasks", way_out="start another session for the rest")
    for row in rows:
        problems += _known_problems(session, row, new=command.new)
    known = {row.id: plan.get(row.id) for row in rows}
    split_ones = _now_containers(session, rows, gathers=command.gathers)
    grown = plan
    for row in (*rows, *(replace(plan[task], status=TaskStatus.CONTAINER) for task in split_ones)):
        grown = grown.with_row(row)
    problems += [problem for row in rows for problem in _bond_problems(grown, row)]
    problems += _circle_problems(grown, [row.id for row in rows])
    if problems:
        raise Invalid("the tasks cannot be taken as they are", list(dict.fromkeys(problems))[:100])
    reason = check_optional("a reason", command.reason, MAX_REASON)
    written = (
        TaskWritten(task=row.id, document=_with_known_row(known[row.id], row, document), reason=reason)
        for row, document in zip(rows, documents, strict=True)
    )
    moved = (TaskMoved(task=task, action=Action.SPLIT, status=TaskStatus.CONTAINER) for task in split_ones)
    return (*written, *moved)


def _missing_containers(session: Session, rows: list[Row]) -> list[str]:
    """The containers that the parts among `rows` name and that are nowhere."""
    written = {row.id for row in rows}
    parents = dict.fromkeys(parent for row in rows if (parent := parent_of(row.id)) is not None)
    there = {*written, *session.retired}
    return [parent for parent in parents if parent not in there and parent not in session.tasks]


def _now_containers(session: Session, rows: list[Row], *, gathers: bool) -> list[str]:
    """Pending tasks that this write makes containers: the document says so, or, if it `gathers`, parts were added."""
    plan, written = session.tasks, {row.id: row for row in rows}
    parents = dict.fromkeys(parent for row in rows if row.id not in plan and (parent := parent_of(row.id)) is not None)
    return [
        parent
        for parent in parents
        if (known := plan.get(parent)) is not None
        and known.status is TaskStatus.PENDING
        and (written[parent].status is TaskStatus.CONTAINER if parent in written else gathers)
    ]


def _container_of(task: str) -> dict[str, Any]:
    return new_document(task, f"Parts of {task}") | {"status": TaskStatus.CONTAINER.value}


def task_problems(document: object) -> list[Problem]:
    """All problems of one document, with those of its steps."""
    problems = document_problems(document)
    if any(problem.severity == "error" for problem in problems) or not isinstance(document, dict):
        return problems
    if not document["flow_control"].get("pre_analysis"):
        return problems
    from detent.core.flow.reference import task_properties  # noqa: PLC0415 - most tasks have no steps
    from detent.core.flow.step import step_problems  # noqa: PLC0415

    return [*problems, *step_problems(document["flow_control"], declared=task_properties(document))]


def _known_problems(session: Session, row: Row, *, new: bool | None) -> Iterator[str]:
    known = session.tasks.get(row.id)
    if known is None and new is False:
        yield f"there is no task {row.id}"
    elif known is None and row.id in session.retired:
        yield f"{row.id} was removed, and a number is never used again"
    elif known is not None and new:
        yield f"there is already a task {row.id}"
    elif known is not None and known.status is TaskStatus.COMPLETED:
        yield f"{row.id} is {known.status} and cannot be changed; reopen it first"
    elif known is None and row.status in (TaskStatus.ACTIVE, TaskStatus.FAILED):
        yield f"{row.id} cannot begin as {row.status}"


def _bond_problems(plan: Plan, row: Row) -> Iterator[str]:
    """Problems of the task's dependencies, its parent and its parts."""
    for other in row.depends_on:
        if other not in plan:
            yield f"{row.id} depends on {other}, which does not exist"
    parent = parent_of(row.id)
    if parent is not None and parent not in plan:
        yield f"{row.id} is a part of {parent}, which does not exist"
    elif parent is not None and plan[parent].status is not TaskStatus.CONTAINER:
        yield f"{row.id} is a part of {parent}, which is {plan[parent].status} and no container; split it instead"
    if row.status is TaskStatus.CONTAINER and not plan.children(row.id):
        yield f"{row.id} is a container without parts"
    if row.status is not TaskStatus.CONTAINER and plan.children(row.id):
        yield f"{row.id} has parts and must be a container"


def _circle_problems(plan: Plan, written: list[str]) -> Iterator[str]:
    circle = plan.cycle_through(written)
    if circle:
        yield f"tasks wait for each other in a circle: {' -> '.join(circle)}"


def _with_known_row(known: Row | None, row: Row, document: dict[str, Any]) -> dict[str, Any]:
    """The document with the known status and claim: an edit changes the content of a task, not its state."""
    if known is None:
        return document
    return put_row({**document, "id": known.stem}, replace(known, version=row.version))


def _split(session: Session, command: SplitTask) -> tuple[Event, ...]:
    plan = session.tasks
    own = canonical(command.document["id"])
    taken = {*plan.ids, *session.retired} if len(plan) < 2_000 else {*_parts_ever(session, own), *plan.children(own)}
    taken |= {other for draft in command.parts for other in map(canonical, draft.depends_on) if other in plan} | {own}
    children = split(command.document, taken, command.parts, present=plan.children(own))
    next_status(own, plan[own].status, Action.SPLIT)
    events: list[Event] = [TaskWritten(task=child["id"], document=child) for child in children]
    grown = plan.with_row(replace(plan[own], status=TaskStatus.CONTAINER))
    for child in children:
        grown = grown.with_row(row_of(child))
    problems = [problem for child in children for problem in _bond_problems(grown, row_of(child))]
    problems += _circle_problems(grown, [own])
    if problems:
        raise Invalid(f"{own} cannot be split like this", problems)
    events.append(TaskMoved(task=own, action=Action.SPLIT, status=TaskStatus.CONTAINER))
    return tuple(events)


def _parts_ever(session: Session, own: str) -> Iterator[str]:
    return (task for task in session.retired if parent_of(task) == own)


def _remove(session: Session, command: RemoveTask) -> Iterator[Event]:
    plan, task = session.tasks, canonical(command.task)
    row = plan[task]
    if row.status is TaskStatus.ACTIVE:
        raise Refused(f"{task} is being worked on", way_out=f"detent task release {task}")
    needed_by = plan.dependants(task)
    if needed_by:
        raise Refused(f"{', '.join(needed_by)} depends on {task}", way_out="change those first")
    if plan.children(task):
        raise Refused(f"{task} has the parts {', '.join(plan.children(task))}", way_out="remove those first")
    yield TaskRemoved(task=task)
    parent = parent_of(task)
    if parent is not None and plan.children(parent) == (task,):
        yield TaskMoved(task=parent, action=Action.RESTORE, status=TaskStatus.PENDING)


def _repair(session: Session, command: RepairTask) -> Iterator[Event]:
    plan, task, document = session.tasks, canonical(command.task), command.document
    row = plan.get(task)
    if document is not None:
        context = document["context"]
        present = [other for other in context["depends_on"] if canonical(other) in plan]
        changed = {**document, "context": {**context, "depends_on": present}}
        yield TaskWritten(task=task, document=changed, reason=command.reason)
    elif row is None and plan.children(task):
        yield TaskWritten(task=task, document=_container_of(task), reason="it has parts and was gone")
    elif row is not None and plan.children(task):
        yield TaskMoved(task=task, action=Action.SPLIT, status=next_status(task, row.status, Action.SPLIT))
    elif row is not None:
        yield TaskMoved(task=task, action=Action.RESTORE, status=next_status(task, row.status, Action.RESTORE))


def _move(session: Session, command: MoveTask, facts: Facts) -> Iterator[TaskMoved]:
    plan, task, action = session.tasks, canonical(command.task), command.action
    row = plan.get(task)
    if row is None:
        raise NotFound(f"there is no task {task}", way_out="detent task list")
    if action in (Action.START, Action.RESUME) and session.paused_at is not None:
        raise Refused(f"session {session.id} is paused", way_out=f"detent resume {session.id}")
    if action is Action.START and row.status is TaskStatus.ACTIVE and task in facts.abandoned:
        holder = session.claims.get(task)
        gone = f"{holder.owner} is gone" if holder else "it has no holder"
        yield TaskMoved(task=task, action=Action.RELEASE, status=TaskStatus.PENDING, reason=gone)
        status = next_status(task, TaskStatus.PENDING, action)
    elif action is Action.START:
        _check_claim_free(session, task)
        check_start(plan, task)
        status = next_status(task, row.status, action)
    else:
        _check_fence(session, task, command.fence)
        if action in (Action.SPLIT, Action.RESTORE):
            raise Refused(f"{action} follows from other commands", way_out="detent task split, detent task remove")
        if action is Action.RESUME and (waits := plan.waiting_for(task)):
            raise Refused(f"{task} waits for {', '.join(waits)}", way_out=f"detent task unblock {task}")
        status = next_status(task, row.status, action)
    reason = cut(check_optional("a reason", command.reason, None), MAX_ERROR)
    if action in _NEEDS_REASON:
        check_text(_NEEDS_REASON[action], reason, None)
    met = _checked_met(row, command.met) if action is Action.DONE else ()
    claim = None
    if action is Action.KEEP:
        claim = replace(session.claims[task], pid=None)
    elif status is TaskStatus.ACTIVE and command.claim is not None:
        claim = replace(command.claim, fence=session.version + 1)
    yield TaskMoved(
        task=task, action=action, status=status, reason=reason, summary=command.summary, met=met, claim=claim
    )


def _checked_met(row: Row, met: tuple[str, ...]) -> tuple[str, ...]:
    """The texts that say how each acceptance criterion was met."""
    if len(met) != row.criteria:
        raise Refused(
            f"{row.id} has acceptance criteria: {row.criteria}; texts that say how each is met: {len(met)}",
            way_out=f"detent task show {row.id} lists them; {row.done_command()}",
        )
    name = "a text that says how a criterion is met"
    return tuple(cut(check_text(name, text, None), MAX_REASON) for text in met)


def _check_claim_free(session: Session, task: str) -> None:
    held = session.claims.get(task)
    if session.tasks[task].status is TaskStatus.ACTIVE and held is not None:
        raise Refused(f"{task} is held by {_who(held)}", way_out="detent task next gives another one")


def _check_fence(session: Session, task: str, fence: int | None) -> None:
    held = session.claims.get(task)
    if fence is None:
        return
    if held is None:
        raise Refused(f"the claim {fence} on {task} is no longer held", way_out=f"detent task start {task}")
    if held.fence != fence:
        raise Refused(f"{task} is held by {_who(held)} under claim {held.fence}, not {fence}")


def _who(claim: Claim) -> str:
    where = f" on {claim.host}" if claim.host else ""
    return f"{claim.owner}{where} since {claim.since:%Y-%m-%d %H:%M:%S}"


# Phases that tasks move


def _with_phases(session: Session, events: tuple[Event, ...], facts: Facts) -> tuple[Event, ...]:
    """The events about tasks, and the events about phases that follow from them."""
    if session.workflow.order != TASK_PHASES:
        return events
    moves = [event for event in events if isinstance(event, TaskMoved)]
    if any(move.status == TaskStatus.ACTIVE for move in moves):
        return (*_to_implement(session, facts), *events)
    removed = any(isinstance(event, TaskRemoved) for event in events)
    if removed or any(move.action == Action.DONE for move in moves):
        return (*events, *_to_review(_after(session, events, facts), facts))
    return events


def _to_implement(session: Session, facts: Facts) -> tuple[Event, ...]:
    implemented = session.phases[IMPLEMENT].status
    if implemented is Status.IN_PROGRESS:
        return ()
    if implemented in (Status.COMPLETED, Status.FAILED):
        return decide_phase(session, Redo(phase=IMPLEMENT, reason="there is more to do", cascade=True), facts)
    finished: tuple[Event, ...] = ()
    if session.phases[PLAN].status is Status.IN_PROGRESS:
        count = session.tasks.leaf_count
        summary = f"planned {count} task{'' if count == 1 else 's'}"
        finished = decide_phase(session, Finish(phase=PLAN, summary=summary), facts)
    begun = decide_phase(_after(session, finished, facts), Begin(phase=IMPLEMENT), facts)
    return (*finished, *begun)


def _to_review(session: Session, facts: Facts) -> tuple[Event, ...]:
    if not session.tasks.is_completed or session.phases[IMPLEMENT].status is not Status.IN_PROGRESS:
        return ()
    try:
        finished = decide_phase(session, Finish(phase=IMPLEMENT, summary=session.tasks.done_text), facts)
        begun = decide_phase(_after(session, finished, facts), Begin(phase=REVIEW), facts)
    except (GateClosed, Refused):
        # The task is done all the same. The phase is finished by hand when its gates are open.
        return ()
    return (*finished, *begun)


def _after(session: Session, events: tuple[Event, ...], facts: Facts) -> Session:
    for event in events:
        session = apply(session, event, at=facts.now, version=session.version + 1)
    return session
