"""`reply`: answers the question of an agent."""

from typing import TYPE_CHECKING

import click

from detent.cli.person import chosen
from detent.cli.request import Request, Usage, session_of
from detent.cli.verb import TEXT, session_option, verb
from detent.errors import NotFound, Refused

if TYPE_CHECKING:
    from detent.core.session.session import Question, Session


@verb("reply", example="detent reply Q7 postgres", decides=True)
@click.argument("words", nargs=-1, type=TEXT, metavar="[ID] [ANSWER]")
@session_option
def reply_verb(request: Request, words: tuple[str, ...], session: str | None) -> None:
    """Answer an agent's question.

    Without ID the only open question. A choice may be given by its number. Without an ANSWER the open questions are
    listed.
    """
    if not words:
        _list(request, session)
        return
    if len(words) > 2:
        raise Usage(f"{len(words)} words were given; put the answer in quotes", way_out='detent reply ID "ANSWER"')
    with request.changing() as project:
        handle = session_of(project, session)
        question = _question(handle.state, words)
        answer = chosen(words[-1], question.choices)
        version = handle.reply(answer, question=question.id).session.version
    request.answer(
        lambda canvas: canvas.clean(f"answered {question.id} of {question.phase}: {answer}"),
        {"question": question.id, "phase": question.phase, "answer": answer, "version": version},
    )


def _list(request: Request, session: str | None) -> None:
    from detent.render.terminal.status import question_lines

    with request.reading() as project:
        state = session_of(project, session).state
    request.answer(
        lambda canvas: "\n".join(question_lines(state, canvas)) or "no question is open", {"questions": state.questions}
    )


def _question(session: "Session", words: tuple[str, ...]) -> "Question":
    """The named question, or the only open one."""
    by_id = {question.id: question for question in session.questions}
    if len(words) == 2:
        question = by_id.get(words[0].upper())
        if question is None:
            listed = ", ".join(by_id) or "none"
            raise NotFound(f"no question {words[0][:80]} is open; open are: {listed}", way_out="detent reply")
        return question
    if len(by_id) != 1:
        listed = f"{len(by_id)} questions are open: {', '.join(by_id)}" if by_id else "no question is open"
        raise Refused(listed, way_out='detent reply ID "ANSWER"' if by_id else "detent status")
    [only] = session.questions
    if words[0].upper() == only.id and words[0] not in only.choices:
        raise Usage(f"the answer to {only.id} is missing", way_out=f'detent reply {only.id} "ANSWER"')
    return only
