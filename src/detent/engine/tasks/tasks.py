"""The tasks of one session: reads, plans, claims and completes them."""

import math
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from detent.core.session.commands import Command, MoveTask, RemoveTask, SetComplexity, SplitTask, WriteTasks
from detent.core.session.events import Claim, TaskMoved, TaskWritten
from detent.core.session.session import Session
from detent.core.task.assignment import type_for
from detent.core.task.document import new_document
from detent.core.task.id import PREFIX, canonical, parent_of, parse_id, read_id, sort_key
from detent.core.task.lifecycle import REPLANNABLE, Action, possibly_stale
from detent.core.task.row import Row, TaskStatus
from detent.core.task.split import ChildDraft, split_warnings
from detent.documents.state.writing import current_phase
from detent.documents.task import name_of
from detent.engine.projections.rejected_edits import keep_aside
from detent.engine.projections.task_files import TaskFiles
from detent.engine.redact_command import redact_text
from detent.engine.results import Outcome
from detent.engine.run_lease import lease_time
from detent.errors import Invalid, NotFound, Refused
from detent.store.port import PROJECT

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

SUMMARIES = ".summaries"
LEASES = ".process/leases"
#: Seconds after which a claim that is not renewed expires.
LEASE_S = 3600.0
MAX_SUMMARY_BYTES = 1024 * 1024


class Claimed(Outcome, frozen=True, kw_only=True):
    """A task that is held. `fence` goes with every later command about it."""

    task: str
    claim: Claim

    @property
    def fence(self) -> int:
        return self.claim.fence


