"""A project: its sessions, documents and history, on one store, for one actor.

Modules that only a change needs are imported where they are used: they would double the time of `detent status`.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from detent.config import place as places
from detent.config.place import Place
from detent.config.settings import Settings
from detent.core.actor import Actor, Channel
from detent.core.checkpoint.checkpoint import checkpoint_id
from detent.core.counted import counted
from detent.core.decision.statement import Statement
from detent.core.gate.evidence import Facts, Toolchain
from detent.core.limits import check_task
from detent.core.run.choices import RunChoices
from detent.core.session.events import Commit, Discovery, Event, Options
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import Session
from detent.core.task.row import TaskStatus
from detent.core.workflow.graph import Workflow, problems
from detent.engine.actor import account, identify, own_lineage
from detent.engine.agents.environment import SANDBOX
from detent.engine.confirm import confirm
from detent.engine.journal import SessionJournal
from detent.engine.projections.projector import MARKER, Projector
from detent.engine.stores import checkout_store, lost_project, open_store
from detent.engine.worktree_place import worktree_place
from detent.errors import Conflict, Corrupt, Invalid, NotFound, StoreFailed
from detent.store.port import PROJECT, SessionFile, Store
from detent.store.state_home import PROJECT_ID

if TYPE_CHECKING:
    from detent.config.catalogue import Catalogue
    from detent.core.checkpoint.manifest import Manifest
    from detent.engine.agents.binding import AgentBinding
    from detent.engine.approvers import ApproversFile
    from detent.engine.checkpoints.checkpoints import Checkpoints
    from detent.engine.checkpoints.rollback import Rollbacks
    from detent.engine.projections.adopt import Adoption
    from detent.engine.projections.write_behind import WriteBehind
    from detent.engine.proofs import Signer
    from detent.engine.sandbox import RunSandbox
    from detent.engine.session import SessionHandle
    from detent.engine.sessions import Sessions
    from detent.objects.maintenance import Collected
    from detent.objects.universe import Files, Moment

MAX_FOLDER = 60
#: Choices of an id for a new session, while other machines start sessions too.
MAX_CHOICES = 20
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time to the millisecond, the precision of documents."""
    return datetime.fromtimestamp(time.time_ns() // 1_000_000 / 1_000, UTC)


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
    who = actor if isinstance(actor, Actor) else _caller(actor)
    return Project(open_store(place, settings.store), place, settings, actor=who, clock=clock)


def check_not_lost(start: str, *, below: str = "") -> None:
    """Refuse to take a project whose whole record is gone for one that never had any."""
    lost = lost_project(start, below)
    if lost is not None:
        root, sessions = lost
        raise Corrupt(
            f"the project {root} had {counted(len(sessions), 'session')}, and the record is gone: "
            f"{', '.join(sessions[:5])}",
            way_out="detent doctor --restore brings it back, detent forget ends it",
        )


def _caller(name: str | None) -> Actor:
    return identify(os.environ, Channel.LIBRARY, name=name, lineage=own_lineage())


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
        _keep_from_git(store)
    return place, fresh


def _keep_from_git(store: Store) -> None:
    """Let git ignore the state. To commit it, a person removes the file once a session has started."""
    if store.get(".gitignore") is None:
        store.put(".gitignore", b"*\n")


class Project:
    """Close it, or use it as a context manager, to publish the documents."""

    def __init__(self, store: Store, place: Place, settings: Settings, *, actor: Actor, clock: Clock = utc_now) -> None:
        self.store = store
        self.place = place
        self.settings = settings
        #: The settings of the project, which the options of a run do not change.
        self.declared = settings
        self.actor = actor
        self.clock = clock
        #: What is looser than declared in the session just started: gates that were left out, a lower quorum.
        self.left_out: tuple[str, ...] = ()
        self._projector = Projector(store, place, self._files_of)
        #: The project whose journals and documents this one shares (see `beside`).
        self._outer: Project | None = None
        #: Gets the name of a gate and the seconds that its check has run, while a command waits for it.
        self.checking: Callable[[str, float], object] | None = None
        #: Gets the output of a check as it comes.
        self.streaming: Callable[[bytes], object] | None = None
        #: Signs the decisions that are made through this project; without it they are those of the process.
        self.signer: Signer | None = None
        #: Asks whether a decision without a signature is the person's. A surface that has shown it need not ask again.
        self.confirm: Callable[[Statement], object] = confirm
        #: Set where a runner started this process.
        self.binding: AgentBinding | None = None
        self._in_worktrees: dict[Place, Project] = {}
        #: The phases with gates about which a noted test run was recorded when the project was opened to change it.
        self.just_seen: tuple[str, ...] = ()
        self._touched: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._outer is None:
            self.flush()
        for project in (*self._in_worktrees.values(), self):
            if "checkpoints" in project.__dict__:
                project.checkpoints.close()
        if self._outer is None:
            self.store.close()

    def beside(self, place: Place, actor: Actor) -> "Project":
        """The project with the files of another place, or for another thread.

        It shares the journals, so that a commit is folded once, and the documents, which only this one publishes.
        Close it before this one.
        """
        project = Project(self.store, place, self.settings, actor=actor, clock=self.clock)
        project._outer, project._projector = self, self._projector
        return project

    @cached_property
    def _write_behind(self) -> "WriteBehind":
        from detent.engine.projections.write_behind import WriteBehind  # noqa: PLC0415 - reading needs none of it

        return WriteBehind(self._publish_touched)

    @cached_property
    def checkpoints(self) -> "Checkpoints":
        from detent.engine.checkpoints.checkpoints import Checkpoints  # noqa: PLC0415 - reading needs none of it

        checkpoints = Checkpoints(self.store, self.place, self.settings.checkpoint)
        checkpoints.notices = self.notices
        if self.settings.files.remote is not None or self.settings.files.url is not None:
            from detent.engine.checkpoints.travel import Travel, open_transport  # noqa: PLC0415 - few projects need it

            transport = open_transport(self.settings.files, self.place.root, checkpoints.root)
            if transport is not None:
                checkpoints.travel = Travel(transport, checkpoints.objects, checkpoints.root)
        return checkpoints

    @property
    def id(self) -> str:
        """The id of the project in the user's state directory; empty if it has none."""
        return (self.store.get(PROJECT_ID) or b"").decode("ascii", "replace").strip()

    def working_on(self, session: str, phase: str | None) -> "Project":
        """The project with the files that the phase is done in: those of its worktree, while it has one."""
        place = worktree_place(self.place, session, phase)
        if place is None:
            return self
        if place not in self._in_worktrees:
            self._in_worktrees[place] = self.beside(place, self.actor)
        there = self._in_worktrees[place]
        there.confirm = self.confirm
        return there

    def files(self) -> "Files":
        """The files as they are now; their digest is what a decision is about."""
        from detent.objects.universe import files_now  # noqa: PLC0415

        return files_now(self.checkpoints.moment())

    @property
    def approvers(self) -> "ApproversFile":
        """The approvers of the project, and the changes of their list."""
        from detent.engine.approvers import ApproversFile  # noqa: PLC0415 - few commands need it

        return ApproversFile(self.place.root, self.id, self.clock)

    @cached_property
    def sandbox(self) -> "RunSandbox | None":
        """The sandbox of the run that this process belongs to, for checks and steps; the runner sets its own."""
        passed = os.environ.get(SANDBOX)
        if passed is None:
            return None
        from detent.engine.sandbox import RunSandbox  # noqa: PLC0415 - only in a run

        return RunSandbox.of_text(self.place, passed)

    @cached_property
    def rollbacks(self) -> "Rollbacks":
        from detent.engine.checkpoints.rollback import Rollbacks  # noqa: PLC0415

        return Rollbacks(self, self.checkpoints)

    @property
    def catalogue(self) -> "Catalogue":
        from detent.config.catalogue import Catalogue  # noqa: PLC0415

        return Catalogue(self.settings, self.place.root)

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
        from detent.engine.gates.applicable import applicable  # noqa: PLC0415
        from detent.engine.gates.quorum import with_assurance, with_roles  # noqa: PLC0415

        kept, left_out = applicable(
            workflow,
            self.place,
            tests=self.settings.run.tests,
            env=self.settings.run.env,
            delegates=delegates,
            captures_all=self.settings.checkpoint.capture == "tree",
        )
        kept = with_assurance(with_roles(kept, self._roles()), self.settings.decisions.assurance)
        self.left_out = left_out if self.settings.options().gates else ()
        return kept

    def session(self, name: str | None = None, *, actor: Actor | None = None) -> "SessionHandle":
        """The named session; else the one that this process works for; else the active one.

        `actor` is the author of what is done through the handle, where that is not the project's own actor.
        """
        from detent.engine.session import SessionHandle  # noqa: PLC0415

        return SessionHandle(self, self.session_id(name), actor)

    def session_id(self, name: str | None = None) -> str:
        """The id of the session that `session` returns. A part of the name is enough if no other session has it."""
        own = self.binding.session if self.binding is not None else None
        wanted = self._named(name) if name is not None else own or self.active()
        if wanted is None:
            raise NotFound("no session is active", way_out='detent start WORKFLOW "TASK"')
        return wanted

    def _named(self, name: str) -> str:
        from detent.core.session.slug import matching_id  # noqa: PLC0415 - most commands name no session

        if self._projector.is_in_use(name):
            return name
        return matching_id(name, self.store.sessions())

    def start(
        self,
        workflow: str | Workflow,
        task: str,
        *,
        name: str | None = None,
        size: str | None = None,
        branch: str | None = None,
        discovery: Discovery | None = None,
        quorum: int | None = None,
        run: RunChoices | None = None,
    ) -> "SessionHandle":
        """Open a session with its first phase in progress, and make it the active one.

        `run`: the caller runs the session with these options. It delegates the phases itself, so delegation gates
        apply, and an active session with the same task is returned.
        `quorum`: no gate needs more votes than that, and anyone may vote; a looser choice, which a person makes.
        """
        from detent.core.session.commands import Start  # noqa: PLC0415
        from detent.core.session.decide import decide_start  # noqa: PLC0415
        from detent.core.session.slug import slugify  # noqa: PLC0415
        from detent.documents.workflow import seconds_until_free  # noqa: PLC0415
        from detent.engine.redact_command import redact_start, redact_text  # noqa: PLC0415
        from detent.engine.session import SessionHandle  # noqa: PLC0415
        from detent.engine.session_ids import new_id, next_number, state_version  # noqa: PLC0415

        chosen = self.catalogue.workflow(workflow) if isinstance(workflow, str) else _checked(workflow)
        chosen = self._applicable(chosen, delegates=run is not None)
        check_task(task)
        # Before names are made of it.
        task = redact_text(task)
        author = self._starter(task, joins=run is not None)
        if quorum is not None:
            from detent.engine.gates.quorum import with_quorum  # noqa: PLC0415
            from detent.engine.policy import Decision, authorize  # noqa: PLC0415

            author, chosen = authorize(self.actor, Decision.QUORUM), with_quorum(chosen, quorum)
            self.left_out += (
                f"looser than declared: no gate needs more than {quorum} of the votes, and anyone may vote",
            )
        if run is not None:
            from detent.engine.policy import authorize_limits  # noqa: PLC0415

            authorize_limits(self.actor, self.declared.run, run)
        self._check_quorums(chosen, size)
        now = self.clock()
        epoch = self.checkpoints.epoch() if self.takes_checkpoints else None
        owner = checkpoint_id(task, now, "start")
        # The first checkpoint and the protected files are about the same files: one look serves both.
        moment = self.checkpoints.moment(owner if self.takes_checkpoints else None)
        tree = self.checkpoints.tree(owner, moment=moment) if self.takes_checkpoints else None
        protected, kept = self._protected(chosen, moment)

        def choose() -> tuple[str, Iterable[Event]]:
            # Another machine may have made a session active since.
            self._starter(task, joins=run is not None)
            session = new_id(self.store, task, name)
            number = next_number(self.store, chosen.prefix)
            if tree is not None:
                self.checkpoints.send(session, tree)
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
                options=msgspec.structs.replace(self._options(), run=run or RunChoices()),
                toolchain=self._toolchain(chosen),
                protected=protected,
                tree=tree,
                now=now,
                id_later_s=seconds_until_free(self.place.base, now),
            )
            return session, decide_start(redact_start(command))

        with self.store.lock(PROJECT):
            if epoch is not None:
                self.checkpoints.check_current(epoch)
            active = self.active() if run is not None else None
            if active is not None and self.journal(active).session().task == task.strip():
                return SessionHandle(self, active)
            session = self._open_new(choose, at=now, author=author, files=kept)
        return SessionHandle(self, session)

    def _open_new(
        self,
        choose: "Callable[[], tuple[str, Iterable[Event]]]",
        *,
        at: datetime,
        author: Actor,
        files: Iterable[tuple[SessionFile, bytes]],
    ) -> str:
        """Open the session that `choose` names among those there are; again if another machine opens one meanwhile."""
        for _ in range(MAX_CHOICES):
            seen = len(self.store.sessions())
            session, events = choose()
            if not seen:
                # A project needs no `detent init`.
                _keep_from_git(self.store if self.place.project is None else checkout_store(self.place.root))
            try:
                self._open(session, events, at=at, author=author, files=files, seen=seen)
            except Conflict:
                if len(self.store.sessions()) == seen:
                    raise
            else:
                return session
        raise Conflict("other machines start sessions all the time", way_out="repeat the command")

    def _starter(self, task: str, *, joins: bool) -> Actor:
        """The author of a new session. A person decides to leave the gates of an active one."""
        from detent.engine.policy import Decision, authorize  # noqa: PLC0415

        active = self.active()
        if active is None:
            return self.actor
        if not self.is_damaged(active):
            before = self.journal(active).session()
            if before.has_ended or (joins and before.task == task.strip()):
                return self.actor
        return authorize(self.actor, Decision.REPLACE)

    def _check_quorums(self, workflow: Workflow, size: str | None) -> None:
        from detent.engine.gates.quorum import check_quorums  # noqa: PLC0415

        if not self.settings.options().gates:
            return
        left_out = workflow.sizes.get(size, ()) if size else ()
        phases = [key for key in workflow.order if key not in left_out]
        check_quorums(workflow, phases, identity=account(), roles=self._roles(), approvers=self.approvers.read())

    def _roles(self) -> Mapping[str, tuple[str, ...]]:
        from detent.engine.gates.quorum import all_roles  # noqa: PLC0415

        return all_roles(self.settings.decisions.roles, self.approvers.read())

    def _toolchain(self, workflow: Workflow) -> Toolchain:
        """The programs that the checks of a new session use."""
        from detent.engine.gates.environment import toolchain  # noqa: PLC0415 - only a start needs it

        gates = (gate for phase in workflow.phases for gate in phase.gates)
        commands = {line: None for gate in gates if (line := gate.runnable()) is not None}
        return toolchain(os.environ, self.place, commands, started_by=self.actor.kind)

    def _protected(self, workflow: Workflow, moment: "Moment") -> tuple[str | None, list[tuple[SessionFile, bytes]]]:
        """The digest of the protected files, and the file that keeps them; nothing if no gate protects any."""
        gates = [gate for phase in workflow.phases for gate in phase.gates]
        if self.settings.gates != "strict" or not any(gate.protects for gate in gates):
            return None, []
        from detent.engine.gates.checks import (  # noqa: PLC0415 - only protected files need it
            protected_patterns,
            protecting_commands,
        )
        from detent.engine.gates.protected import ProtectedFiles  # noqa: PLC0415
        from detent.engine.gates.stored import PROTECTED  # noqa: PLC0415

        kept = ProtectedFiles.take(moment, protected_patterns(workflow), protecting_commands(workflow))
        digest, data = kept.encode()
        return digest, [(SessionFile(f"{PROTECTED}/{digest}"), data)]

    def import_state(self, document: object, *, source: str) -> "SessionHandle":
        """Create a session from a state document, and make it the active one."""
        from detent.core.session.decide import decide_import  # noqa: PLC0415
        from detent.documents import state as state_document  # noqa: PLC0415
        from detent.engine.policy import Decision, authorize  # noqa: PLC0415
        from detent.engine.redact_command import redact_import  # noqa: PLC0415
        from detent.engine.session import SessionHandle  # noqa: PLC0415
        from detent.engine.session_ids import state_version  # noqa: PLC0415

        author = authorize(self.actor, Decision.IMPORT)

        def choose() -> tuple[str, Iterable[Event]]:
            taken = tuple(self.store.sessions())
            command = state_document.imported(document, source=source, taken=taken, phase=self.catalogue.phase)
            base = max(command.start.base, state_version(self.store, self._projector))
            workflow = self._applicable(command.start.workflow)
            options = self._options(command.start.options)
            protected, kept[:] = self._protected(workflow, self.checkpoints.moment())
            start = msgspec.structs.replace(
                command.start,
                base=base,
                options=options,
                workflow=workflow,
                toolchain=self._toolchain(workflow),
                protected=protected,
            )
            return start.session, decide_import(redact_import(msgspec.structs.replace(command, start=start)))

        kept: list[tuple[SessionFile, bytes]] = []
        with self.store.lock(PROJECT):
            return SessionHandle(self, self._open_new(choose, at=self.clock(), author=author, files=kept))

    def _options(self, imported: Options | None = None) -> Options:
        chosen = self.settings.options(imported)
        return msgspec.structs.replace(chosen, settings=places.settings_digest(self.place.root))

    def history(self) -> list[dict[str, Any]]:
        """An entry for each session that ended, oldest first."""
        from detent.engine.projections import history  # noqa: PLC0415

        entries = history.readable_history(self.store)
        if not self.store.is_shared:
            return entries
        # The file has the sessions that were published on this machine.
        known = {entry.get("session_id") for entry in entries}
        others = [name for name in self.store.sessions() if name not in known and not self.is_damaged(name)]
        return history.with_ended(entries, (self.journal(name).session() for name in others))

    def is_history_damaged(self) -> bool:
        return self._projector.is_history_damaged()

    # Documents and journals

    def journal(self, session: str) -> SessionJournal:
        return self._projector.journal(session)

    def reread(self, session: str) -> None:
        """Read the journal again from its start when it is next used: it was mended."""
        self._projector.forget(session)

    def documents(self, sessions: Mapping[str, Session]) -> dict[str, bytes]:
        """The expected documents of `sessions`; the state document is that of the active one."""
        return self._projector.documents(sessions)

    def collect_garbage(self, *, dry_run: bool) -> "Collected":
        """Remove the objects that nothing references; with `dry_run` only count them."""
        if not dry_run:
            from detent.engine.policy import Decision, authorize  # noqa: PLC0415

            authorize(self.actor, Decision.COLLECT)
        return self.checkpoints.collect(dry_run=dry_run)

    def rebuild(self) -> None:
        """Rebuild the history and the documents of every session. A session with a damaged journal is left as it is."""
        with self.store.lock(PROJECT):
            self._projector.rebuild()

    def reconcile(self, *, every: bool = False, publish: bool = True) -> list["Adoption"]:
        """Finish the work of an interrupted command, and adopt edits made by hand.

        `every` also reads task files that do not look changed. `publish=False` leaves the documents to the change that
        follows, which publishes them once, unless an edit was adopted.
        """
        from detent.engine.reconcile import Reconciler  # noqa: PLC0415 - only a change needs it

        return Reconciler(self, self._projector).reconcile(every=every, publish=publish)

    def is_damaged(self, name: str) -> bool:
        """Whether the journal cannot be read. Commands that need it say why; all others go on."""
        try:
            self.journal(name).session()
        except Corrupt:
            return True
        return False

    def rank(self, name: str) -> int:
        """The count of a session's marker; the highest one is active."""
        return self._projector.rank(name)[0]

    @cached_property
    def sessions(self) -> "Sessions":
        """Operations on whole sessions: list, switch, pause, resume, reopen, archive."""
        from detent.engine.sessions import Sessions  # noqa: PLC0415 - most commands stay in one session

        return Sessions(self)

    def _files_of(self, digest: str) -> "Manifest":
        return self.checkpoints.files(digest)

    @property
    def takes_checkpoints(self) -> bool:
        return self.settings.checkpoint.capture != "off"

    def touched(self, session: str, *, urgent: bool = False) -> None:
        """Publish the documents of a session soon, and before the process ends."""
        if self._outer is not None:
            self._outer.touched(session, urgent=urgent)
            return
        self._touched.add(session)
        self._write_behind.mark(urgent=urgent)

    def flush(self) -> None:
        """Publish the documents now."""
        if self._outer is not None:
            self._outer.flush()
        elif "_write_behind" in self.__dict__:
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

    def publish_now(self, name: str, *, overwrite: bool = False) -> None:
        """Publish after a commit. A failure becomes a notice, because the commit stands, and publication is retried."""
        try:
            self._projector.clear_markers()
            self._projector.publish(name, overwrite=overwrite)
        except StoreFailed as failure:
            self.notices.append(f"{failure.message}; the commit stands")
            self.touched(name)

    def _open(
        self,
        session: str,
        events: Iterable[Event],
        *,
        at: datetime,
        author: Actor,
        seen: int,
        files: Iterable[tuple[SessionFile, bytes]] = (),
    ) -> None:
        """`seen` is the number of sessions that the id and the number were chosen among."""
        commit = Commit(version=1, at=at, actor=author, events=tuple(events), state="")
        after = evolve(None, commit)
        # The marker comes first: without its session it counts for nothing, and of two the higher one counts.
        active = self.active()
        rank = b"%d" % (self._projector.rank(active)[0] + 1 if active else 1)
        first = msgspec.structs.replace(commit, state=fingerprint(after))
        self.store.create(session, first, files=files, beside=[(MARKER + session, rank)], seen=seen)
        if active is not None:
            self.release_tasks(active, session)
        self.publish_now(session)

    def release_tasks(self, name: str, for_session: str) -> None:
        """Pause the session if it has tasks in progress: a session that is not active gives them back."""
        if self.is_damaged(name):
            return
        from detent.core.session.commands import Pause  # noqa: PLC0415
        from detent.core.session.decide import decide  # noqa: PLC0415

        journal = self.journal(name)
        with journal.reading() as before:
            held = before.tasks.with_status(TaskStatus.ACTIVE) if not before.has_ended else ()
            claims = [f"{task} of {before.claims[task].owner}" if task in before.claims else task for task in held]
        if held:
            revoked = f"{name} was paused, and these claims on its tasks are revoked: {', '.join(claims)}"
            self.left_out += (f"{revoked}; detent switch {name} goes on with it",)
            command, facts = Pause(reason=f"{for_session} took its place"), Facts(now=self.clock())
            journal.commit(lambda session: decide(session, command, facts), actor=self.actor, now=facts.now)


def _checked(workflow: Workflow) -> Workflow:
    wrong = problems(workflow)
    if wrong:
        raise Invalid(f"workflow {workflow.name} cannot be used", wrong)
    return workflow
