"""Whether an agent may ask a person, and what becomes of the answer."""

from detent.core.gate import Opener, gate_name
from detent.core.limits import MAX_NAME, MAX_REASON, check_text
from detent.core.session.commands import Ask, Reply
from detent.core.session.events import Event, QuestionAnswered, QuestionAsked, QuestionReplied
from detent.core.session.session import Question, Session
from detent.core.session.status import Status
from detent.errors import Invalid, NotFound, Refused

#: More than a person can be asked at once.
MAX_QUESTIONS = 20
MAX_CHOICES = 20


def decide_question(session: Session, command: Ask | Reply) -> tuple[Event, ...]:
    return _ask(session, command) if isinstance(command, Ask) else _reply(session, command)


def _ask(session: Session, command: Ask) -> tuple[Event, ...]:
    if command.phase not in session.with_status(Status.IN_PROGRESS):
        raise Refused(
            f"phase {command.phase} is not in progress, so nobody works on an answer", way_out="detent status"
        )
    if len(session.questions) >= MAX_QUESTIONS or len(command.choices) > MAX_CHOICES:
        raise Refused(f"at most {MAX_QUESTIONS} questions of {MAX_CHOICES} choices can be open", way_out="detent reply")
    if any(one.id == command.id for one in session.questions):
        raise Refused(f"question {command.id} is open already")
    text = check_text("a question", command.text, MAX_REASON)
    choices = tuple(dict.fromkeys(check_text("a choice", choice, MAX_NAME) for choice in command.choices))
    return (QuestionAsked(id=command.id, phase=command.phase, text=text, choices=choices),)


def _reply(session: Session, command: Reply) -> tuple[Event, ...]:
    question = _meant(session, command.id)
    answer = check_text("an answer", command.answer, MAX_REASON)
    if question.choices and answer not in question.choices:
        raise Invalid(f"{answer[:80]!r} is none of the choices: {', '.join(question.choices)}")
    replied = QuestionReplied(id=question.id, phase=question.phase, answer=answer)
    gates = session.workflow.by_key[question.phase].gates
    gate = next((gate for gate in gates if gate.opened_by is Opener.ANSWER), None)
    if gate is None or not session.gates_apply:
        return (replied,)
    choice = answer if answer in gate.choices else None
    return replied, QuestionAnswered(phase=question.phase, gate=gate_name(gate), choice=choice)


def _meant(session: Session, name: str | None) -> Question:
    found = [one for one in session.questions if name is None or one.id == name]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(one.id for one in session.questions) or "none"
    if not found:
        raise NotFound(f"no question {name or ''} is open; open are: {listed}".replace("  ", " "))
    raise Refused(f"{len(found)} questions are open: {listed}; say which one you answer")
