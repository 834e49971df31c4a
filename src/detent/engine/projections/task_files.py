"""Projects tasks into files and views.

A progress file holds the journal position of the last publication. Only tasks that changed since are written, so a
change of one task costs one file.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from detent import __version__
from detent.core.path_text import from_text, to_text
from detent.core.session.events import (
    BaselineEvent,
    CheckpointTaken,
    Commit,
    ComplexitySet,
    DelegationEvent,
    DocumentAdopted,
    EscalationEvent,
    GateEvent,
    PhaseBegun,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    PhaseReset,
    PhaseReviewed,
    PhasesImported,
    PhaseSkipped,
    QuestionEvent,
    RecordEvent,
    RolledBack,
    SessionEvent,
    TaskMoved,
    TaskRemoved,
    TaskWritten,
)
from detent.core.task.id import read_id
from detent.core.task.row import Row
from detent.documents import PUBLISHED_TASKS
from detent.documents import task as task_document
from detent.documents.state.writing import current_phase
from detent.engine.journal import SessionJournal
from detent.engine.projections.publish import decoded, encode, publish_views
from detent.engine.projections.rejected_edits import keep_rejected
from detent.engine.projections.task_progress import MAX_WATCHED, Progress, read_progress
from detent.errors import Corrupt
from detent.store.port import START, Cursor, Store

#: Views list at most this many tasks, and the number of the others.
MAX_SHOWN = 2_000
#: Events that change neither a task file nor a view of the tasks.
_NO_TASK = (
    SessionEvent | GateEvent | DelegationEvent | QuestionEvent | EscalationEvent | CheckpointTaken | PhaseFailed
) | (PhaseSkipped | PhaseReset | PhaseReviewed | PhasesImported | DocumentAdopted | RecordEvent | BaselineEvent)


class Published(NamedTuple):
    #: Tasks whose files were edited by hand and left alone.
    edited: list[str]
    #: Views that were edited by hand; their text is kept as `.bak`.
    kept: list[str]


class _Since(NamedTuple):
    """The changes behind a journal position."""

    #: Each changed task, with its document if that was written.
    documents: dict[str, dict[str, Any] | None]
    end: Cursor
    #: Whether the plan view changed: tasks, their content, or the phase.
    replanned: bool


class TaskFiles:
    """The task files of one session. The caller of a method that writes holds PROJECT."""

    def __init__(self, store: Store, journal: SessionJournal) -> None:
        self._store = store
        self._journal = journal
        self._session = journal.id
        self._folder = f"{journal.id}/{task_document.FOLDER}/"

    def publish(self) -> Published:
        """Write the files and views that changed."""
        before = self.published()
        with self._journal.reading() as session:
            has_none = not session.tasks_sum and not session.shows_tasks
            end = self._journal.end
        # Without a task up to now nothing is to be looked for in the journal.
        since = _Since({}, end, replanned=end != before.cursor) if has_none else self._since(before.cursor)
        # With very many files, only those that are written are checked for edits.
        stems, mark = self._changed(before) if before.count <= MAX_WATCHED else ((), before.mark)
        suspects = sorted({*stems, *map(from_text, before.suspects)} - since.documents.keys())
        with self._journal.reading() as session:
            rows = {task: session.tasks.get(task) for task in since.documents}
            edited = [stem for stem in suspects if not self._is_own(stem, task_document.row_at(session.tasks, stem))]
            count, following = len(session.tasks), session.tasks.next_ready() if len(session.tasks) else None
            next_row = session.tasks[following] if following is not None else None
        for task, document in since.documents.items():
            if not self._write(task, document, rows[task], since.end.version):
                edited.append(task)
        kept = publish_views(self._store, self._views(since))
        suspects_now = [to_text(stem) for stem in edited]
        if since.documents or since.replanned or before.cursor.version == 0 or suspects_now != before.suspects:
            after = Progress(__version__, since.end, mark, suspects_now, count, next_row)
            self._store.put(f"{self._session}/{PUBLISHED_TASKS}", msgspec.json.encode(after))
        return Published(edited, kept)

    def _write(self, task: str, document: dict[str, Any] | None, row: Row | None, version: int) -> bool:
        """Write one task file; False if it was edited by hand and left alone."""
        name = task_document.name_of(self._session, row.stem if row is not None else self._stem(task))
        stored = self._decoded(name)
        if stored is not None and not task_document.is_untouched(stored):
            if row is None:
                keep_rejected(self._store, name)
                self._store.delete(name)
                return True
            return False
        if row is None:
            self._store.delete(name)
            return True
        mine = stored if stored is not None and task_document.is_of(stored, row) else None
        body = document or mine or self.written(task)
        self._store.put(name, encode(task_document.render(body, row, version)))
        return True

    def _is_own(self, stem: str, row: Row | None) -> bool:
        stored = self._decoded(task_document.name_of(self._session, stem))
        return stored is None or (row is not None and task_document.is_untouched(stored) and stored.get("id") == stem)

    def suspects(self, *, every: bool = False) -> list[str]:
        """Files that may have been edited: changed since the last publication, or edited then. Reads none."""
        before = Progress() if every else self.published()
        return sorted({*self._changed(before)[0], *map(from_text, before.suspects)})

    def edited(self, *, every: bool = False) -> list[str]:
        """The files that were edited by hand. With very many files, only `every` looks."""
        if not every and self.published().count > MAX_WATCHED:
            return []
        suspects = self.suspects(every=every)
        if not suspects:
            return []
        with self._journal.reading() as session:
            return [
                task_document.name_of(self._session, stem)
                for stem in suspects
                if not self._is_own(stem, task_document.row_at(session.tasks, stem))
            ]

    def stems(self) -> list[str]:
        """The names of all task files, without their ending."""
        return self._stems(self._store.names(self._folder))

    def _changed(self, before: Progress) -> tuple[list[str], int]:
        names, mark = self._store.changed(self._folder, before.mark)
        return self._stems(names), mark

    def _stems(self, names: Iterable[str]) -> list[str]:
        stems = (name.removeprefix(self._folder) for name in names if name.endswith(".json"))
        return [stem.removesuffix(".json") for stem in stems if not stem.startswith(".")]

    def next_published(self) -> "Progress | None":
        """The published progress with the next task, if nothing was committed since."""
        before = self.published()
        if before.written_by != __version__ or before.cursor.version == 0:
            return None
        try:
            commits, _, torn, _ = self._store.read(self._session, before.cursor, 1)
        except Corrupt:
            return None
        return None if commits or torn else before

    def rewrite(self, task: str) -> None:
        """Overwrite the file of a task."""
        document, row, version = self._current(task)
        rendered = encode(task_document.render(document, row, version))
        self._store.put(task_document.name_of(self._session, row.stem), rendered)

    def published(self) -> Progress:
        return read_progress(self._store, self._session)

    def document(self, task: str) -> dict[str, Any]:
        """The current document of a task: from its file if Detent wrote it, else from the journal."""
        document, row, version = self._current(task)
        return task_document.plain(task_document.render(document, row, version))

    def _current(self, task: str) -> tuple[dict[str, Any], Row, int]:
        with self._journal.reading() as session:
            row, version = session.tasks[task], session.version
        document = self._decoded(task_document.name_of(self._session, row.stem))
        if document is None or not task_document.is_of(document, row):
            document = self.written(task)
        return document, row, version

    def written(self, task: str) -> dict[str, Any]:
        """The document of a task as last written to the journal."""
        document: dict[str, Any] = {}
        for commit in self._commits(START):
            for event in commit.events:
                if isinstance(event, TaskWritten) and event.task == task:
                    document = event.document
        return document

    def raw(self, stem: str) -> bytes | None:
        return self._store.get(task_document.name_of(self._session, stem))

    def _stem(self, task: str) -> str:
        """The name of the file of a task that was removed."""
        return next((stem for stem in self.stems() if (own := read_id(stem)) and str(own) == task), task)

    def _views(self, since: _Since) -> dict[str, bytes]:
        """The Markdown views that changed."""
        from detent.render.markdown import impl_plan, todo_list  # noqa: PLC0415 - looking at a task needs no view of all

        todo, plan = f"{self._session}/{todo_list.NAME}", f"{self._session}/{impl_plan.NAME}"
        with self._journal.reading() as session:
            is_shown = session.shows_tasks
        has_plan = self._store.get(plan) is not None
        todo_due = bool(since.documents) or (is_shown and self._store.get(todo) is None)
        plan_due = (since.replanned and has_plan) or (is_shown and (since.replanned or not has_plan))
        if not (todo_due or plan_due):
            return {}
        with self._journal.reading() as session:
            rows = list(session.tasks)
        shown, more = rows[:MAX_SHOWN], max(0, len(rows) - MAX_SHOWN)
        views: dict[str, bytes] = {}
        if todo_due:
            note = f"{more} more tasks are not listed here; detent task list shows all." if more else ""
            stems = {row.id: row.stem for row in shown}
            views[todo] = todo_list.todo_list(
                session.task, shown, summaries=self._summaries(), stems=stems, notes=note
            ).encode()
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
        """The name of the summary file of each task."""
        names = [name.rpartition("/")[2] for name in self._store.names(f"{self._session}/.summaries/")]
        return {name.removesuffix(".md").removesuffix("-summary"): name for name in names if name.endswith(".md")}

    def _since(self, cursor: Cursor) -> _Since:
        changed: dict[str, dict[str, Any] | None] = {}
        try:
            self._store.read(self._session, cursor, 0)
        except Corrupt:
            # The journal was replaced: write all files again.
            cursor = START
        end, more, replanned = cursor, True, False
        while more:
            commits, end, _, more = self._store.read(self._session, end)
            for event in (event for commit in commits for event in commit.events):
                if isinstance(event, _NO_TASK):
                    continue
                match event:
                    case TaskWritten():
                        changed[event.task], replanned = event.document, True
                    case TaskMoved():
                        changed.setdefault(event.task, None)
                        replanned = replanned or event.status == "container" or event.action == "restore"
                    case TaskRemoved():
                        changed[event.task], replanned = None, True
                    case RolledBack():
                        changed |= {task: changed.get(task) for task in event.tasks}
                        replanned = True
                    case PhaseBegun() | PhaseRedone() | PhaseFinished() | ComplexitySet():
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
        document = decoded(data)
        return document if isinstance(document, dict) else {}


def _no_document(_task: str) -> dict[str, Any]:
    return {}
