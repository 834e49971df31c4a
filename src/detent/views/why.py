"""Why a session stands still, and what would move it."""

from collections.abc import Sequence

from detent.core.obstacle import Obstacle
from detent.core.session import Session, SessionStatus
from detent.core.status import Status
from detent.views.paper import Paper
from detent.views.step import command_lines


def why_text(
    session: Session, obstacles: Sequence[Obstacle], *, phase: str | None, paper: Paper, active: bool = True
) -> str:
    """`obstacles` are those that are to be shown: all, or those of `phase`."""
    if not obstacles:
        return "\n".join(_free_lines(session, phase, paper, active=active))
    held = f"phase {phase}" if phase else f"session {session.id}"
    lines = [paper.cut(f"what holds {held}, nearest first:", paper.width), ""]
    for obstacle in obstacles:
        mark = f"{paper.glyph(session.phases[obstacle.phase].status)} " if obstacle.phase else "  "
        subject = f"{obstacle.phase}: " if obstacle.phase else ""
        first, *rest = paper.wrap(subject + obstacle.message, "  ")
        lines += [mark + first[2:], *rest]
        lines += paper.command(paper.clean(paper.draw(obstacle.way_out)), "    ")
    return "\n".join(lines)


def _free_lines(session: Session, phase: str | None, paper: Paper, *, active: bool) -> list[str]:
    if phase is None:
        return [f"nothing holds session {session.id}", "", *command_lines(session, paper, active=active)]
    status = session.phases[phase].status
    lines = [paper.cut(f"phase {phase} is {str(status).replace('_', ' ')}; nothing holds it", paper.width)]
    if status is Status.PENDING and session.status is SessionStatus.ACTIVE:
        lines += ["", *paper.command(f"detent begin {phase}")]
    return lines
