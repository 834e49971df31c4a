"""The obstacles of a session, and the commands that remove them."""

from collections.abc import Mapping, Sequence
from functools import partial

from detent.core.session.describe import event_lines
from detent.core.session.events import Commit
from detent.core.session.obstacle import Obstacle
from detent.core.session.open_decision import ANYONE, View
from detent.core.session.phase_name import phase_name
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.render.next_commands import command_lines
from detent.render.terminal.canvas import Canvas


def why_text(
    session: Session,
    obstacles: Sequence[Obstacle],
    *,
    phase: str | None,
    canvas: Canvas,
    view: View = ANYONE,
    decided: Sequence[Commit] = (),
    labels: Mapping[str, Sequence[str]] = {},
    on: str = "",
) -> str:
    """`obstacles` are all of them, or those of `phase`; `decided` are the last decisions of people.

    `labels` are those that a worker must have for the phases which a run on the scheduler `on` can begin now.
    """
    labels = {key: needed for key, needed in labels.items() if phase in (key, None)}
    if not obstacles and not labels:
        return "\n".join([*_free_lines(session, phase, canvas, view=view), *_decided_lines(session, decided, canvas)])
    held = phase_name(session, phase) if phase else f"session {session.id}"
    lines = [*canvas.wrap(f"what holds {held}, nearest first:"), ""]
    for key, needed in labels.items():
        text = f"{phase_name(session, key)}: the run gives it to a worker with the labels {', '.join(needed)}"
        first, *rest = canvas.wrap(text, "  ")
        lines += [f"{canvas.glyph(session.phases[key].status)} {first[2:]}", *rest]
        lines += canvas.command(f"detent workers --on {on}", "    ")
    for obstacle in obstacles:
        mark = f"{canvas.glyph(session.phases[obstacle.phase].status)} " if obstacle.phase else "  "
        where = f"{phase_name(session, obstacle.phase)}: " if obstacle.phase else ""
        first, *rest = canvas.wrap(f"{where}{obstacle.message}", "  ")
        lines += [mark + first[2:], *rest]
        lines += canvas.command(canvas.clean(canvas.draw(obstacle.way_out)), "    ")
    return "\n".join([*lines, *_decided_lines(session, decided, canvas)])


def _decided_lines(session: Session, decided: Sequence[Commit], canvas: Canvas) -> list[str]:
    lines = ["", "decided last:"] if decided else []
    for commit in decided:
        proof = commit.actor.proof
        how = f" ({proof.describe()})" if proof is not None else ""
        did = "; ".join(event_lines(commit.events, partial(phase_name, session)))
        lines += canvas.wrap(f"{commit.by}: {did}{how}", "  ")
    return lines


def _free_lines(session: Session, phase: str | None, canvas: Canvas, *, view: View) -> list[str]:
    if phase is None:
        return [f"nothing holds session {session.id}", "", *command_lines(session, canvas, view=view)]
    status = session.phases[phase].status
    lines = [
        canvas.cut(f"{phase_name(session, phase)} is {str(status).replace('_', ' ')}; nothing holds it", canvas.width)
    ]
    if status is Status.PENDING and not session.has_ended:
        # A run begins its phases itself.
        lines += ["", *canvas.command("detent watch" if view.running else f"detent begin {phase}")]
    return lines
