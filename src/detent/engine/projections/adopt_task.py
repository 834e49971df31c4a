"""Adopts edited task files: turns edits into events, or keeps them aside with every reason.

A missing file is written again, because removing a task is a command of its own. A file whose name differs from its id
is rejected.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from detent.core.flow.reference import task_properties
from detent.core.flow.step import step_problems
from detent.core.gate.evidence import Facts
from detent.core.session.commands import Command, MoveTask, WriteTasks
from detent.core.session.decide import decide
from detent.core.session.events import Claim, DocumentAdopted, Event
from detent.core.session.evolve import apply
from detent.core.session.session import TASK_PHASES, Session
from detent.core.task.document import document_problems
from detent.core.task.id import canonical, parent_of
from detent.core.task.lifecycle import Action, action_for
from detent.core.task.row import Row, TaskStatus, put_row, row_of
from detent.documents import task as task_document
from detent.engine.projections.adopt import Adoption
from detent.engine.projections.publish import decoded, digest
from detent.engine.projections.rejected_edits import keep_rejected
from detent.engine.projections.task_files import TaskFiles
from detent.engine.projections.task_progress import MAX_WATCHED
from detent.engine.redact_command import redact_command
from detent.errors import DetentError, Refused

if TYPE_CHECKING:
    from detent.engine.project import Project


class _Edit(NamedTuple):
    """A task file that a person wrote, and the document of its task in the journal."""

    stem: str
    task: str
    name: str
    data: bytes
    document: dict[str, Any]
    #: None for a new task.
    mine: dict[str, Any] | None


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
            known = {row.stem: row.id for row in session.tasks} if len(session.tasks) <= MAX_WATCHED or every else None
        if known is None:
            return []
        edits, adoptions = self._read_edits(every=every)
        adoptions += self._adopt_edits(edits)
        for stem in sorted(known.keys() - set(self._files.stems())):
            task = known[stem]
            with self._journal.reading() as session:
                still = task in session.tasks
            if still:
                self._files.rewrite(task)
                adoptions.append(
                    Adoption(
                        document=task_document.name_of(self._session, stem),
                        adopted=False,
                        reasons=(f"the file was gone and is written again; detent task remove {task} removes a task",),
                    )
                )
        return adoptions

    def _read_edits(self, *, every: bool) -> tuple[list[_Edit], list[Adoption]]:
        """The edits that are tasks, and the rejection of each one that is none."""
        edits: dict[str, _Edit] = {}
        rejected = []
        for stem in self._files.suspects(every=every):
            name = task_document.name_of(self._session, stem)
            data = self._project.store.get(name)
            if data is None or self._is_restored(stem, data):
                continue
            document = decoded(data)
            reasons = _problems(document, stem)
            task = canonical(stem) if not reasons else stem
            if not reasons and (task in edits or (self._row(stem) is None and self._has(task))):
                reasons = [f"there is already a task {task}, which is the same number"]
            if reasons:
                rejected.append(self._reject(stem, name, reasons))
                continue
            mine = self._files.document(task) if self._has(task) else None
            edits[task] = _Edit(stem, task, name, data, document, mine)
        return list(edits.values()), rejected

    def _is_restored(self, stem: str, data: bytes) -> bool:
        """Whether Detent wrote the file. An older one that was restored is no edit, and is written again."""
        document = decoded(data)
        row = self._row(stem)
        if row is None or not task_document.is_untouched(document) or document["id"] != stem:
            return False
        if not task_document.is_of(document, row) or (task_document.written_at(document) or 0) < row.changed:
            self._files.rewrite(row.id)
        return True

    def _adopt_edits(self, edits: list[_Edit]) -> list[Adoption]:
        """Adopt edits as one change. If that is refused, as many as possible, each container with its parts."""
        if not edits:
            return []
        refused = self._commit(edits)
        if not refused:
            return [self._adopted(edit) for edit in edits]
        groups = _groups(edits)
        reasons = dict.fromkeys(range(len(groups)), refused)
        adoptions: list[Adoption] = []
        goes_on = len(groups) > 1
        while goes_on:
            # A group may depend on another one that comes later.
            goes_on = False
            for at in list(reasons):
                reasons[at] = self._commit(groups[at])
                if not reasons[at]:
                    del reasons[at]
                    adoptions += [self._adopted(edit) for edit in groups[at]]
                    goes_on = True
        return adoptions + [
            self._reject(edit.stem, edit.name, why) for at, why in reasons.items() for edit in groups[at]
        ]

    def _adopted(self, edit: _Edit) -> Adoption:
        self._files.rewrite(edit.task)
        return Adoption(document=edit.name, adopted=True)

    def _reject(self, stem: str, name: str, reasons: list[str]) -> Adoption:
        kept = keep_rejected(self._project.store, name)
        row = self._row(stem)
        if row is not None:
            self._files.rewrite(row.id)
        else:
            self._project.store.delete(name)
        return Adoption(document=name, adopted=False, reasons=tuple(reasons), kept=kept)

    def _commit(self, edits: list[_Edit]) -> list[str]:
        """Commit the edits as one change; returns the reasons if that is refused."""
        with self._journal.reading() as session:
            is_moved = session.workflow.order == TASK_PHASES
        from detent.engine.reconcile import edit_facts  # noqa: PLC0415 - it adopts tasks

        # The last task may finish a phase.
        facts = edit_facts(self._project, self._session) if is_moved else Facts(now=self._project.clock())

        def decided(session: Session) -> tuple[Event, ...]:
            events: list[Event] = []
            after = session
            for command in _commands(session, edits, self._claim()):
                made = decide(after, redact_command(command), facts)
                for event in made:
                    after = apply(after, event, at=facts.now, version=session.version + 1)
                events.extend(made)
            if not events:
                raise Refused(_NOTHING)
            return (*(DocumentAdopted(document=edit.name, digest=digest(edit.data)) for edit in edits), *events)

        try:
            self._journal.commit(decided, actor=self._project.actor, now=facts.now)
        except DetentError as error:
            return [] if error.message == _NOTHING else error.message.split("\n  - ")
        self._project.touched(self._session)
        return []

    def _row(self, stem: str) -> Row | None:
        """The task whose file has this name."""
        with self._journal.reading() as session:
            return task_document.row_at(session.tasks, stem)

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


def _groups(edits: list[_Edit]) -> list[list[_Edit]]:
    """The edits that only make sense together: new parts, and the container that is new or becomes one."""
    groups: dict[str, list[_Edit]] = {}
    for edit in edits:
        above = parent_of(edit.task) if edit.mine is None else None
        groups.setdefault(above or edit.task, []).append(edit)
    return list(groups.values())


def _commands(session: Session, edits: list[_Edit], claim: Claim) -> list[Command]:
    """The commands that the edits stand for: the documents together first, then each status."""
    new = {edit.task for edit in edits if edit.mine is None}
    documents: list[dict[str, Any]] = []
    moves: list[Command] = []
    for edit in edits:
        body = task_document.plain(edit.document)
        row = session.tasks.get(edit.task)
        if edit.mine is None and row is not None:
            raise Refused(f"there is already a task {edit.task}")
        if row is None or edit.mine is None:
            documents.append(body)
            continue
        wanted = TaskStatus(body["status"])
        splits = wanted is TaskStatus.CONTAINER and any(parent_of(task) == edit.task for task in new)
        if wanted is not row.status and TaskStatus.CONTAINER in (wanted, row.status) and not splits:
            raise Refused(
                f"{edit.task} is {row.status}; a container comes and goes with its parts",
                way_out="detent task split, detent task remove",
            )
        same_status = put_row({**body, "status": row.status.value}, row)
        changed = same_status != edit.mine or row_of(body).depends_on != row.depends_on
        if changed or wanted is not row.status:
            written = task_document.written_at(edit.document)
            if written is not None and written < row.changed:
                raise Refused(f"the edit is of version {written}, and {edit.task} changed at version {row.changed}")
        if changed or splits:
            documents.append(same_status | {"status": wanted.value} if splits else same_status)
        action = action_for(edit.task, row.status, wanted) if wanted is not row.status and not splits else None
        if action is not None:
            reason = "edited by hand" if action in (Action.BLOCK, Action.FAIL) else ""
            held = claim if wanted is TaskStatus.ACTIVE else None
            moves.append(MoveTask(task=edit.task, action=action, reason=reason, claim=held))
    reason = "written by hand" if new else "edited by hand"
    write = [WriteTasks(documents=tuple(documents), reason=reason, gathers=True)] if documents else []
    return [*write, *moves]
