"""Questions of agents to people: asked once, and awaited by callers that may be interrupted."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from detent.engine.agents.binding import bound_phase
from detent.engine.agents.environment import PHASE, SESSION, TOKEN
from detent.errors import Refused

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.engine.session import SessionHandle

#: Seconds between two looks for an answer.
POLL_S = 0.2
OPEN, ANSWERED, DROPPED = "open", "answered", "dropped"


def ask_once(handle: "SessionHandle", text: str, choices: Sequence[str], phase: str | None) -> str:
    """The id of the question. The same open question is not asked twice: the caller may have been interrupted."""
    offered = tuple(choices)
    for question in handle.state.questions:
        if (question.text, question.choices) == (text.strip(), offered) and phase in (None, question.phase):
            return question.id
    return handle.ask(text, phase=phase, choices=offered)


def own_phase(session: "Session", environment: Mapping[str, str]) -> str | None:
    """The phase of the agent that has this environment; refused if its attempt is over."""
    phase, token = environment.get(PHASE), environment.get(TOKEN)
    if not phase or environment.get(SESSION) not in (None, "", session.id):
        return None
    if token and environment.get(SESSION) and bound_phase(session, environment) is None:
        raise Refused(f"the attempt {token} is over, so its question would not be used", way_out="detent status")
    return phase


def answer_state(handle: "SessionHandle", question: str) -> tuple[str, str | None]:
    """Whether the question is open, answered or dropped, and its answer."""
    answer = handle.answer_to(question)
    return (ANSWERED, answer) if answer else (DROPPED if answer == "" else OPEN, None)
