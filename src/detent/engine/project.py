"""A project: its sessions, documents and history, on one store, for one actor."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from detent.config import place as places
from detent.config.catalogue import Catalogue
from detent.config.place import INTENT, Place
from detent.config.settings import Settings
from detent.core.actor import Actor, Channel
from detent.core.checkpoint.checkpoint import checkpoint_id
from detent.core.gate.evidence import Facts
from detent.core.limits import check_task
from detent.core.session.commands import Pause, RecordSettings, Resume, Start
from detent.core.session.decide import decide, decide_import, decide_start
from detent.core.session.decide_phase import first_phase
from detent.core.session.describe import event_lines
from detent.core.session.events import Commit, Discovery, Event, Options
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import Session, SessionStatus
from detent.core.session.slug import check_session_id, slugify
from detent.core.task.row import TaskStatus
from detent.core.workflow.graph import Workflow, problems
from detent.documents import session as session_document
from detent.documents import state as state_document
from detent.engine.actor import identify
from detent.engine.agents.binding import AgentBinding
from detent.engine.gates.applicable import applicable
from detent.engine.journal import SessionJournal
from detent.engine.policy import Decision, authorize
from detent.engine.projections import history
from detent.engine.projections.adopt import STATE_DOCUMENT, Adoption, adopt
from detent.engine.projections.projector import MARKER, Projector
from detent.engine.projections.publish import decoded, edited_documents
from detent.engine.projections.write_behind import WriteBehind
from detent.engine.session import SessionHandle
from detent.engine.session_ids import new_id, next_number, state_version
from detent.engine.stores import lost_project, open_store
from detent.errors import Corrupt, Invalid, NotFound, Refused, StoreFailed
from detent.store.port import PROJECT, Store

if TYPE_CHECKING:
    from detent.core.checkpoint.manifest import Manifest
    from detent.engine.checkpoints.checkpoints import Checkpoints
    from detent.engine.checkpoints.rollback import Rollbacks
    from detent.engine.sessions import Sessions

MAX_FOLDER = 60
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time to the millisecond, the precision of documents."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def open_project(
    path: str | os.PathLike[str] = ".",
    *,
    project: str | None = None,
    actor: str | Actor | None = None,
    clock: Clock = utc_now,
    tolerant: bool = False,
) -> "Project":
    """The project around `path`; in a monorepo `project` chooses the package.

    `actor` is the name that commits show. Whether a person or an agent asks is read from the process, not from a name.
    With `tolerant`, settings that cannot be used are left out.
    """
    start = os.fspath(path)
    try:
        place, settings = places.find(
            start, project=project, environment_project=os.environ.get("DETENT_PROJECT"), tolerant=tolerant
        )
    except NotFound:
        check_not_lost(start)
        raise
    check_not_lost(start, below=place.root if os.path.isdir(places.at_root(place.root).state) else "")
    who = actor if isinstance(actor, Actor) else identify(os.environ, Channel.LIBRARY, name=actor)
    return Project(open_store(place), place, settings, actor=who, clock=clock)


def check_not_lost(start: str, *, below: str = "") -> None:
    """Refuse to take a project whose whole record is gone for one that never had any."""
    lost = lost_project(start, below)
    if lost is not None:
        root, sessions = lost
        raise Corrupt(
            f"the project {root} had {len(sessions)} sessions, and their record is gone: {', '.join(sessions[:5])}",
            way_out="detent doctor --restore brings it back, detent forget ends it",
        )


def init_project(path: str | os.PathLike[str] = ".") -> tuple[Place, bool]:
    """Make `path` a project; False if it was one already."""
    root = os.path.realpath(os.fspath(path))
    if not os.path.isdir(root):
        raise NotFound(f"{root} is not a directory")
    place = places.at_root(root)
    check_not_lost(root, below=os.path.dirname(root))
    store = open_store(place)
    fresh = not os.path.isdir(store.directory(""))
    if fresh:
        # Local by default. Remove the file to commit the state.
        store.put(".gitignore", b"*\n")
    return place, fresh


class Project:
    """Close it, or use it as a context manager, to publish the documents."""

    def __init__(self, store: Store, place: Place, settings: Settings, *, actor: Actor, clock: Clock = utc_now) -> None:
        self.store = store
        self.place = place
        self.settings = settings
        self.actor = actor
        self.clock = clock
        #: Gates that were left out of the session just started, with reasons.
        self.left_out: tuple[str, ...] = ()
        self._projector = Projector(store, place, self._files_of)
        #: Set where a runner started this process.
        self.binding: AgentBinding | None = None
        self._touched: set[str] = set()
        self._write_behind = WriteBehind(self._publish_touched)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._write_behind.flush()
        if "checkpoints" in self.__dict__:
            self.checkpoints.close()
        self.store.close()

    @cached_property
    def checkpoints(self) -> "Checkpoints":
        from detent.engine.checkpoints.checkpoints import Checkpoints  # noqa: PLC0415 - reading needs none of it

        return Checkpoints(self.store, self.place, self.settings.checkpoint)

    @cached_property
    def rollbacks(self) -> "Rollbacks":
        from detent.engine.checkpoints.rollback import Rollbacks  # noqa: PLC0415

        return Rollbacks(self, self.checkpoints)

    @property
    def catalogue(self) -> Catalogue:
        return Catalogue(self.settings)

    @property
    def notices(self) -> list[str]:
        """Notices for a person; none of them stopped anything."""
        return self._projector.notices

    # Sessions

    def active(self) -> str | None:
        """The session that the marker names."""
        return self._projector.active()

    def _applicable(self, workflow: Workflow, *, delegates: bool = False) -> Workflow:
        """The workflow with the gates that apply here; sets `left_out` for the others."""
        kept, left_out = applicable(workflow, self.place, delegates=delegates)
        self.left_out = left_out if self.settings.options().gates else ()
        return kept

    def session(self, name: str | None = None, *, actor: Actor | None = None) -> SessionHandle:
        """The named session; else the one that this process works for; else the active one.

        `actor` is the author of what is done through the handle, where that is not the one who opened the project.
        """
        own = self.binding.session if self.binding is not None else None
        wanted = check_session_id(name) if name is not None else own or self.active()
        if wanted is None:
            raise NotFound("no session is active", way_out='detent start WORKFLOW "TASK"')
        if name is not None and wanted not in self.store.sessions():
            raise NotFound(f"there is no session {wanted}", way_out="detent history lists those that ended")
        return SessionHandle(self, wanted, actor)

    def start(
        self,
        workflow: str | Workflow,
        task: str,
        *,
        name: str | None = None,
        size: str | None = None,
        branch: str | None = None,
        discovery: Discovery | None = None,
        delegates: bool = False,
        joins: bool = False,
    ) -> SessionHandle:
        """Open a session with its first phase in progress, and make it the active one.

        `delegates`: the caller delegates the phases itself, so delegation gates apply.
        `joins`: return the active session if it has the same task.
        """
        chosen = self.catalogue.workflow(workflow) if isinstance(workflow, str) else _checked(workflow)
        chosen = self._applicable(chosen, delegates=delegates)
        check_task(task)
        protected = self._protected(chosen, size)
        now = self.clock()
        epoch = self.checkpoints.epoch() if self.takes_checkpoints else None
        tree = self.checkpoints.tree(checkpoint_id(task, now, "start")) if self.takes_checkpoints else None
        with self.store.lock(PROJECT):
            if epoch is not None:
                self.checkpoints.check_current(epoch)
            active = self.active() if joins else None
            if active is not None and self.journal(active).session().task == task.strip():
                return SessionHandle(self, active)
            session = new_id(self.store, task, name)
            number = next_number(self.store, chosen.prefix)
            slug = slugify(task)[:MAX_FOLDER].rstrip("-")
            command = Start(
                session=session,
                task=task,
                workflow=chosen,
                number=number,
                folder=slug if number is None else f"{chosen.prefix}-{number:04d}-{slug}",
                branch=branch,
                discovery=discovery,
                size=size,
                base=state_version(self.store, self._projector),
                options=self._options(),
                protected=protected,
                tree=tree,
                now=now,
            )
            self._open(session, decide_start(command), at=now)
        handle = SessionHandle(self, session)
        if protected is not None:
            handle.keep_protected(first_phase(chosen, size))
        return handle

    def _protected(self, workflow: Workflow, size: str | None) -> str | None:
        """The digest of the tests that the first phase protects."""
        gates = workflow.by_key[first_phase(workflow, size)].gates
        if self.settings.gates != "strict" or not any(gate.protected for gate in gates):
            return None
        from detent.engine.gates.checks import GateChecks  # noqa: PLC0415 - only protected tests need it

        return GateChecks(self.store, self.place, "", self.checkpoints.moment).protected_digest(gates)

    def import_state(self, document: object, *, source: str) -> SessionHandle:
        """Create a session from a state document, and make it the active one."""
        authorize(self.actor, Decision.IMPORT)
        with self.store.lock(PROJECT):
            taken = tuple(self.store.sessions())
            command = state_document.imported(document, source=source, taken=taken, phase=self.catalogue.phase)
            base = max(command.start.base, state_version(self.store, self._projector))
            workflow = self._applicable(command.start.workflow)
            options = self._options(command.start.options)
            start = msgspec.structs.replace(command.start, base=base, options=options, workflow=workflow)
            self._open(start.session, decide_import(msgspec.structs.replace(command, start=start)), at=self.clock())
        return SessionHandle(self, start.session)

    def _options(self, imported: Options | None = None) -> Options:
        chosen = self.settings.options(imported)
        return msgspec.structs.replace(chosen, settings=places.settings_digest(self.place.root))

    def history(self) -> list[dict[str, Any]]:
        """An entry for each session that ended, oldest first."""
        return history.read_history(self.store)

    # Documents and journals

    def journal(self, session: str) -> SessionJournal:
        return self._projector.journal(session)

    def reread(self, session: str) -> None:
        """Read the journal again from its start when it is next used: it was mended."""
        self._projector.forget(session)

    def documents(self, sessions: Mapping[str, Session]) -> dict[str, bytes]:
        """The expected documents of `sessions`; the state document is that of the active one."""
        return self._projector.documents(sessions)

    def rebuild(self) -> None:
        """Rebuild the history and the documents of every session. A session with a damaged journal is left as it is."""
        with self.store.lock(PROJECT):
            self._projector.rebuild()

    def reconcile(self, *, every: bool = False, publish: bool = True) -> list[Adoption]:
        """Finish the work of an interrupted command, and adopt edits made by hand.

        `every` also reads task files that do not look changed. `publish=False` leaves the documents to the change that
        follows, which publishes them once, unless an edit was adopted.
        """
        if self.store.repairs is not None:
            self.notices.extend(filter(None, [self.store.repairs.catch_up()]))
        with self.store.lock(PROJECT):
            if self.store.get(INTENT) is not None:
                self.notices.extend(filter(None, [self.rollbacks.recover()]))
            active = self._projector.clear_markers()
            if active is None or self.is_damaged(active):
                return []
            try:
                self._reconcile_switch(active)
                return self._reconcile_active(active, every=every, publish=publish)
            except Corrupt as error:
                # A snapshot can hide damage until older commits are read. Commands about other sessions go on.
                self.notices.append(error.message)
                return []

    def _reconcile_active(self, active: str, *, every: bool, publish: bool) -> list[Adoption]:
        journal = self.journal(active)
        self._reconcile_pause(journal)
        self.notice_settings(active)
        tasks = self._adopt_tasks(active, every=every)
        adoptions = [
            adopt(self.store, journal, name, actor=self.actor, facts=self._edit_facts(active))
            for name in edited_documents(self.store, [STATE_DOCUMENT, f"{active}/{session_document.NAME}"])
        ]
        if adoptions or publish:
            # An adopted edit is written over at once: after a later commit and a kill it would look like a new one.
            self._publish_if_possible(active, overwrite=bool(adoptions))
        else:
            self.touched(active)
        return [*tasks, *adoptions]

    def is_damaged(self, name: str) -> bool:
        """Whether the journal cannot be read. Commands that need it say why; all others go on."""
        try:
            self.journal(name).session()
        except Corrupt:
            return True
        return False

    def notice_settings(self, name: str) -> None:
        """Record once that detent.toml was changed, and who was at work."""
        journal, digest = self.journal(name), places.settings_digest(self.place.root)
        session = journal.session()
        if session.options.settings == digest or session.status is not SessionStatus.ACTIVE:
            return
        command, facts = RecordSettings(digest=digest), Facts(now=self.clock())
        # Another process may be faster.
        with suppress(Refused):
            done = journal.commit(lambda session: decide(session, command, facts), actor=self.actor, now=facts.now)
            self.notices.extend(event_lines(done.commit.events))

    def _reconcile_pause(self, journal: SessionJournal) -> None:
        """Resume a session that has the marker but is recorded as paused: a command was interrupted."""
        session = journal.session()
        if session.paused_at is not None and session.status is SessionStatus.ACTIVE:
            facts = Facts(now=self.clock())
            journal.commit(lambda current: decide(current, Resume(), facts), actor=self.actor, now=facts.now)

    def _reconcile_switch(self, active: str) -> None:
        """Pause the session of the state document if a person moved the marker to another one."""
        document = decoded(self.store.get(STATE_DOCUMENT))
        flow = document.get("active_workflow") if isinstance(document, dict) else None
        name = flow.get("session_id") if isinstance(flow, dict) else None
        if name != active and name in self.store.sessions() and not self.is_damaged(str(name)):
            self._release_tasks(str(name), active)
            self._projector.publish(str(name))

    def _adopt_tasks(self, name: str, *, every: bool) -> list[Adoption]:
        if not self.journal(name).has_tasks() and not self.store.names(f"{name}/.task/IMPL"):
            return []
        from detent.engine.projections.adopt_task import TaskAdoption  # noqa: PLC0415 - many sessions have no tasks

        return TaskAdoption(self, name).adopt_all(every=every)

    def rank(self, name: str) -> int:
        """The count of a session's marker; the highest one is active."""
        return self._projector.rank(name)[0]

    @cached_property
    def sessions(self) -> "Sessions":
        """What is done to whole sessions: list, switch, pause, resume, reopen, archive."""
        from detent.engine.sessions import Sessions  # noqa: PLC0415 - most commands stay in one session

        return Sessions(self)

    def _files_of(self, digest: str) -> "Manifest":
        return self.checkpoints.files(digest)

    @property
    def takes_checkpoints(self) -> bool:
        return self.settings.checkpoint.capture != "off"

    def _edit_facts(self, name: str) -> Facts:
        """The facts for the gates of every phase: an edit may finish any of them."""
        from detent.engine.gates.checks import GateChecks  # noqa: PLC0415 - only an edit needs it

        session = self.journal(name).session()
        checks = GateChecks(self.store, self.place, name, self.checkpoints.moment)
        owner = checkpoint_id(name, self.clock(), "edit")
        moment = self.checkpoints.moment(owner)
        by_phase = [checks.facts(session, key, self.clock(), moment) for key in session.workflow.order]
        return Facts(
            now=self.clock(),
            exists=frozenset().union(*(facts.exists or () for facts in by_phase)),
            changed={digest: files for facts in by_phase for digest, files in facts.changed.items()},
            tree=self.checkpoints.tree(owner, session, moment=moment) if self.takes_checkpoints else None,
        )

    def pending_edits(self) -> list[str]:
        """The documents of the active session that were edited by hand."""
        active = self.active()
        return edited_documents(self.store, [STATE_DOCUMENT, f"{active}/{session_document.NAME}"]) if active else []

    def pending_settings(self) -> list[str]:
        """Says that detent.toml was changed since the active session last saw it."""
        active = self.active()
        if active is None or self.is_damaged(active):
            return []
        session, digest = self.journal(active).session(), places.settings_digest(self.place.root)
        command = RecordSettings(digest=digest)
        return event_lines(decide(session, command)) if session.options.settings != digest else []

    def touched(self, session: str, *, urgent: bool = False) -> None:
        """Publish the documents of a session soon, and before the process ends."""
        self._touched.add(session)
        self._write_behind.mark(urgent=urgent)

    def flush(self) -> None:
        """Publish the documents now."""
        self._write_behind.flush()

    def _publish_touched(self) -> None:
        with self.store.lock(PROJECT):
            # A session that commits while this runs is published next time, so a burst is not published line by line.
            damage: Corrupt | None = None
            for name in tuple(self._touched):
                self._touched.discard(name)
                try:
                    self._projector.publish(name)
                except Corrupt as error:
                    # The documents of the other sessions do not wait until it is mended.
                    self._touched.add(name)
                    damage = error
                except BaseException:
                    self._touched.add(name)
                    raise
            if damage is not None:
                raise damage

    def _publish_if_possible(self, name: str, *, overwrite: bool = False) -> None:
        """Publish after a commit. A failure becomes a notice, because the commit stands, and publication is retried."""
        try:
            self._projector.clear_markers()
            self._projector.publish(name, overwrite=overwrite)
        except StoreFailed as failure:
            self.notices.append(f"{failure.message}; the commit stands")
            self.touched(name)

    def _open(self, session: str, events: Iterable[Event], *, at: datetime) -> None:
        commit = Commit(version=1, at=at, actor=self.actor, events=tuple(events), state="")
        after = evolve(None, commit)
        # The marker comes first: without its session it counts for nothing, and of two the higher one counts.
        active = self.active()
        self.store.put(MARKER + session, b"%d" % (self._projector.rank(active)[0] + 1 if active else 1))
        try:
            self.store.create(session, msgspec.structs.replace(commit, state=fingerprint(after)))
        except BaseException:
            with suppress(StoreFailed):
                self.store.delete(MARKER + session)
            raise
        if active is not None:
            self._release_tasks(active, session)
        self._publish_if_possible(session)

    def _release_tasks(self, name: str, for_session: str) -> None:
        """Pause the session if it has tasks in progress: a session that is not active gives them back."""
        if self.is_damaged(name):
            return
        journal = self.journal(name)
        with journal.reading() as before:
            is_open = before.status is SessionStatus.ACTIVE and bool(before.tasks.with_status(TaskStatus.ACTIVE))
        if is_open:
            command, facts = Pause(reason=f"{for_session} took its place"), Facts(now=self.clock())
            journal.commit(lambda session: decide(session, command, facts), actor=self.actor, now=facts.now)


def _checked(workflow: Workflow) -> Workflow:
    wrong = problems(workflow)
    if wrong:
        raise Invalid(f"workflow {workflow.name} cannot be used", wrong)
    return workflow
