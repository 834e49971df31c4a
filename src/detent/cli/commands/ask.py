"""`ask`: asks a person a question, as an agent, and waits for the answer."""

import os
import time
from typing import TYPE_CHECKING

import click

from detent.cli.person import WAITING
from detent.cli.request import Request, print_error, session_of
from detent.cli.verb import TEXT, session_option, verb
from detent.errors import Refused

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.engine.session import SessionHandle

TIMEOUT_S, POLL_S = 3600.0, 0.2
_STATES = {"open": "is still open", "dropped": "was dropped: the attempt that asked it has ended"}


@verb("ask", example='detent ask "Which database?" --choice postgres --choice sqlite')
@click.argument("text", type=TEXT)
@click.option("--choice", "choices", metavar="ANSWER", multiple=True, help="A possible answer; repeat it.")
@click.option("--phase", metavar="PHASE", help="Which phase asks; in an agent's shell the agent's own.")
@click.option(
    "--timeout",
    "timeout_s",
    metavar="S",
    type=click.FloatRange(min=0),
    default=TIMEOUT_S,
    help="Seconds to wait for the answer; 3600 if not given.",
)
@click.option("--wait/--no-wait", default=True, help="Wait for the answer, or only print the id of the question.")
@session_option
def ask_verb(
    request: Request,
    text: str,
    *,
    choices: tuple[str, ...],
    phase: str | None,
    timeout_s: float,
    wait: bool,
    session: str | None,
) -> int:
    """Ask a person a question, as an agent, and wait for the answer.

    Only the answer is printed. Asking an open question again waits for the same answer. The exit code is 6 if the
    answer did not come in time (the question stays open) or if the attempt ended first.
    """
    name = ""
    try:
        with request.changing() as project:
            handle = session_of(project, session)
            name = _asked(handle, text, choices, phase or _own_phase(handle.state))
        if not wait:
            request.answer(lambda canvas: canvas.clean(name), {"question": name, "answer": None, "state": "open"})
            return 0
        if not request.json:
            request.print_notices()
            print_error(f"asked as {name}; a person answers it with: detent reply {name} ANSWER")
        state, answer = _awaited(request, handle.id, name, timeout_s)
    except KeyboardInterrupt:
        if name:
            request.notices.append(f"{name} {_STATES['open']}; asking the same question again waits for it")
        raise
    if request.json:
        request.answer(lambda _: "", {"question": name, "answer": answer, "state": state})
    elif answer is not None:
        request.answer(lambda _: answer, {})
    else:
        print_error(f"{name} {_STATES[state]}")
    return 0 if answer is not None else WAITING


def _asked(handle: "SessionHandle", text: str, choices: tuple[str, ...], phase: str | None) -> str:
    """The id of the question. The same open question is not asked twice: the caller may have been interrupted."""
    for question in handle.state.questions:
        if (question.text, question.choices) == (text.strip(), choices) and phase in (None, question.phase):
            return question.id
    return handle.ask(text, phase=phase, choices=choices)


def _own_phase(session: "Session") -> str | None:
    """The phase of the agent that runs this shell; refused if its attempt is over."""
    from detent.engine.agents.binding import bound_phase
    from detent.engine.agents.environment import PHASE, SESSION, TOKEN

    phase, token = os.environ.get(PHASE), os.environ.get(TOKEN)
    if not phase or os.environ.get(SESSION) not in (None, "", session.id):
        return None
    if token and os.environ.get(SESSION) and bound_phase(session, os.environ) is None:
        raise Refused(f"the attempt {token} is over, so its question would not be used", way_out="detent status")
    return phase


def _awaited(request: Request, session: str, name: str, timeout_s: float) -> tuple[str, str | None]:
    """The state of the question at the end of the wait, and its answer."""
    until = time.monotonic() + timeout_s
    with request.reading() as project:
        handle = project.session(session)
        while True:
            answer = handle.answer_to(name)
            if answer:
                return "answered", answer
            if answer == "":
                return "dropped", None
            if time.monotonic() >= until:
                return "open", None
            time.sleep(POLL_S)
