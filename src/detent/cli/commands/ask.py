"""`ask`: asks a person a question, as an agent, and waits for the answer."""

import os
import time

import click

from detent.cli.person import WAITING
from detent.cli.request import Request, print_error, session_of
from detent.cli.verb import TEXT, session_option, verb

TIMEOUT_S = 3600.0
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
    from detent.engine.questions import ask_once, own_phase

    name = ""
    try:
        with request.changing() as project:
            handle = session_of(project, session)
            name = ask_once(handle, text, choices, phase or own_phase(handle.state, os.environ))
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


def _awaited(request: Request, session: str, name: str, timeout_s: float) -> tuple[str, str | None]:
    """The state of the question at the end of the wait, and its answer."""
    from detent.engine.questions import OPEN, POLL_S, answer_state

    until = time.monotonic() + timeout_s
    with request.reading() as project:
        handle = project.session(session)
        while True:
            state, answer = answer_state(handle, name)
            if state != OPEN or time.monotonic() >= until:
                return state, answer
            time.sleep(POLL_S)
