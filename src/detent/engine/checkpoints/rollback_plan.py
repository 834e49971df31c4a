"""Plans a rollback: computes the changes of files and phases before any of them is made."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from detent.core.actor import ActorKind
from detent.core.checkpoint.checkpoint import CheckpointKind, Taken, checkpoint_id
from detent.core.checkpoint.manifest import Entry, Manifest
from detent.core.checkpoint.rollback import kept_paths, live_beside
from detent.core.checkpoint.written import WRITTEN, written_paths
from detent.core.counted import counted
from detent.core.gate.evidence import Facts
from detent.core.path_text import from_text, to_text
from detent.core.session.commands import Rollback
from detent.core.session.decide import decide
from detent.core.session.events import RolledBack
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.documents.checkpoint import Position, summary
from detent.engine.checkpoints.checkpoints import Checkpoints
from detent.errors import Invalid, NotFound, Refused
from detent.objects.capture import Captured
from detent.objects.restore import Step
from detent.objects.walk import IGNORE_FILE, hidden

if TYPE_CHECKING:
    from detent.engine.project import Project


class RollbackPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a rollback: `steps` change files, `statuses` hold the phases that change with old and new status."""

    session: str
    version: int
    to: Position
    steps: tuple[Step, ...]
    statuses: dict[str, tuple[Status, Status]]
    paths: tuple[str, ...] = ()
    phase_only: bool = False
    undoes: str | None = None
    #: Files that parallel phases declared since; they are not touched.
    kept: tuple[str, ...] = ()
    #: Files that appeared since and that the session is not known to have made; they are not touched.
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def changes(self) -> dict[str, tuple[str, ...]]:
        """The files by what happens to them."""
        return {
            "restored": tuple(step.path for step in self.steps if step.before and step.after),
            "removed": tuple(step.path for step in self.steps if step.after is None),
            "added": tuple(step.path for step in self.steps if step.before is None),
        }

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON, with paths as text."""
        return {
            "session": self.session,
            "version": self.version,
            "to": summary(self.session, self.to),
            "undoes": self.undoes,
            "phase_only": self.phase_only,
            "paths": [to_text(path) for path in self.paths],
            "phases": {key: {"before": before, "after": after} for key, (before, after) in self.statuses.items()},
            "files": {what: [to_text(path) for path in paths] for what, paths in self.changes.items()},
            "kept": [to_text(path) for path in self.kept],
            "unknown": [to_text(path) for path in self.unknown],
            "warnings": self.warnings,
        }


class Target(NamedTuple):
    """The checkpoint to go back to, in the session as it is now. No file was looked at for it."""

    session: Session
    #: All checkpoints of the session.
    positions: list[Position]
    to: Position
    #: The session at the checkpoint.
    past: Session
    paths: tuple[str, ...]
    phase_only: bool
    #: The rollback that this one undoes.
    undoes: str | None


class Planned(NamedTuple):
    plan: RollbackPlan
    #: The present files, stored if the caller asked for it.
    captured: Captured
    #: The session at the checkpoint.
    past: Session


class Planner:
    """Plans rollbacks of one project."""

    def __init__(self, project: "Project", checkpoints: Checkpoints) -> None:
        self._project = project
        self._checkpoints = checkpoints

    def target(self, name: str, to: str | None, paths: Sequence[str], *, phase_only: bool) -> Target:
        """The checkpoint `to`; without `to`, the one before the last rollback. Refuses one that cannot be gone to."""
        session = self._project.journal(name).session()
        outside = [path for path in paths if os.path.isabs(path) or path.split("/")[0] == ".."]
        if outside:
            raise Invalid(f"{', '.join(map(to_text, outside))} is not inside the project")
        undoes = None
        if to is None:
            if session.rollback is None:
                raise Refused(f"{name} has no rollback to undo", way_out="detent rollback CHECKPOINT")
            to, undoes = session.rollback.safety, session.rollback.id
            paths, phase_only = tuple(map(from_text, session.rollback.paths)), session.rollback.phase_only
        positions = self._checkpoints.positions(name)
        target = self._checkpoints.find(name, to, positions)
        past = self._checkpoints.past(name, target)
        beside = live_beside(session, target.event.phase)
        if beside and not paths and not phase_only and undoes is None:
            raise Refused(
                f"{', '.join(beside)} is in progress beside {target.event.phase} and works on the same files",
                way_out="finish or fail it first, or use --phase-only or --paths",
            )
        return Target(session, positions, target, past, tuple(paths), phase_only, undoes)

    def plan(self, at: Target, *, remove_unknown: bool, store: bool) -> Planned:
        """The plan for the present files. With `store` they are stored as the safety checkpoint."""
        session, positions, target, past, paths, phase_only, undoes = at
        name = session.id
        kept = kept_paths(session, past, target.event.phase) if undoes is None and not paths else frozenset()
        files = self._checkpoints.bring(name, target.event.tree.manifest, _rules)
        later = positions[positions.index(target) + 1 :] if not phase_only else []
        for position in later:
            self._checkpoints.bring(name, position.event.tree.manifest)
        appeared = self._recorded_since(later, target)
        recorded = set().union(*appeared)
        owner = checkpoint_id(name, self._project.clock(), "safety")
        also = () if phase_only else (*files, *recorded)
        captured = self._checkpoints.capture(owner, session, also=also, store=store)
        removable = recorded - self._not_taken(target, recorded) if not phase_only else recorded
        unknown: set[str] = set()
        if undoes is None and not remove_unknown:
            own = made_by_runs(later, appeared) | self._written(name)
            gone = (path for path in removable & captured.files.keys() if path not in files and path not in own)
            unknown = {path for path in gone if path not in paths and not _is_below(path, session.declared)}
            removable -= unknown
        steps = [] if phase_only else _steps(files, captured.files, removable, tuple(kept), paths)
        if paths and undoes is None and not steps and not any(_is_selected(path, paths) for path in files):
            way_out = f"detent checkpoint show {target.event.name} --files"
            raise NotFound(f"{target.event.name} has none of {', '.join(map(to_text, paths))}", way_out=way_out)
        self._check_possible(steps, captured)
        restored = [step.after for step in steps if step.after is not None]
        self._checkpoints.bring(name, target.event.tree.manifest, lambda _: restored)
        plan = RollbackPlan(
            session=name,
            version=session.version,
            to=target,
            steps=tuple(steps),
            statuses=_statuses(session, past, target, self._project.clock(), tuple(map(to_text, paths)), undoes),
            paths=paths,
            phase_only=phase_only,
            undoes=undoes,
            kept=tuple(sorted(path for path in captured.files if kept and _is_selected(path, tuple(kept)))),
            unknown=tuple(sorted(path for path in unknown if _is_selected(path, paths))),
            warnings=_warnings(session, past, target, captured),
        )
        return Planned(plan, captured, past)

    def _written(self, name: str) -> set[str]:
        """The paths that write tools of clients made, as the hooks noted them."""
        place = self._project.place
        inside = os.path.relpath(place.base, place.root)
        note = self._project.store.get(f"{name}/{WRITTEN}") or b""
        return written_paths(note, "" if inside == os.curdir else f"{inside}/")

    def _recorded_since(self, later: list[Position], target: Position) -> list[set[str]]:
        """Of each later checkpoint, the paths that it is the first to have, or to have with other content."""
        manifests = [position.event.tree.manifest for position in later]
        return list(self._checkpoints.captures.manifests.names_since(manifests, target.event.tree.manifest))

    def _not_taken(self, target: Position, recorded: set[str]) -> frozenset[str]:
        """Paths that the checkpoint cannot have: left out of it, or ignored when it was taken."""
        contents = self._checkpoints.contents(target.event.tree.manifest)
        left_out = frozenset(contents.left_out)
        if target.event.taken is Taken.SAFETY:
            # A safety checkpoint also has the ignored files that the rollback touched.
            return left_out
        later = (path for path in recorded if path not in contents.files)
        return left_out | hidden(later, contents.files, self._checkpoints.objects.read)

    def _check_possible(self, steps: Sequence[Step], captured: Captured) -> None:
        problems = [
            f"{to_text(step.path)} cannot be stored before it is replaced: {captured.left_out[step.path]}"
            for step in steps
            if step.path in captured.left_out
        ]
        gone = {step.path for step in steps if step.after is None}
        for step in steps:
            if step.after is not None and step.before is None:
                problems += self._in_the_way(step.path, gone)
        if problems:
            raise Invalid("the rollback would overwrite files that no checkpoint holds", problems[:20])

    def _in_the_way(self, path: str, gone: set[str]) -> Iterable[str]:
        """Files that no checkpoint holds, in the place of the file or of one of its directories."""
        parts = path.split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            full = os.path.join(self._checkpoints.base, above)
            if os.path.lexists(full) and (os.path.islink(full) or not os.path.isdir(full)) and above not in gone:
                yield f"{to_text(above)} is in the place of the directory of {to_text(path)}"
                return
        full = os.path.join(self._checkpoints.base, path)
        if os.path.isdir(full) and not os.path.islink(full):
            for directory, _, names in os.walk(full):
                for name in names:
                    inner = os.path.relpath(os.path.join(directory, name), self._checkpoints.base)
                    if inner not in gone:
                        yield f"{to_text(inner)} is in the place of {to_text(path)}"


def made_by_runs(later: Sequence[Position], appeared: Sequence[set[str]]) -> set[str]:
    """The paths that first appeared in a checkpoint which a run took while an agent had a turn.

    Before the first phase begins, and between two phases, no agent works: a path that appears then was made by a person
    or another program.
    """
    own: set[str] = set()
    seen: set[str] = set()
    begun: set[tuple[str, int]] = set()
    for position, names in zip(later, appeared, strict=True):
        attempt = (position.event.phase, position.event.attempt)
        is_end = position.event.kind is CheckpointKind.POST
        if position.actor.kind is ActorKind.RUNNER and (is_end or begun):
            own |= names - seen
        seen |= names
        if is_end:
            begun.discard(attempt)
        else:
            begun.add(attempt)
    return own


def _steps(
    wanted: Manifest, present: Manifest, recorded: set[str], kept: tuple[str, ...], paths: tuple[str, ...]
) -> list[Step]:
    steps = [
        Step(path, present.get(path), entry)
        for path, entry in wanted.items()
        if present.get(path) != entry and _is_selected(path, paths) and not (kept and _is_selected(path, kept))
    ]
    steps += [
        Step(path, present[path], None)
        for path in recorded
        if path in present and path not in wanted and _is_selected(path, paths)
        if not (kept and _is_selected(path, kept))
    ]
    return sorted(steps)


def _rules(files: Manifest) -> list[Entry]:
    """The files that say which paths a checkpoint leaves out."""
    return [entry for path, entry in files.items() if os.path.basename(path) == IGNORE_FILE]


def _is_below(path: str, tops: tuple[str, ...]) -> bool:
    return bool(tops) and _is_selected(path, tops)


def _is_selected(path: str, paths: tuple[str, ...]) -> bool:
    """Whether the path is one of `paths` or below one of them; without any, every path is selected."""
    return not paths or any(path == top or path.startswith(top.rstrip("/") + "/") or top == "." for top in paths)


def _statuses(
    session: Session, past: Session, target: Position, now: datetime, paths: Sequence[str], undoes: str | None
) -> dict[str, tuple[Status, Status]]:
    """The changes of phases that the command would decide."""
    command = Rollback(
        to=target.event,
        past=past,
        version=session.version,
        before=target.event.tree,
        after=target.event.tree,
        paths=tuple(paths),
        undoes=undoes,
    )
    events = decide(session, command, Facts(now=now))
    rolled = next(event for event in events if isinstance(event, RolledBack))
    return {
        key: (session.phases[key].status, state.status)
        for key, state in rolled.phases.items()
        if session.phases[key].status is not state.status
    }


def _warnings(session: Session, past: Session, target: Position, captured: Captured) -> tuple[str, ...]:
    beside = [
        key
        for key, state in session.phases.items()
        if state.status is Status.COMPLETED
        and past.phases[key].status is not Status.COMPLETED
        and key != target.event.phase
        and key not in session.workflow.descendants(target.event.phase)
    ]
    warnings = []
    if beside:
        warnings.append(
            f"{', '.join(beside)} was completed since and stays completed: the files it declared stay, others go back"
        )
    if target.event.tree.left_out:
        warnings.append(f"not in the checkpoint, and not touched: {counted(target.event.tree.left_out, 'file')}")
    if captured.left_out:
        warnings.append(f"cannot be stored, and not touched: {counted(len(captured.left_out), 'present file')}")
    return tuple(warnings)
