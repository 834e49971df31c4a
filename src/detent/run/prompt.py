"""The prompt of a run for the agent of a phase: the text of its role, and all that the session knows."""

from typing import TYPE_CHECKING

from detent.clients.installing.texts import role_text
from detent.render.prompt.prompt import phase_prompt

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.engine.session import SessionHandle


def prompt_of(handle: "SessionHandle", session: "Session", phase: str, *, turn: int = 1, failed: str = "") -> str:
    """The prompt of one turn. `failed` is what failed in the attempt before."""
    role = session.phases[phase].agent or session.workflow.by_key[phase].agent
    judged = handle.gates.judgements(phase)[phase]
    return phase_prompt(session, handle.handover(phase), judged, turn=turn, failed=failed, role=role_text(role))
