"""`ask` and `reply`: an agent asks something that only a person can decide, and waits for the answer."""

import os
import time
from typing import TYPE_CHECKING

import click

from detent.cli.person import WAITING, chosen
from detent.cli.request import Request, print_error, session_of
from detent.cli.verb import TEXT, Usage, session_option, verb
from detent.errors import NotFound, Refused

if TYPE_CHECKING:
    from detent.core.session.session import Question, Session
    from detent.engine.session import SessionHandle

#: Exit code for what waits for a person, as of the other verbs that can.
TIMEOUT_S, POLL_S = 3600.0, 0.2
_ENDS = {"open": "is still open", "dropped": "was dropped: the attempt that asked it has ended"}


@verb("ask", example='detent ask "Which database?" --choice postgres --choice sqlite')
@click.argument("text", type=TEXT)
@click.option("--choice", "choices", metavar="ANSWER", multiple=True, help="One of the answers that can be given.")
@click.option("--phase", metavar="PHASE", help="Which phase asks; in an agent's shell the agent's own.")
@click.option(
    "--timeout",
    "timeout_s",
    metavar="S",
    type=click.FloatRange(min=0),
    default=TIMEOUT_S,
    help="Give up waiting after so many seconds; an hour if nothing is said.",
)
@click.option("--wait/--no-wait", default=True, help="Or only print the id of the question.")
@session_option
@click.pass_obj
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

    The answer alone is printed. A question that is open already is not asked again but waited for. The exit code is 6
    if nobody answered in time, and the question stays open, or if the attempt ended before.
    """
    with request.changing() as project:
        handle = session_of(project, session)
        name = _asked(handle, text, choices, phase or _own_phase(handle.state))
    if not wait:
        request.answer(lambda canvas: canvas.clean(name), {"question": name, "answer": None, "state": "open"})
        return 0
    if not request.json:
        request.say_notices()
        print_error(f"asked as {name}; a person answers it with: detent reply {name} ANSWER")
    state, answer = _awaited(request, handle.id, name, timeout_s)
    if request.json:
        request.answer(lambda _: "", {"question": name, "answer": answer, "state": state})
    elif answer is not None:
        request.answer(lambda _: answer, {})
    else:
        print_error(f"{name} {_ENDS[state]}")
    return 0 if answer is not None else WAITING


@verb("reply", example="detent reply Q7 postgres")
@click.argument("words", nargs=-1, type=TEXT, metavar="[ID] [ANSWER]")
@session_option
@click.pass_obj
def reply_verb(request: Request, words: tuple[str, ...], session: str | None) -> None:
    """Answer an agent's question.

    The only open question if no ID is given. A choice may be given by its number. Without an ANSWER the open questions
    are listed.
    """
    if not words:
        _list(request, session)
        return
    if len(words) > 2:
        raise Usage(f"{len(words)} words were given; put the answer in quotes", way_out='detent reply ID "ANSWER"')
    with request.changing() as project:
        handle = session_of(project, session)
        question = _meant(handle.state, words)
        answer = chosen(words[-1], question.choices)
        version = handle.reply(answer, question=question.id).session.version
    request.answer(
        lambda canvas: canvas.clean(f"answered {question.id} of {question.phase}: {answer}"),
        {"question": question.id, "phase": question.phase, "answer": answer, "version": version},
    )


def _asked(handle: "SessionHandle", text: str, choices: tuple[str, ...], phase: str | None) -> str:
    """The id of the question. Whoever was interrupted while waiting asks the same again, and means the same one."""
    for one in handle.state.questions:
        if (one.text, one.choices) == (text.strip(), choices) and phase in (None, one.phase):
            return one.id
    return handle.ask(text, phase=phase, choices=choices)


def _own_phase(session: "Session") -> str | None:
    """The phase that the agent whose shell this is was started for; refused if its attempt is over."""
    from detent.engine.agents.binding import bound_phase
    from detent.engine.agents.environment import PHASE, SESSION, TOKEN

    phase, token = os.environ.get(PHASE), os.environ.get(TOKEN)
    if not phase or os.environ.get(SESSION) not in (None, "", session.id):
        return None
    if token and os.environ.get(SESSION) and bound_phase(session, os.environ) is None:
        raise Refused(f"the attempt {token} is over, so nobody works on an answer", way_out="detent status")
    return phase


def _awaited(request: Request, session: str, name: str, timeout_s: float) -> tuple[str, str | None]:
    """What became of the question, and the answer if there is one."""
    until = time.monotonic() + timeout_s
    with request.reading() as project:
        handle = project.session(session)
        try:
            while True:
                answer = handle.answer_to(name)
                if answer:
                    return "answered", answer
                if answer == "":
                    return "dropped", None
                if time.monotonic() >= until:
                    return "open", None
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            request.notices.append(f"{name} {_ENDS['open']}; the same question asked again waits for it")
            raise


def _list(request: Request, session: str | None) -> None:
    from detent.render.terminal.status import question_lines

    with request.reading() as project:
        found = session_of(project, session).state.questions
    request.answer(
        lambda canvas: "\n".join(question_lines(found, canvas)) or "no agent has asked anything", {"questions": found}
    )


def _meant(session: "Session", words: tuple[str, ...]) -> "Question":
    """The question that is answered: the one named, or the only one."""
    named = {one.id: one for one in session.questions}
    if len(words) == 2:
        found = named.get(words[0].upper())
        if found is None:
            listed = ", ".join(named) or "none"
            raise NotFound(f"no question {words[0][:80]} is open; open are: {listed}", way_out="detent reply")
        return found
    if len(named) != 1:
        listed = f"{len(named)} questions are open: {', '.join(named)}" if named else "no question is open"
        raise Refused(listed, way_out='detent reply ID "ANSWER"' if named else "detent status")
    [only] = session.questions
    if words[0].upper() == only.id and words[0] not in only.choices:
        raise Usage(f"what is the answer to {only.id}?", way_out=f'detent reply {only.id} "ANSWER"')
    return only
