"""Rolls a session back to a checkpoint, completely or not at all.

    plan -> verify every object -> store the present files -> write the intent -> restore files -> commit -> done

The journal is the commit point of the state, and the intent is the commit point of the files. A kill before the intent
is durable changes nothing. After a later kill the next command finishes the rollback, or undoes it if a file changed
meanwhile.
"""

import os
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from detent.config.place import INTENT, is_worktree
from detent.core.actor import Actor, Assurance
from detent.core.checkpoint.checkpoint import Taken, Tree, checkpoint_id
from detent.core.checkpoint.manifest import Entry
from detent.core.decision.subject import Subject, rollback_choice
from detent.core.gate.evidence import Facts
from detent.core.path_text import from_text, is_inside, to_text
from detent.core.session.commands import Rollback
from detent.core.session.decide import decide
from detent.core.session.events import CheckpointTaken
from detent.core.session.session import Session
from detent.documents.checkpoint import Position
from detent.engine.checkpoints.checkpoints import Checkpoints
from detent.engine.checkpoints.rollback_plan import Planner, RollbackPlan, Target
from detent.engine.policy import Decision, authorize_or_sign, too_weak
from detent.engine.projections.projector import MARKER
from detent.engine.projections.publish import UNREADABLE
from detent.engine.projections.rejected_edits import keep_rejected
from detent.engine.results import Outcome
from detent.engine.run_lease import is_here, live_leases
from detent.engine.signing import proven, statement_about, witness_of
from detent.errors import Conflict, Corrupt, DetentError, Invalid, Refused, StoreFailed
from detent.objects.capture import Captured
from detent.objects.restore import Restore, Step
from detent.store.port import PROJECT

if TYPE_CHECKING:
    from detent.engine.project import Project

_STAGING = "restoring"
#: Size of the verified contents that are kept in memory until they are written.
_AT_HAND_BYTES = 64 * 1024 * 1024
_SMALL_BYTES = 1024 * 1024


class RolledBackTo(Outcome, frozen=True, kw_only=True):
    """A rollback that was made."""

    plan: RollbackPlan

    @property
    def safety(self) -> dict[str, str]:
        """The id and the name of the checkpoint that was taken before it."""
        taken = (event for event in self.events if isinstance(event, CheckpointTaken))
        return next({"id": event.id, "name": event.name} for event in taken if event.taken is Taken.SAFETY)


