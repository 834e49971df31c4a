"""Adopts edited task files: turns edits into events, or keeps them aside with every reason.

A missing file is written again, because removing a task is a command of its own. A file whose name differs from its id
is rejected.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from detent.core.flow.reference import task_properties
from detent.core.flow.step import step_problems
from detent.core.gate.evidence import Facts
from detent.core.session.commands import Command, MoveTask, WriteTasks
from detent.core.session.decide import decide
from detent.core.session.events import Claim, DocumentAdopted, Event
from detent.core.session.evolve import apply
from detent.core.session.session import Session
from detent.core.task.document import document_problems
from detent.core.task.id import canonical
from detent.core.task.lifecycle import Action, action_for
from detent.core.task.row import TaskStatus, put_row, row_of
from detent.documents import task as task_document
from detent.engine.projections.adopt import Adoption
from detent.engine.projections.publish import UNREADABLE, digest
from detent.engine.projections.rejected_edits import keep_rejected
from detent.engine.projections.task_files import MAX_WATCHED, TaskFiles
from detent.engine.redact_command import redact_command
from detent.errors import DetentError, Refused

if TYPE_CHECKING:
    from detent.engine.project import Project


class TaskAdoption:
    """The edited task files of one session. The caller holds PROJECT and publishes afterwards."""

    def __init__(self, project: "Project", session: str) -> None:
        self._project = project
        self._session = session
        self._journal = project.journal(session)
        self._files = TaskFiles(project.store, self._journal)

    def adopt_all(self, *, every: bool = False) -> list[Adoption]:
        """Adopt or reject every edit; `every` also reads files that do not look changed."""
        with self._journal.reading() as session:
            known = frozenset(session.tasks.ids) if len(session.tasks) <= MAX_WATCHED or every else None
        if known is None:
            return []
        suspects = self._files.suspects(every=every)
        adoptions = [adoption for stem in suspects if (adoption := self._adopt_file(stem)) is not None]
        present = set(self._files.stems())
        for task in sorted(known - present):
            with self._journal.reading() as session:
                still = task in session.tasks
            if still:
                self._files.rewrite(task)
                adoptions.append(
                    Adoption(
                        document=task_document.name_of(self._session, task),
                        adopted=False,
                        reasons=(f"the file was gone and is written again; detent task remove {task} removes a task",),
                    )
                )
        return adoptions

    def pending(self) -> list[str]:
        """The task files that were edited by hand."""
        with self._journal.reading() as session:
            known = frozenset(session.tasks.ids)
        suspects = self._files.suspects(every=True)
        return [task_document.name_of(self._session, stem) for stem in suspects if not self._is_own(stem, known)]

    def _is_own(self, stem: str, known: frozenset[str]) -> bool:
        data = self._project.store.get(task_document.name_of(self._session, stem))
        document = _decoded(data) if data is not None else None
        is_ours = isinstance(document, dict) and task_document.is_untouched(document) and document.get("id") == stem
        return is_ours and stem in known

    def _adopt_file(self, stem: str) -> Adoption | None:
        name = task_document.name_of(self._session, stem)
        data = self._project.store.get(name)
        if data is None:
            return None
        document = _decoded(data)
        with self._journal.reading() as session:
            row = session.tasks.get(stem)
        known = row is not None
        if row is not None and task_document.is_untouched(document) and document["id"] == stem:
            if not task_document.is_of(document, row) or (task_document.written_at(document) or 0) < row.changed:
                # An older file that Detent wrote was restored; that is no edit.
                self._files.rewrite(stem)
            return None
        reasons = _problems(document, stem)
        if not reasons and stem != canonical(stem):
            if self._has(canonical(stem)):
                reasons = [f"there is already a task {canonical(stem)}, which is the same number"]
            else:
                document = {**document, "id": canonical(stem)}
        if not reasons:
            reasons = self._adopt(stem, name, data, document)
        if not reasons:
            self._files.rewrite(canonical(stem))
            if stem != canonical(stem):
                # The journal and the file of the canonical id have its content now.
                self._project.store.delete(name)
            return Adoption(document=name, adopted=True)
        kept = keep_rejected(self._project.store, name)
        if known:
            self._files.rewrite(stem)
        else:
            self._project.store.delete(name)
        return Adoption(document=name, adopted=False, reasons=tuple(reasons), kept=kept)

    def _adopt(self, stem: str, name: str, data: bytes, document: dict[str, Any]) -> list[str]:
        task = canonical(stem)
        mine = self._files.document(task) if self._has(task) else None
        facts = Facts(now=self._project.clock())

        def decided(session: Session) -> tuple[Event, ...]:
            events: list[Event] = []
            after = session
            for command in _commands(session, task, mine, document, self._claim()):
                made = decide(after, redact_command(command), facts)
                for event in made:
                    after = apply(after, event, at=facts.now, version=session.version + 1)
                events.extend(made)
            if not events:
                raise Refused(_NOTHING)
            return (DocumentAdopted(document=name, digest=digest(data)), *events)

        try:
            self._journal.commit(decided, actor=self._project.actor, now=facts.now)
        except DetentError as error:
            return [] if error.message == _NOTHING else error.message.split("\n  - ")
        self._project.touched(self._session)
        return []

    def _has(self, task: str) -> bool:
        with self._journal.reading() as session:
            return task in session.tasks

    def _claim(self) -> Claim:
        return Claim(owner=self._project.actor.name, fence=0, since=self._project.clock())


_NOTHING = "the edit changes nothing"


def _problems(document: object, stem: str) -> list[str]:
    if not isinstance(document, dict) or not document:
        return ["it is not a JSON object"]
    body = task_document.plain(document)
    errors = [problem for problem in document_problems(body, stem=stem) if problem.severity == "error"]
    flow = step_problems(body.get("flow_control"), declared=task_properties(body)) if not errors else []
    errors = [*errors, *(problem for problem in flow if problem.severity == "error")]
    return [f"{problem.path}: {problem.message}" for problem in errors]


def _commands(
    session: Session, task: str, mine: dict[str, Any] | None, document: dict[str, Any], claim: Claim
) -> list[Command]:
    """The commands that the edit stands for: the document first, then the status."""
    body = task_document.plain(document)
    row = session.tasks.get(task)
    if row is None or mine is None:
        return [WriteTasks(documents=(body,), new=True, reason="written by hand")]
    wanted = TaskStatus(body["status"])
    if wanted is not row.status and TaskStatus.CONTAINER in (wanted, row.status):
        raise Refused(
            f"{task} is {row.status}; a container comes and goes with its parts",
            way_out="detent task split, detent task remove",
        )
    same_status = put_row({**body, "status": row.status.value}, row)
    commands: list[Command] = []
    if same_status != mine or row_of(body).depends_on != row.depends_on:
        written = task_document.written_at(document)
        if written is not None and written < row.changed:
            raise Refused(f"the edit is of version {written}, and {task} changed at version {row.changed}")
        commands.append(WriteTasks(documents=(same_status,), new=False, reason="edited by hand"))
    if wanted is not row.status:
        written = task_document.written_at(document)
        if written is not None and written < row.changed:
            raise Refused(f"the edit is of version {written}, and {task} changed at version {row.changed}")
        action = action_for(task, row.status, wanted)
        if action is not None:
            reason = "edited by hand" if action in (Action.BLOCK, Action.FAIL) else ""
            held = claim if wanted is TaskStatus.ACTIVE else None
            commands.append(MoveTask(task=task, action=action, reason=reason, claim=held))
    return commands


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except UNREADABLE:
        return None
