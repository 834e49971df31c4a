"""The part of a session's handle that takes checkpoints and goes back to them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from detent.core.session.commands import TakeCheckpoint
from detent.core.session.events import CheckpointTaken
from detent.engine.session_part import SessionPart

if TYPE_CHECKING:
    from detent.documents.checkpoint import Position
    from detent.engine.checkpoints.comparison import Comparison
    from detent.engine.checkpoints.rollback import RolledBackTo
    from detent.engine.checkpoints.rollback_plan import RollbackPlan


class Returnable(SessionPart):
    def checkpoint(self, note: str = "", *, phase: str | None = None) -> CheckpointTaken:
        """Take a checkpoint of the present, between whatever it is."""
        outcome = self.carry_out(TakeCheckpoint(note=note, phase=phase))
        return next(event for event in outcome.events if isinstance(event, CheckpointTaken))

    def checkpoints(self) -> "list[Position]":
        """Every checkpoint, oldest first."""
        return self._project.checkpoints.positions(self.id)

    def plan_rollback(self, to: str | None, *, paths: Iterable[str] = (), phase_only: bool = False) -> "RollbackPlan":
        """What `rollback` would do; without a checkpoint, what `undo` would. Nothing is stored or changed."""
        chosen = tuple(self._inside(path) for path in paths)
        return self._project.rollbacks.plan(self.id, to, paths=chosen, phase_only=phase_only)

    def compare(self, a: str, b: str = "now") -> "Comparison":
        """What separates two checkpoints, or one from the present."""
        from detent.engine.checkpoints.comparison import Comparison  # noqa: PLC0415 - only comparing needs it

        return Comparison(self._project, self.id, a, b)

    def rollback(
        self,
        to: str,
        *,
        paths: Iterable[str] = (),
        phase_only: bool = False,
        expected: "RollbackPlan | None" = None,
    ) -> "RolledBackTo":
        """Go back to a checkpoint: its files, the phase it is of and what that builds on; what follows is to be redone.

        With `paths` only those files, and no phase. With `phase_only` only the phases, and no file.
        """
        chosen = tuple(self._inside(path) for path in paths)
        return self._project.rollbacks.carry_out(self.id, to, paths=chosen, phase_only=phase_only, expected=expected)

    def undo(self, *, expected: "RollbackPlan | None" = None) -> "RolledBackTo":
        """Undo the last rollback: files and phases stand as they did before it."""
        return self._project.rollbacks.carry_out(self.id, None, expected=expected)
