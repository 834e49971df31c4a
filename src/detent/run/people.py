"""What a person is needed for in a run, and what follows from what the person says."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from detent.core.gate import Opener, gate_name
from detent.core.gate.evidence import Judgement, Verdict
from detent.core.run.run_event import Need, PersonNeeded
from detent.core.session.session import Session
from detent.core.task.row import TaskStatus
from detent.errors import Invalid
from detent.run.policy import is_personal, is_rejected, task_phase

if TYPE_CHECKING:
    from detent.engine.session import SessionHandle

_YES, _NO = ("y", "yes"), ("n", "no")


class Person(Protocol):
    """Somebody at a terminal."""

    def needed(self, needs: Sequence[PersonNeeded]) -> None:
        """All that is open now; the first is what is asked."""
        ...

    def poll(self) -> tuple[PersonNeeded, str] | None:
        """What the person said about one of them since the last call; never waits."""
        ...

    def show(self, text: str) -> None:
        """Something that the person should know, because what was said did not work."""
        ...


def is_held(session: Session, phase: str, judged: Sequence[Judgement], *, sees_tests: bool = True) -> bool:
    """Whether nothing but gates that a person opens is closed, and nobody has said no."""
    closed = [one for one in judged if one.verdict is not Verdict.PASS]
    gates = session.workflow.by_key[phase].gates
    personal = all(is_personal(gates, one, sees_tests=sees_tests) for one in closed)
    return bool(closed) and personal and not is_rejected(judged)


def needs(handle: "SessionHandle", session: Session, held: Collection[str]) -> list[PersonNeeded]:
    """Everything that a person could do for the session now, the most urgent first: agents that wait for an answer."""
    now = handle.now()
    found = [
        PersonNeeded(
            at=now,
            need=Need.ANSWER,
            phase=one.phase,
            text=one.text,
            way_out=f"detent reply {one.id} ANSWER",
            about=one.id,
            choices=one.choices,
        )
        for one in session.questions
    ]
    found += [
        PersonNeeded(
            at=now,
            need=Need.DECISION,
            phase=one.phase,
            text=one.detail,
            way_out="detent resolve retry|skip|cancel",
            choices=("retry", "skip", "cancel"),
        )
        for one in session.escalations
    ]
    found += [
        PersonNeeded(
            at=now,
            need=Need.REVIEW,
            phase=key,
            text=f"{key} is finished: {session.phases[key].summary}",
            way_out="detent review continue|redo|review",
            choices=("continue", "redo", "review"),
        )
        for key in session.awaiting_review
    ]
    found += [_gate_need(session, key, one, handle) for key in held for one in _closed(handle, key)]
    return found + _task_needs(session, handle)


def apply_answer(handle: "SessionHandle", need: PersonNeeded, said: str) -> None:
    """Do what the person said; a `DetentError` if that cannot be done."""
    word, _, rest = said.strip().partition(" ")
    match need.need:
        case Need.ANSWER if need.about in {one.id for one in handle.state.questions}:
            handle.reply(said, question=need.about)
        case Need.ANSWER:
            choice = said.strip() or None
            handle.answer(choice=choice, gate=need.about, phase=need.phase)
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
            raise Invalid("this is ended with a command", way_out=need.way_out)


def _closed(handle: "SessionHandle", phase: str) -> list[Judgement]:
    return [one for one in handle.gates.judgements(phase)[phase] if one.verdict is not Verdict.PASS]


def _gate_need(session: Session, phase: str, one: Judgement, handle: "SessionHandle") -> PersonNeeded:
    gate = next(gate for gate in session.workflow.by_key[phase].gates if gate_name(gate) == one.gate)
    need, text, way_out = Need.APPROVAL, f"{one.gate} of {phase} is {one.verdict}: {one.reason}", one.way_out
    if gate.opened_by is Opener.ANSWER:
        need = Need.ANSWER
    elif (task := gate.person_task(phase)) is not None:
        need, text = Need.WORK, task
    return PersonNeeded(
        at=handle.now(),
        need=need,
        phase=phase,
        text=text,
        way_out=way_out,
        about=one.gate,
        choices=gate.choices,
    )


def _has_open_tasks(session: Session) -> bool:
    if not len(session.tasks) or session.tasks.is_completed:
        return False
    return not session.unfinished


def _left_over(session: Session, handle: "SessionHandle", phase: str | None) -> PersonNeeded:
    """Every phase is done, and not every task."""
    if phase is None:
        text = f"no phase of {session.workflow.name} does tasks: set tasks = true for one in detent.toml"
        way_out = "detent task list, or detent complete --force"
    else:
        text = f"{phase} is {session.phases[phase].status}"
        way_out = f"detent redo {phase} --cascade, or detent complete --force"
    return PersonNeeded(
        at=handle.now(),
        need=Need.WORK,
        phase=phase or session.workflow.order[-1],
        text=f"tasks are left, and {text}",
        way_out=way_out,
    )


def _task_needs(session: Session, handle: "SessionHandle") -> list[PersonNeeded]:
    phase = task_phase(session)
    if _has_open_tasks(session):
        return [_left_over(session, handle, phase)]
    if phase is None:
        return []
    ways_out = {TaskStatus.BLOCKED: "detent task show", TaskStatus.FAILED: "detent task retry"}
    return [
        PersonNeeded(
            at=handle.now(),
            need=Need.WORK,
            phase=phase,
            text=f"{task} is {status}: {session.tasks[task].reason or 'no reason was given'}",
            way_out=f"{way_out} {task}",
            about=task,
        )
        for status, way_out in ways_out.items()
        for task in session.tasks.with_status(status)[:20]
    ]
