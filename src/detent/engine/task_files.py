"""Task files and views, kept in step with the journal.

Beside the files stands how far in the journal they have come; what happened to tasks since is read from there, so a
change of one task costs one file however many there are.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from detent.core.events import (
    Commit,
    ComplexitySet,
    PhaseBegun,
    PhaseFinished,
    PhaseRedone,
    RolledBack,
    TaskMoved,
    TaskRemoved,
    TaskWritten,
)
from detent.core.task.row import Row
from detent.documents import task as task_document
from detent.documents.state.writing import current_phase
from detent.engine.publish import UNREADABLE, encode, publish_views
from detent.engine.replica import Replica
from detent.store.port import START, Cursor, Store
from detent.views import impl_plan, todo_list

#: Views tell all of so many tasks; of more they tell the first, and how many there are.
MAX_SHOWN = 2_000
_PUBLISHED = f"{task_document.FOLDER}/.published.json"
_decode_cursor = msgspec.json.Decoder(Cursor).decode


class Published(NamedTuple):
    #: Tasks whose files were edited by hand, and therefore left alone.
    edited: list[str]
    #: Views that were edited by hand; the text is beside them, as `.bak`.
    kept: list[str]


class _Since(NamedTuple):
    """What happened behind a position."""

    #: Each task that something happened to, with its document if that was written.
    documents: dict[str, dict[str, Any] | None]
    end: Cursor
    #: Whether the plan looks different: its tasks, what they ask for, the phase.
    replanned: bool


class TaskFiles:
    """The files of one session. Whatever writes wants the caller to hold PROJECT."""

    def __init__(self, store: Store, replica: Replica) -> None:
        self._store = store
        self._replica = replica
        self._session = replica.id

    def publish(self) -> Published:
        """Write what changed since the last time."""
        cursor = self.published()
        since = self._since(cursor)
        edited: list[str] = []
        with self._replica.reading() as session:
            rows = {task: session.tasks.get(task) for task in since.documents}
        for task, document in since.documents.items():
            if not self._write(task, document, rows[task], since.end.version):
                edited.append(task)
        kept = publish_views(self._store, self._views(since))
        if since.documents or since.replanned or cursor.version == 0:
            self._store.put(f"{self._session}/{_PUBLISHED}", msgspec.json.encode(since.end))
        return Published(edited, kept)

    def _write(self, task: str, document: dict[str, Any] | None, row: Row | None, version: int) -> bool:
        """False if the file was edited by hand, and therefore left alone."""
        name = task_document.name_of(self._session, task)
        if row is None:
            self._store.delete(name)
            return True
        found = self._decoded(name)
        if found is not None and not task_document.is_untouched(found):
            return False
        body = document or found or self.written(task)
        self._store.put(name, encode(task_document.render(body, row, version)))
        return True

    def rewrite(self, task: str) -> None:
        """Write the task's file anew, over whatever stands there."""
        with self._replica.reading() as session:
            row, version = session.tasks[task], session.version
        found = self._decoded(task_document.name_of(self._session, task))
        body = found if found is not None and task_document.is_untouched(found) else self.written(task)
        self._store.put(task_document.name_of(self._session, task), encode(task_document.render(body, row, version)))

    def published(self) -> Cursor:
        """Up to where in the journal the files have come."""
        data = self._store.get(f"{self._session}/{_PUBLISHED}")
        try:
            return _decode_cursor(data) if data else START
        except UNREADABLE:
            return START

    def document(self, task: str) -> dict[str, Any]:
        """The task's document as it stands: from its file if that is Detent's own, else from the journal."""
        with self._replica.reading() as session:
            row, version = session.tasks[task], session.version
        found = self._decoded(task_document.name_of(self._session, task))
        body = found if found is not None and task_document.is_untouched(found) else self.written(task)
        return task_document.plain(task_document.render(body, row, version))

    def written(self, task: str) -> dict[str, Any]:
        """What the journal last said that the task is."""
        found: dict[str, Any] = {}
        for commit in self._commits(START):
            for event in commit.events:
                if isinstance(event, TaskWritten) and event.task == task:
                    found = event.document
        return found

    def raw(self, task: str) -> bytes | None:
        return self._store.get(task_document.name_of(self._session, task))

    def _views(self, since: _Since) -> dict[str, bytes]:
        """The generated Markdown, as far as something that it shows has changed."""
        todo, plan = f"{self._session}/{todo_list.NAME}", f"{self._session}/{impl_plan.NAME}"
        todo_due = bool(since.documents) or self._store.get(todo) is None
        plan_due = since.replanned or self._store.get(plan) is None
        if not (todo_due or plan_due):
            return {}
        with self._replica.reading() as session:
            rows = list(session.tasks)
        shown, more = rows[:MAX_SHOWN], max(0, len(rows) - MAX_SHOWN)
        views: dict[str, bytes] = {}
        if todo_due:
            note = f"{more} more tasks are not listed here; detent task list shows all." if more else ""
            views[todo] = todo_list.todo_list(session.task, shown, summaries=self._summaries(), notes=note).encode()
        if plan_due:
            views[plan] = impl_plan.impl_plan(
                session.task,
                session.id,
                complexity=session.complexity,
                phase=current_phase(session),
                rows=shown,
                documents=_no_document if more else self.document,
            ).encode()
        return views

    def _summaries(self) -> dict[str, str]:
        """Task to the name of its summary's file."""
        names = [name.rpartition("/")[2] for name in self._store.names(f"{self._session}/.summaries/")]
        return {name.removesuffix(".md").removesuffix("-summary"): name for name in names if name.endswith(".md")}

    def _since(self, cursor: Cursor) -> _Since:
        changed: dict[str, dict[str, Any] | None] = {}
        end, more, replanned = cursor, True, False
        while more:
            commits, end, _, more = self._store.read(self._session, end)
            for event in (event for commit in commits for event in commit.events):
                match event:
                    case TaskWritten():
                        changed[event.task], replanned = event.document, True
                    case TaskMoved():
                        changed.setdefault(event.task, None)
                        replanned = replanned or event.status == "container" or event.action == "restore"
                    case TaskRemoved():
                        changed[event.task], replanned = None, True
                    case PhaseBegun() | PhaseRedone() | PhaseFinished() | RolledBack() | ComplexitySet():
                        replanned = True
        return _Since(changed, end, replanned)

    def _commits(self, cursor: Cursor) -> Iterator[Commit]:
        more = True
        while more:
            commits, cursor, _, more = self._store.read(self._session, cursor)
            yield from commits

    def _decoded(self, name: str) -> dict[str, Any] | None:
        data = self._store.get(name)
        if data is None:
            return None
        try:
            found = msgspec.json.decode(data)
        except UNREADABLE:
            return {}
        return found if isinstance(found, dict) else {}


def _no_document(_task: str) -> dict[str, Any]:
    return {}
