"""The checkpoints of one session: take, list and compare them, and roll back to them."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from detent.core.session.commands import TakeCheckpoint
from detent.core.session.events import CheckpointTaken

if TYPE_CHECKING:
    from detent.documents.checkpoint import Position
    from detent.engine.checkpoints.comparison import Comparison
    from detent.engine.checkpoints.rollback import RolledBackTo
    from detent.engine.checkpoints.rollback_plan import RollbackPlan
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle


class SessionCheckpoints:
    def __init__(self, project: "Project", handle: "SessionHandle") -> None:
        self._project, self._handle = project, handle

    def take(
        self, note: str = "", *, phase: str | None = None, then: Callable[[], object] | None = None
    ) -> CheckpointTaken:
        """Take a checkpoint of the present. `then` is called under the lock; an error of it refuses the commit."""
        outcome = self._handle.execute(TakeCheckpoint(note=note, phase=phase), then=then)
        return next(event for event in outcome.events if isinstance(event, CheckpointTaken))

    def all(self) -> "list[Position]":
        """Every checkpoint, oldest first."""
        return self._project.checkpoints.positions(self._handle.id)

    def plan_rollback(
        self,
        to: str | None,
        *,
        paths: Iterable[str] = (),
        phase_only: bool = False,
        remove_unknown: bool = False,
    ) -> "RollbackPlan":
        """The plan of a rollback, or of `undo` if no checkpoint is named. Nothing is stored or changed."""
        chosen = tuple(self._handle.relative_path(path) for path in paths)
        return self._project.rollbacks.plan(
            self._handle.id, to, paths=chosen, phase_only=phase_only, remove_unknown=remove_unknown
        )

    def compare(self, a: str, b: str = "now") -> "Comparison":
        """Compare two checkpoints, or one with the present."""
        from detent.engine.checkpoints.comparison import Comparison  # noqa: PLC0415 - only comparing needs it

        return Comparison(self._project, self._handle.id, a, b)

    def rollback(
        self,
        to: str,
        *,
        paths: Iterable[str] = (),
        phase_only: bool = False,
        remove_unknown: bool = False,
        expected: "RollbackPlan | None" = None,
    ) -> "RolledBackTo":
        """Go back to a checkpoint: its files, its phase and the phases that it needs. Later phases are to be redone.

        With `paths` only those files change, and no phase. With `phase_only` only phases change, and no file. New files
        that the session is not known to have made stay, unless `remove_unknown` takes them into the archive.
        """
        chosen = tuple(self._handle.relative_path(path) for path in paths)
        return self._project.rollbacks.execute(
            self._handle.id,
            to,
            paths=chosen,
            phase_only=phase_only,
            remove_unknown=remove_unknown,
            expected=expected,
        )

    def undo(self, *, expected: "RollbackPlan | None" = None) -> "RolledBackTo":
        """Undo the last rollback: restore the files and phases that it replaced."""
        return self._project.rollbacks.execute(self._handle.id, None, expected=expected)