class _Intent(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a rollback in progress, from which the next command can finish or undo it."""

    session: str
    version: int
    to: str
    at: datetime
    actor: Actor
    before: Tree
    after: Tree
    archive: str | None
    paths: tuple[str, ...]
    phase_only: bool
    undoes: str | None
    steps: list[tuple[str, Entry | None, Entry | None]]


class Rollbacks:
    """Rollbacks of one project."""

    def __init__(self, project: "Project", checkpoints: Checkpoints) -> None:
        self._project = project
        self._checkpoints = checkpoints
        self._planner = Planner(project, checkpoints)
        self._restore = Restore(checkpoints.base, checkpoints.objects, os.path.join(checkpoints.root, _STAGING))

    def plan(
        self,
        name: str,
        to: str | None,
        *,
        paths: Sequence[str] = (),
        phase_only: bool = False,
        remove_unknown: bool = False,
    ) -> RollbackPlan:
        """The plan of a rollback to the checkpoint `to`; without `to`, of undoing the last rollback."""
        target = self._planner.target(name, to, paths, phase_only=phase_only)
        return self._planner.plan(target, remove_unknown=remove_unknown, store=False).plan

    def execute(
        self,
        name: str,
        to: str | None,
        *,
        paths: Sequence[str] = (),
        phase_only: bool = False,
        remove_unknown: bool = False,
        expected: RollbackPlan | None = None,
    ) -> "RolledBackTo":
        """Roll back. `expected` is the plan that a person agreed to; `Conflict` if the present plan differs."""
        signer = self._project.signer
        authorize_or_sign(self._project.actor, Decision.ROLLBACK, is_signed=signer is not None)
        if is_worktree(self._project.place):
            raise Refused(
                "a rollback runs in the project's own tree, and this is a worktree",
                way_out=f"cd {self._project.place.root}",
            )
        # Before anybody is asked; the same is checked again with the lock.
        self._check_free()
        if not phase_only:
            self.check_no_run(name)
        journal = self._project.journal(name)
        target = self._planner.target(name, to, paths, phase_only=phase_only)
        with journal.reading() as session:
            if signer is None and session.options.assurance is not Assurance.ATTENDED:
                # Before any file changes; the commit checks it again.
                raise too_weak(Decision.ROLLBACK, session.options.assurance, Assurance.ATTENDED)
            statement = statement_about(
                self._project,
                session,
                Decision.ROLLBACK,
                Subject(choice=_choice(target)),
                position=journal.end,
                now=self._project.clock(),
            )
        actor, _ = proven(self._project, self._project.actor, statement, signer)
        with self._project.store.lock(PROJECT):
            self._check_free()
            if not phase_only:
                self.check_no_run(name)
            if journal.session().version != target.session.version:
                raise _changed()
            plan, captured, past = self._planner.plan(target, remove_unknown=remove_unknown, store=True)
            if expected is not None and plan != expected:
                raise _changed()
            contents = self._verified(plan.steps)
            intent = self._intent(plan, captured, actor)
            for tree in (intent.before, intent.after):
                self._checkpoints.send(name, tree)
            is_restored = False
            try:
                if plan.steps:
                    self._note(intent)
                self._restore.apply(plan.steps, captured.rows, contents, self._checkpoints.progress)
                is_restored = True
                outcome = self._commit(intent, plan.to, past)
            except BaseException:
                self._give_up(intent, is_restored=is_restored)
                raise
            self._conclude(intent)
        return RolledBackTo(session=outcome.session, events=outcome.events, plan=plan)

    def recover(self) -> str | None:
        """Finish or undo an interrupted rollback; a sentence about it. The caller holds PROJECT."""
        if is_worktree(self._project.place):
            # The rollback is in the project's own tree; the next command there finishes it.
            return None
        try:
            intent = self._pending()
        except Corrupt as error:
            self._restore.clear()
            return self._set_aside(error.message)
        if intent is None:
            self._restore.clear()
            return None
        if self._project.is_damaged(intent.session):
            return f"an interrupted rollback of {intent.session} waits for its journal to be mended; see detent doctor"
        session = self._project.journal(intent.session).session()
        if session.version > intent.version and self._is_committed(intent):
            self._restore.clear()
            self._conclude(intent)
            return f"an interrupted rollback of {intent.session} to {intent.to} was already complete"
        steps = [Step(from_text(path), before, after) for path, before, after in intent.steps]
        try:
            self._verified(steps)
            self._restore.apply(steps)
            target = self._checkpoints.find(intent.session, intent.to)
            self._commit(intent, target, self._checkpoints.past(intent.session, target))
        except DetentError as error:
            try:
                self._undo_files(intent)
            except Corrupt as lost:
                return self._set_aside(f"neither could it be finished ({error.message}) nor undone: {lost.message}")
            return f"an interrupted rollback of {intent.session} was undone: {error.message}"
        self._conclude(intent)
        return f"an interrupted rollback of {intent.session} was finished"

    def _verified(self, steps: Sequence[Step]) -> dict[str, bytes]:
        """Verify every needed object before any file changes; returns the contents of the small ones."""
        contents: dict[str, bytes] = {}
        room = _AT_HAND_BYTES
        for entry in {step.after.digest: step.after for step in steps if step.after is not None}.values():
            if entry.size <= _SMALL_BYTES and entry.size <= room:
                contents[entry.digest] = self._checkpoints.objects.read(entry.digest)
                room -= entry.size
            else:
                self._checkpoints.objects.check(entry.digest)
        return contents

    # Execution

    def _intent(self, plan: RollbackPlan, captured: Captured, actor: Actor) -> _Intent:
        """The intent. Stores the manifest after the rollback and the listing of the replaced files."""
        after, archive = captured.tree, None
        if plan.steps:
            files = dict(captured.files)
            for path, _, entry in plan.steps:
                if entry is None:
                    files.pop(path, None)
                else:
                    files[path] = entry
            listing = _archive_listing(plan)
            owner = checkpoint_id(plan.session, self._project.clock(), "archive")
            after, archive = self._checkpoints.captures.store_manifest(owner, files, captured, listing)
        return _Intent(
            session=plan.session,
            version=plan.version,
            to=plan.to.event.id,
            at=self._project.clock(),
            actor=actor,
            before=captured.tree,
            after=after,
            archive=archive,
            paths=tuple(map(to_text, plan.paths)),
            phase_only=plan.phase_only,
            undoes=plan.undoes,
            steps=[(to_text(path), before, entry) for path, before, entry in plan.steps],
        )

    def _commit(self, intent: _Intent, target: Position, past: Session) -> Outcome:
        command = Rollback(
            to=target.event,
            past=past,
            version=intent.version,
            before=intent.before,
            after=intent.after,
            archive=intent.archive,
            files=len(intent.steps),
            paths=intent.paths,
            phase_only=intent.phase_only,
            undoes=intent.undoes,
        )
        facts = Facts(now=intent.at)
        commit, session = self._project.journal(intent.session).commit(
            lambda session: decide(session, command, facts),
            actor=intent.actor,
            now=intent.at,
            witness=witness_of(self._project, intent.actor, intent.session),
        )
        return Outcome(session=session, events=commit.events)

    def _conclude(self, intent: _Intent) -> None:
        """After the commit: a session that had ended becomes active again, unless another session is active."""
        session = self._project.journal(intent.session).session()
        self._project.touched(intent.session)
        try:
            if not session.has_ended and self._project.active() is None:
                self._project.store.put(MARKER + intent.session, b"")
            self._forget()
        except StoreFailed as failure:
            # The rollback is committed; the next command does the rest.
            self._project.notices.append(f"{failure.message}; the rollback itself is complete")

    def _give_up(self, intent: _Intent, *, is_restored: bool) -> None:
        """Remove the intent, so that the next command does not execute a rollback that was reported as failed."""
        if self._is_committed(intent):
            # An interruption right after the journal was written.
            self._conclude(intent)
            self._project.notices.append("the rollback was already committed; detent undo undoes it")
        elif is_restored:
            self._undo_files(intent)
        elif self._restore.is_whole:
            self._forget()

    def _undo_files(self, intent: _Intent) -> None:
        """Undo the changes of files. If that fails too, the intent stays and the next command retries."""
        foreign = self._restore.undo(Step(from_text(path), before, after) for path, before, after in intent.steps)
        if foreign:
            self._project.notices.append(
                f"not restored, because they were changed meanwhile: {', '.join(foreign[:10])}"
            )
        self._forget()

    # The intent

    def _check_free(self) -> None:
        if self._project.store.get(INTENT) is not None:
            raise Refused("a rollback was interrupted and must be finished first", way_out="detent adopt finishes it")

    def check_no_run(self, session: str) -> None:
        """`Conflict` while a run works on the same files; agents in worktrees of their own do not count."""
        project = self._project
        leases = live_leases(project.store, now=project.clock()).items()
        # The run of another session on another machine has other files.
        lease = next(((name, each) for name, each in leases if name == session or is_here(each)), None)
        if lease is None or project.settings.run.isolation != "none":
            return
        name, holder = lease
        raise Conflict(
            f"{name} is being run by {holder}, and works on the same files",
            way_out="detent pause"
            if name == session == project.active()
            else "end that run first, with Ctrl-C where it was started",
        )

    def pending(self) -> str | None:
        """The session of an interrupted rollback."""
        try:
            intent = self._pending()
        except Corrupt:
            return None
        return intent.session if intent else None

    def _pending(self) -> _Intent | None:
        """The intent; None without one, `Corrupt` if it is not what a rollback of this project writes."""
        data = self._project.store.get(INTENT)
        if data is None:
            return None
        try:
            intent = _decode(data)
            paths = [from_text(path) for path, _, _ in intent.steps]
        except (*UNREADABLE, Invalid) as error:
            raise Corrupt(f"it cannot be read: {error}") from error
        outside = [path for path in paths if not is_inside(path)]
        if outside:
            raise Corrupt(f"it names {to_text(outside[0])[:200]!r}, which is not inside the project")
        if intent.session not in self._project.store.sessions():
            raise Corrupt(f"it is about {intent.session[:80]!r}, and there is no such session")
        return intent

    def _set_aside(self, reason: str) -> str:
        """Keep an intent that cannot be carried out beside its place: it must not stop every command from now on."""
        kept = keep_rejected(self._project.store, INTENT)
        self._forget()
        return (
            f"the record of an interrupted rollback is kept as {kept}: {reason}; some files may be as before it and "
            "some as after it: detent diff shows them, detent rollback CHECKPOINT puts them in order"
        )

    def _note(self, intent: _Intent) -> None:
        self._project.store.put(INTENT, _encode(intent), durable=True)

    def _forget(self) -> None:
        self._project.store.delete(INTENT)

    def _is_committed(self, intent: _Intent) -> bool:
        positions = self._checkpoints.positions(intent.session)
        return any(
            position.version == intent.version + 1 and position.rollback is not None and position.at == intent.at
            for position in positions
        )


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Intent).decode


def _archive_listing(plan: RollbackPlan) -> bytes:
    """A listing of the replaced and removed files by path; their contents are objects."""
    return _encode(
        {
            "rolled_back_to": plan.to.event.id,
            "session": plan.session,
            "phases": list(plan.statuses),
            "files": {
                to_text(step.path): {"kind": step.before.kind, "hash": step.before.digest, "size": step.before.size}
                for step in plan.steps
                if step.before is not None
            },
        }
    )


def _changed() -> Conflict:
    return Conflict("files or phases changed since the plan was shown", way_out="look at the plan again")


def _choice(at: Target) -> str:
    """The scope of a rollback, as its event says it."""
    event, paths = at.to.event, tuple(map(to_text, at.paths))
    return rollback_choice(event.name, event.id, paths, phase_only=at.phase_only, undoes=at.undoes)