class Tasks:
    def __init__(self, project: "Project", handle: "SessionHandle") -> None:
        self._project = project
        self._handle = handle
        self._session = handle.id

    @cached_property
    def files(self) -> TaskFiles:
        return TaskFiles(self._project.store, self._project.journal(self._session))

    # Reading

    def rows(self) -> list[Row]:
        """Every task, by number."""
        with self._reading() as session:
            return list(session.tasks)

    def row(self, task: str) -> Row:
        with self._reading() as session:
            return session.tasks[canonical(task)]

    def next(self) -> Row | None:
        """The first ready task, in the order of dependencies and then of numbers; else one whose holder is gone."""
        if not self._project.journal(self._session).is_loaded:
            published = self.files.next_published()
            if published is not None and published.next is not None:
                return published.next
        with self._reading() as session:
            task = self._next(session)
            return session.tasks[task] if task is not None else None

    def document(self, task: str) -> dict[str, Any]:
        return self.files.document(canonical(task))

    def context(self, task: str) -> dict[str, Any]:
        """The context of an agent for the task: its document, the workflow, and the summaries of its dependencies."""
        own = canonical(task)
        document = self.document(own)
        with self._reading() as session:
            above = parent_of(own)
            inherited = session.tasks[above].depends_on if above is not None else ()
            needs = tuple(dict.fromkeys((*inherited, *session.tasks[own].depends_on)))
            phase, stem = current_phase(session), session.tasks[own].stem
        store = self._project.store
        return {
            "task": document,
            "workflow": {"session": self._session, "phase": phase},
            "paths": {
                "session": store.directory(self._session),
                "todo": store.location(f"{self._session}/TODO_LIST.md"),
                "summaries": store.location(f"{self._session}/{SUMMARIES}"),
                "task": store.location(name_of(self._session, stem)),
            },
            "dependency_summaries": {need: text for need in needs if (text := self.summary(need)) is not None},
        }

    def summary(self, task: str) -> str | None:
        """The summary that was written when the task was done."""
        own = canonical(task)
        for name in (f"{own}-summary.md", f"{own}.md"):
            data = self._project.store.get(f"{self._session}/{SUMMARIES}/{name}")
            if data is not None:
                return data.decode("utf-8", "replace")
        return None

    # Planning

    def add(
        self,
        title: str,
        *,
        parent: str | None = None,
        depends_on: Iterable[str] = (),
        requirements: Iterable[str] = (),
        focus_paths: Iterable[str] = (),
        acceptance: Iterable[str] = (),
        kind: str | None = None,
        agent: str | None = None,
    ) -> Outcome:
        """Add a task under the next free number, or another part of a container."""
        needs = [canonical(other) for other in depends_on]
        wanted, paths, accepted = list(requirements), list(focus_paths), list(acceptance)

        def numbered(session: Session) -> WriteTasks:
            document = new_document(
                _free_id(session, parent),
                title,
                type=kind or type_for(title),
                agent=agent,
                depends_on=needs,
                requirements=wanted,
                focus_paths=paths,
                acceptance=accepted,
            )
            return WriteTasks(documents=(document,), new=True)

        # Numbered under the lock, so that two callers get two numbers.
        return self._handle.execute_chosen(numbered)

    def write(self, documents: Iterable[dict[str, Any]], *, new: bool | None = None, reason: str = "") -> Outcome:
        """Add or change tasks by their documents, all or none."""
        return self._do(WriteTasks(documents=tuple(documents), new=new, reason=reason))

    def replan(self, task: str, changes: dict[str, Any], *, reason: str) -> Outcome:
        """Change the document of a task that is not in progress; its version rises, and the journal keeps both."""
        own = canonical(task)
        row = self.row(own)
        if row.status not in REPLANNABLE:
            raise Refused(f"{own} is {row.status}; only {', '.join(REPLANNABLE)} tasks are replanned")
        if not reason.strip():
            raise Invalid("a reason is needed to replan a task")
        document = _merged(self.document(own), changes) | {"version": row.version + 1}
        return self._do(WriteTasks(documents=(document,), new=False, reason=reason))

    def split(self, task: str, parts: Iterable[ChildDraft | str]) -> Outcome:
        """Break a task down; it becomes a container."""
        drafts = tuple(ChildDraft(title=part) if isinstance(part, str) else part for part in parts)
        own = canonical(task)
        self.row(own)
        document = self.document(own)
        outcome = self._do(SplitTask(document=document, parts=drafts))
        children = [event.document for event in outcome.events if isinstance(event, TaskWritten)]
        return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *split_warnings(children)))

    def remove(self, task: str) -> Outcome:
        return self._do(RemoveTask(task=canonical(task)))

    def set_complexity(self, level: str) -> Outcome:
        return self._do(SetComplexity(level=level))

    # Work

    def start(
        self, task: str | None = None, *, owner: str | None = None, pid: int | None = None, lease_s: float = LEASE_S
    ) -> Claimed:
        """Claim a task: the one named, or the next that is ready. Of several callers one gets it."""
        if not 0 < lease_s < math.inf:
            raise Invalid(f"a lease must be a number of seconds above 0, not {lease_s}")
        claim = Claim(
            owner=owner or self._project.actor.shown,
            fence=0,
            since=self._project.clock(),
            host=os.uname().nodename,
            pid=pid,
            lease_s=float(lease_s),
        )
        self._check_active()
        if task is not None:
            return self._claimed(MoveTask(task=canonical(task), action=Action.START, claim=claim))
        return self._claimed(claim)

    def keep(self, task: str, fence: int) -> Claimed:
        """Keep the claim beyond the end of the process that took it."""
        return self._claimed(MoveTask(task=canonical(task), action=Action.KEEP, fence=fence))

    def unmet(self, task: str, met: Sequence[str]) -> str:
        """The acceptance criteria without a text about them, as a sentence; empty if there are none."""
        left = [f"{number}. {text}" for number, text in enumerate(self._criteria(task), 1) if number > len(met)]
        if not left:
            return ""
        return "\n  - ".join([f"nothing says how these acceptance criteria of {canonical(task)} are met", *left])

    def done(self, task: str, summary: str = "", *, met: Sequence[str] = (), fence: int | None = None) -> Outcome:
        """Complete the task. `met` says how each of its acceptance criteria was met.

        The summary is written first, because dependants read it.
        """
        own = canonical(task)
        unmet = self.unmet(own, met)
        if not summary.strip() and not met and not unmet:
            return self._do(MoveTask(task=own, action=Action.DONE, fence=fence))
        data = redact_text(self._summary_text(own, summary, met)).encode() + b"\n"
        if len(data) > MAX_SUMMARY_BYTES:
            raise Invalid(f"a summary may have {MAX_SUMMARY_BYTES} bytes and this one has {len(data)}")
        name = f"{own}-summary.md"
        command = MoveTask(task=own, action=Action.DONE, summary=name, met=tuple(met), fence=fence)
        try:
            if unmet:
                raise Refused(unmet, way_out=self.row(own).done_command(fence))
            # Under the lock and right before the commit: of two callers only the one that commits writes.
            return self._handle.execute(
                command, then=lambda: self._project.store.put(f"{self._session}/{SUMMARIES}/{name}", data)
            )
        except Refused as refusal:
            if not summary.strip():
                raise
            kept = self.keep_summary(task, summary)
            raise Refused(f"{refusal.message}; the summary is kept in {kept}", way_out=refusal.way_out) from refusal

    def _summary_text(self, task: str, summary: str, met: Sequence[str]) -> str:
        """The summary, with the acceptance criteria and how each was met."""
        criteria = self._criteria(task) if met else []
        lines = [f"- {criterion}: {how.strip()}" for criterion, how in zip(criteria, met, strict=False)]
        accepted = "\n".join(["Accepted:", *lines]) if lines else ""
        return "\n\n".join(part for part in (summary.strip(), accepted) if part)

    def _criteria(self, task: str) -> list[str]:
        """The acceptance criteria of the task; none if there is no such task."""
        own = canonical(task)
        with self._reading() as session:
            row = session.tasks.get(own)
        return self.document(own)["context"]["acceptance"] if row is not None and row.criteria else []

    def keep_summary(self, task: str, summary: str) -> str:
        """Keep the summary of a task that was not completed, beside the summaries. Returns its location."""
        own = read_id(task)
        name = f"{self._session}/{SUMMARIES}/{own if own is not None else 'unknown'}-summary.md"
        store, data = self._project.store, redact_text(summary.strip()).encode()[:MAX_SUMMARY_BYTES] + b"\n"
        with store.lock(PROJECT):
            return store.location(keep_aside(store, name, data))

    def fail(self, task: str, error: str, *, fence: int | None = None) -> Outcome:
        return self._do(MoveTask(task=canonical(task), action=Action.FAIL, reason=error, fence=fence))

    def block(self, task: str, reason: str, *, fence: int | None = None) -> Outcome:
        return self._do(MoveTask(task=canonical(task), action=Action.BLOCK, reason=reason, fence=fence))

    def unblock(self, task: str) -> Outcome:
        return self._do(MoveTask(task=canonical(task), action=Action.UNBLOCK))

    def resume(self, task: str, *, owner: str | None = None) -> Claimed:
        """Continue a task at the point where a person was asked."""
        self._check_active()
        claim = Claim(owner=owner or self._project.actor.shown, fence=0, since=self._project.clock())
        return self._claimed(MoveTask(task=canonical(task), action=Action.RESUME, claim=claim))

    def retry(self, task: str) -> Outcome:
        return self._do(MoveTask(task=canonical(task), action=Action.RETRY))

    def release(self, task: str, *, reason: str = "", fence: int | None = None) -> Outcome:
        """Release a task unfinished."""
        return self._do(MoveTask(task=canonical(task), action=Action.RELEASE, reason=reason, fence=fence))

    def reopen(self, task: str) -> Outcome:
        """Reopen a task; completed tasks that depend on it are named as possibly stale."""
        own = canonical(task)
        with self._reading() as session:
            stale = possibly_stale(session.tasks, own) if own in session.tasks else ()
        warnings = [f"{', '.join(stale)} depends on {own} and may be out of date"] if stale else []
        return self._do(MoveTask(task=own, action=Action.REOPEN), warnings)

    # Claims

    def beat(self, task: str, fence: int) -> None:
        """Renew the lease of a claim."""
        own = canonical(task)
        name = f"{self._session}/{LEASES}/{own}"
        held = self._handle.state.claims.get(own)
        if held is None or held.fence != fence:
            raise Refused(f"the claim {fence} on {own} is no longer held", way_out=f"detent task start {own}")
        with self._project.store.lock(PROJECT):
            self._project.store.put(name, b"%d %d" % (fence, round(self._lease_time().timestamp())))

    def release_abandoned(self) -> list[str]:
        """Release the tasks whose holders are gone; returns them."""
        tasks = sorted(self.abandoned(), key=sort_key)
        for task in tasks:
            claim = self._handle.state.claims.get(task)
            self.release(task, reason=f"{claim.owner if claim else 'its holder'} is gone")
        return tasks

    def abandoned(self) -> frozenset[str]:
        """Tasks in progress whose holder is gone: its process on this machine ended, or its lease expired."""
        with self._reading() as session:
            return self._gone(session)

    def _gone(self, session: Session) -> frozenset[str]:
        active = session.tasks.with_status(TaskStatus.ACTIVE)
        if not active:
            return frozenset()
        # Once for all of them: the clock and the leases may be those of a database.
        now, leases = self._lease_time(), frozenset(self._project.store.names(f"{self._session}/{LEASES}/"))
        return frozenset(task for task in active if self._is_gone(task, session.claims.get(task), now, leases))

    def _is_gone(self, task: str, claim: Claim | None, now: datetime, leases: frozenset[str]) -> bool:
        if claim is None:
            return True
        if claim.pid is not None and claim.host == os.uname().nodename and not _is_alive(claim.pid):
            return True
        last, name = claim.since, f"{self._session}/{LEASES}/{task}"
        beat = (self._project.store.get(name) or b"").split() if name in leases else []
        if len(beat) == 2 and beat[0] == b"%d" % claim.fence:
            # By the clock that all machines share; that of the holder may differ.
            last = last.fromtimestamp(int(beat[1]), last.tzinfo)
        return now - last > timedelta(seconds=claim.lease_s)

    def _lease_time(self) -> datetime:
        return lease_time(self._project.store, self._project.clock())

    # Shared

    def _check_active(self) -> None:
        if self._project.active() != self._session:
            raise Refused(f"{self._session} is not the active session", way_out=f"detent switch {self._session}")

    def _reading(self) -> AbstractContextManager[Session]:
        return self._project.journal(self._session).reading()

    def _do(self, command: Command, warnings: Iterable[str] = ()) -> Outcome:
        return self._handle.execute(command, warnings)

    def _claimed(self, wanted: MoveTask | Claim) -> Claimed:
        if isinstance(wanted, Claim):
            outcome = self._handle.execute_chosen(lambda session: self._next_move(session, wanted))
        else:
            outcome = self._do(wanted)
        moved = next(event for event in reversed(outcome.events) if isinstance(event, TaskMoved))
        assert moved.claim is not None
        return Claimed(session=outcome.session, events=outcome.events, task=moved.task, claim=moved.claim)

    def _next(self, session: Session) -> str | None:
        return session.tasks.next_ready() or min(self._gone(session), key=sort_key, default=None)

    def _next_move(self, session: Session, claim: Claim) -> MoveTask:
        task = self._next(session)
        if task is None:
            raise NotFound(nothing_ready(session), way_out="detent task list")
        return MoveTask(task=task, action=Action.START, claim=claim)


def _free_id(session: Session, parent: str | None) -> str:
    plan = session.tasks
    if parent is None:
        numbers = [sort_key(task) >> 32 for task in (*plan.ids[-1:], *session.retired)]
        return f"{PREFIX}{max(numbers, default=0) + 1}"
    above = parse_id(parent)
    parts = [task for task in (*plan.children(str(above)), *session.retired) if task.startswith(f"{above}.")]
    return str(above.child(max((int(task.rpartition(".")[2]) for task in parts), default=0) + 1))


def nothing_ready(session: Session) -> str:
    """Why no task can be started."""
    plan = session.tasks
    if not len(plan):
        return "there are no tasks"
    if plan.is_completed:
        return "all tasks are done"
    waiting, failed = len(plan.waiting), len(plan.with_status(TaskStatus.FAILED))
    active = len(plan.with_status(TaskStatus.ACTIVE))
    return f"no task is ready: {active} in progress, {waiting} waiting, {failed} failed"


def _merged(document: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The document with the changes: objects are merged key by key, any other value is replaced."""
    merged = dict(document)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
