"""The requests of a run to a person, and the application of the answers."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from detent.core.gate import Opener, gate_name
from detent.core.gate.evidence import Judgement
from detent.core.run.run_event import Need, PersonNeeded
from detent.core.session.session import Session
from detent.core.task.row import TaskStatus
from detent.errors import Invalid
from detent.run.policy import closed_gates, is_personal, is_rejected, task_phase

if TYPE_CHECKING:
    from detent.engine.session import SessionHandle

    _Request = Callable[..., PersonNeeded]

_YES, _NO = ("y", "yes"), ("n", "no")


class Person(Protocol):
    """A person at the terminal of a run."""

    def needed(self, needs: Sequence[PersonNeeded]) -> None:
        """Set the open requests; the first one is asked."""
        ...

    def poll(self) -> tuple[PersonNeeded, str] | None:
        """An answer since the last call, with its request; None without one. Never waits."""
        ...

    def show(self, text: str) -> None:
        """Show why an answer could not be applied."""
        ...


def is_held(session: Session, phase: str, judged: Sequence[Judgement], *, sees_tests: bool = True) -> bool:
    """Whether only gates that a person opens are closed, and no approver has rejected the phase."""
    closed, gates = closed_gates(judged), session.workflow.by_key[phase].gates
    personal = all(is_personal(gates, judgement, sees_tests=sees_tests) for judgement in closed)
    return bool(closed) and personal and not is_rejected(judged)


def needs(handle: "SessionHandle", session: Session, held: Collection[str]) -> list[PersonNeeded]:
    """All requests to a person, the most urgent first: agents that wait for an answer."""
    request = partial(PersonNeeded, at=handle.now())
    return [
        *(
            request(
                need=Need.ANSWER,
                phase=question.phase,
                text=question.text,
                way_out=f"detent reply {question.id} ANSWER",
                about=question.id,
                choices=question.choices,
            )
            for question in session.questions
        ),
        *(
            request(
                need=Need.DECISION,
                phase=escalation.phase,
                text=escalation.detail,
                way_out="detent resolve retry|skip|cancel",
                choices=("retry", "skip", "cancel"),
            )
            for escalation in session.escalations
        ),
        *(
            request(
                need=Need.REVIEW,
                phase=key,
                text=f"{key} is finished: {session.phases[key].summary}",
                way_out="detent review continue|redo|review",
                choices=("continue", "redo", "review"),
            )
            for key in session.awaiting_review
        ),
        *(
            _gate_need(session, key, judgement, request)
            for key in held
            for judgement in closed_gates(handle.gates.judgements(key)[key])
        ),
        *_task_needs(session, request),
    ]


def apply_answer(handle: "SessionHandle", need: PersonNeeded, answer: str) -> None:
    """Carry out the answer of a person; raises a `DetentError` if that is impossible."""
    word, _, rest = answer.strip().partition(" ")
    match need.need:
        case Need.ANSWER if need.about in {question.id for question in handle.state.questions}:
            handle.reply(answer, question=need.about)
        case Need.ANSWER:
            handle.answer(choice=answer.strip() or None, gate=need.about, phase=need.phase)
        case Need.DECISION:
            handle.resolve(word.lower(), rest, phase=need.phase)
        case Need.REVIEW:
            handle.review(word.lower(), phase=need.phase, note=rest)
        case Need.APPROVAL:
            if word.lower() not in (*_YES, *_NO):
                raise Invalid(f"{word[:40]!r} is neither yes nor no", way_out="y WHY, or n WHY")
            approves = word.lower() in _YES
            reason = rest.strip() or ("approved" if approves else "rejected")
            handle.approve(f"{reason}, at the terminal of the run", gate=need.about, phase=need.phase, approve=approves)
        case Need.WORK:
            raise Invalid("this needs a command", way_out=need.way_out)


def _gate_need(session: Session, phase: str, judgement: Judgement, request: "_Request") -> PersonNeeded:
    name = judgement.gate
    gate = next(gate for gate in session.workflow.by_key[phase].gates if gate_name(gate) == name)
    need, text = Need.APPROVAL, f"{name} of {phase} is {judgement.verdict}: {judgement.reason}"
    if gate.opened_by is Opener.ANSWER:
        need = Need.ANSWER
    elif (task := gate.person_task(phase)) is not None:
        need, text = Need.WORK, task
    return request(need=need, phase=phase, text=text, way_out=judgement.way_out, about=name, choices=gate.choices)


def _task_needs(session: Session, request: "_Request") -> Iterator[PersonNeeded]:
    phase = task_phase(session)
    if len(session.tasks) and not session.tasks.is_completed and not session.unfinished:
        yield _left_over(session, phase, request)
    elif phase is not None:
        ways_out = {TaskStatus.BLOCKED: "detent task show", TaskStatus.FAILED: "detent task retry"}
        for status, way_out in ways_out.items():
            for task in session.tasks.with_status(status)[:20]:
                text = f"{task} is {status}: {session.tasks[task].reason or 'no reason was given'}"
                yield request(need=Need.WORK, phase=phase, text=text, way_out=f"{way_out} {task}", about=task)


def _left_over(session: Session, phase: str | None, request: "_Request") -> PersonNeeded:
    """The request if all phases are done and some tasks are not."""
    if phase is None:
        text = f"no phase of {session.workflow.name} does tasks: set tasks = true for one in detent.toml"
        way_out = "detent task list, or detent complete --force"
    else:
        text = f"{phase} is {session.phases[phase].status}"
        way_out = f"detent redo {phase} --cascade, or detent complete --force"
    phase = phase or session.workflow.order[-1]
    return request(need=Need.WORK, phase=phase, text=f"tasks are left, and {text}", way_out=way_out)
