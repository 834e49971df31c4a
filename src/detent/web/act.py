"""Changes made through the page: decisions, tasks, rollbacks and starts. Each goes through the door, as a person.

A decision of the page carries the proof `page`: the process of the server is judged as that of every decision, the page
was opened from a terminal, and the program at the other end of the connection was not started by an agent.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from secrets import token_hex
from threading import Thread
from typing import Any

import msgspec

from detent.core.actor import Actor, Assurance, Channel, Proof
from detent.core.decision.statement import signed_bytes
from detent.core.flow.progress import Abort, Decision, Retry, SetValue, Skip
from detent.core.run.choices import RunChoices
from detent.core.session.describe import event_lines
from detent.core.session.events import Event, TaskWritten
from detent.core.session.phase_name import phase_name
from detent.core.session.session import Session
from detent.engine.checkpoints.rollback_plan import RollbackPlan
from detent.engine.flow.flow import Flow, FlowOutcome
from detent.engine.gates.check_process import start_check
from detent.engine.project import Project
from detent.engine.results import Begun, Outcome
from detent.engine.session import SessionHandle
from detent.engine.webauthn import authentication_options
from detent.errors import Conflict, DetentError, Invalid, NotFound
from detent.web.body import Body
from detent.web.keys import Enrolments, first_signer, page_proof
from detent.web.peers import check_peer
from detent.web.projects import KnownProject, Projects
from detent.web.runs import start_run, stop_run
from detent.web.screens.open_decisions import session_needs
from detent.web.screens.review import ShownTrees
from detent.web.tokens import Grant

#: The proof of a decision at the page.
PAGE_METHOD = "page"
#: Plans of rollbacks that were shown and are kept.
MAX_PLANS = 16
#: How long a request waits for the steps of a task. They go on afterwards; commits tell how they end.
STEPS_S = 10.0


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The author of a post: the token of the page, and the other end of the connection."""

    grant: Grant
    host: str
    port: int
    server_port: int


class Actions:
    def __init__(self, projects: Projects, trees: ShownTrees, origin: str) -> None:
        self._projects, self._trees, self._origin = projects, trees, origin
        self._enrolments = Enrolments(origin)
        self._plans: OrderedDict[str, RollbackPlan] = OrderedDict()

    @contextmanager
    def changing(self, known: KnownProject, caller: Caller) -> Iterator[Project]:
        """The project to change, by the person at the page."""
        workspace = self._projects.workspace(known)
        with workspace.change(_actor(workspace.actor(Channel.PAGE, changes=True), caller)) as project:
            yield project

    # Decisions

    def decide(self, known: KnownProject, session: str, body: Body, caller: Caller) -> dict[str, Any]:
        name = body.word("decision")
        if name == "step":
            return self._step(known, session, body, caller)
        with self.changing(known, caller) as project:
            if name == "run_gate":
                return self._run_gate(project, session, body)
            if name in _OF_SESSIONS:
                state = _OF_SESSIONS[name](project, session, body)
                return {**_done(state, ()), "needs": session_needs(known, project, state)}
            make, handle = self._decision(name, project, session, body), project.session(session)
            if signed := body.table("proof"):
                handle = handle.with_proof(page_proof(Body(signed)))
            outcome = make(handle, body)
            return {**_answer(outcome), "needs": session_needs(known, project, outcome.session)}

    def statement(self, known: KnownProject, session: str, body: Body, caller: Caller) -> dict[str, Any]:
        """The statement that the person's key signs for a decision. Nothing is decided."""
        with self.changing(known, caller) as project:
            make, approvers = self._decision(body.word("decision"), project, session, body), project.approvers.read()
            approver = body.text("approver") or first_signer(approvers, self._origin)
            statement = project.session(session).statement(lambda handle: make(handle, body), approver=approver)
        return {
            "statement": signed_bytes(statement).decode(),
            "approver": approver,
            "options": authentication_options(statement, self._origin, approvers),
        }

    def enrol(self, known: KnownProject, body: Body, caller: Caller) -> dict[str, Any]:
        """One step of enrolling a key."""
        with self.changing(known, caller) as project:
            return self._enrolments.step(known.id, project, project.actor, body)

    def _decision(
        self, name: str, project: Project, session: str, body: Body
    ) -> Callable[[SessionHandle, Body], Outcome | Begun]:
        """The function that carries out the decision. Refuses one about other files than those that were shown."""
        make = _DECISIONS.get(name)
        if make is None:
            known = ", ".join(sorted((*_DECISIONS, *_OF_SESSIONS, "run_gate", "step")))
            raise Invalid(f"{name[:40]!r} is no decision of the page; there are {known}")
        tree = body.text("tree")
        if name == "approve" and not tree:
            raise Invalid("an approval names the tree that was shown", way_out="look at the changes first")
        if tree:
            self._trees.check(project, session, body.text("phase") or None, tree)
        return make

    def _run_gate(self, project: Project, session: str, body: Body) -> dict[str, Any]:
        """Start the check of a gate in a process of its own; its receipt comes with a commit."""
        phase, gate = body.word("phase"), body.word("gate")
        project.session(session).gates.check_known(gate, phase=phase)
        check = start_check(project, session, gate, phase)
        return {"done": [f"the check of {gate} is running (process {check.pid})"], "version": None, "warnings": []}

    def _step(self, known: KnownProject, session: str, body: Body, caller: Caller) -> dict[str, Any]:
        """Decide about the step of a task that waits for a person. The steps after it run beside the server."""
        task, decision = body.word("task"), _step_decision(body)
        ended: Future[FlowOutcome] = Future()

        def work() -> None:
            try:
                with self.changing(known, caller) as project:
                    flow = Flow(project, project.session(session))
                    ended.set_result(flow.resume(task, decision=decision))
            except (DetentError, OSError) as error:
                ended.set_exception(error)

        Thread(target=work, daemon=True).start()
        if not wait((ended,), STEPS_S).done:
            return {"done": [f"the steps of {task} are running"], "version": None, "warnings": []}
        outcome = ended.result()
        state = f"wait at {outcome.step}: {outcome.reason}" if outcome.reason else outcome.ended or "go on"
        return {"done": [f"the steps of {task}: {state}"], "version": None, "warnings": outcome.warnings}

    # Tasks

    def add_task(self, known: KnownProject, session: str, body: Body, caller: Caller) -> dict[str, Any]:
        with self.changing(known, caller) as project:
            outcome = project.session(session).tasks.add(
                body.word("title"),
                parent=body.text("parent") or None,
                depends_on=body.texts("depends_on"),
                requirements=body.texts("requirements"),
                focus_paths=body.texts("focus_paths"),
                acceptance=body.texts("acceptance"),
                kind=body.text("type") or None,
                agent=body.text("agent") or None,
            )
        added = next(event.task for event in outcome.events if isinstance(event, TaskWritten))
        return {**_answer(outcome), "task": added}

    def move_task(
        self, known: KnownProject, session: str, task: str, action: str, body: Body, caller: Caller
    ) -> dict[str, Any]:
        move = _TASK_ACTIONS.get(action)
        if move is None:
            raise NotFound(f"{action[:40]!r} is nothing that a task does; there are {', '.join(_TASK_ACTIONS)}")
        with self.changing(known, caller) as project:
            return _answer(move(project.session(session), task, body))

    # Rollback

    def rollback(self, known: KnownProject, session: str, body: Body, caller: Caller | None) -> dict[str, Any]:
        """Show the plan of a rollback; or carry out the plan that was shown, and nothing else."""
        return self._roll_back(known, session, body.word("to"), body, caller)

    def undo(self, known: KnownProject, session: str, body: Body, caller: Caller | None) -> dict[str, Any]:
        return self._roll_back(known, session, None, body, caller)

    def _roll_back(
        self, known: KnownProject, session: str, to: str | None, body: Body, caller: Caller | None
    ) -> dict[str, Any]:
        options: dict[str, Any] = {"phase_only": body.flag("phase_only"), "remove_unknown": body.flag("remove_unknown")}
        if body.flag("dry_run") or caller is None:
            with self._projects.reading(known) as project:
                checkpoints = project.session(session).checkpoints
                plan = checkpoints.plan_rollback(to, paths=body.texts("paths"), **options)
            return {"plan": plan.as_record(), "plan_id": self._keep(plan), "result": None}
        expected = self._plans.get(body.word("plan_id"))
        if expected is None:
            raise Conflict("the plan that was shown is not known any more", way_out="look at the plan again")
        with self.changing(known, caller) as project:
            handle = project.session(session)
            if not expected.phase_only:
                project.rollbacks.check_no_run(session)
            if to is None:
                done = handle.checkpoints.undo(expected=expected)
            else:
                done = handle.checkpoints.rollback(to, paths=expected.paths, expected=expected, **options)
        result = {
            "files": len(done.plan.steps),
            "safety": done.safety,
            "done": event_lines(done.events, partial(phase_name, done.session)),
        }
        return {"plan": done.plan.as_record(), "plan_id": None, "result": result, "version": done.session.version}

    def _keep(self, plan: RollbackPlan) -> str:
        name = token_hex(16)
        self._plans[name] = plan
        while len(self._plans) > MAX_PLANS:
            self._plans.popitem(last=False)
        return name

    # Sessions and runs

    def start(self, known: KnownProject, body: Body, caller: Caller) -> dict[str, Any]:
        runs = body.flag("run")
        choices = run_choices(body)
        with self.changing(known, caller) as project:
            handle = project.start(
                body.word("workflow"),
                body.word("task"),
                name=body.text("name") or None,
                size=body.text("size") or None,
                branch=body.text("branch") or None,
                run=choices if runs else None,
            )
            state, notices = handle.state, [*project.left_out]
        started = start_run(self._projects, known, handle.id, yes=body.flag("yes")) if runs else None
        return {"session": state.id, "version": state.version, "notices": notices, "run": started}

    def run(self, known: KnownProject, session: str, body: Body, caller: Caller) -> dict[str, Any]:
        choices = run_choices(body)
        with self.changing(known, caller) as project:
            handle = project.session(session)
            if choices != RunChoices() and choices != handle.state.options.run:
                handle.set_run_options(choices)
        return start_run(self._projects, known, session, yes=body.flag("yes"))

    def stop(self, known: KnownProject, session: str, _body: Body, caller: Caller) -> dict[str, Any]:
        with self.changing(known, caller) as project:
            return stop_run(project, session)


def run_choices(body: Body) -> RunChoices:
    agent = body.text("agent")
    return RunChoices(agents={"": agent} if agent else {}, parallel=body.number("parallel"))


def _actor(actor: Actor, caller: Caller) -> Actor:
    """The person at the page. Whether a person is there is judged with the commit."""
    seen = check_peer(caller.host, caller.port, caller.server_port)
    statement = f"page opened from {caller.grant.opened or 'an unknown terminal'}; used by {seen}"
    proof = Proof(assurance=Assurance.ATTENDED, method=PAGE_METHOD, statement=statement)
    return msgspec.structs.replace(actor, proof=proof)


def _answer(outcome: Outcome | Begun) -> dict[str, Any]:
    return {**_done(outcome.session, outcome.events), "warnings": outcome.warnings}


def _done(session: Session, events: tuple[Event, ...]) -> dict[str, Any]:
    return {"done": event_lines(events, partial(phase_name, session)), "version": session.version, "warnings": []}


# The decisions, by the name that the page posts.


def _vote(handle: SessionHandle, body: Body, *, approve: bool) -> Outcome:
    return handle.approve(
        body.word("reason"),
        gate=body.text("gate") or None,
        phase=body.word("phase"),
        stands_for=body.text("stands_for"),
        approve=approve,
    )


def _accept(handle: SessionHandle, body: Body) -> Outcome:
    names = body.texts("names")
    if bool(names) is body.flag("all"):
        raise Invalid("name the tests to accept, or say all")
    return handle.gates.accept(body.word("gate"), names, body.word("reason"), phase=body.text("phase") or None)


def _step_decision(body: Body) -> Decision:
    match body.word("choice"):
        case "retry":
            return Retry()
        case "skip":
            return Skip()
        case "set":
            return SetValue(body.word("value"))
        case "abort":
            return Abort()
        case other:
            raise Invalid(f"{other[:40]!r} decides no step; there are retry, skip, set and abort")


_DECISIONS: dict[str, Callable[[SessionHandle, Body], Outcome | Begun]] = {
    "approve": lambda handle, body: _vote(handle, body, approve=True),
    "reject": lambda handle, body: _vote(handle, body, approve=False),
    "answer": lambda handle, body: handle.answer(
        choice=body.word("choice"), gate=body.text("gate") or None, phase=body.text("phase") or None
    ),
    "resolve": lambda handle, body: handle.resolve(
        body.word("choice"), body.text("reason"), phase=body.text("phase") or None
    ),
    "review": lambda handle, body: handle.review(
        body.word("choice"), phase=body.text("phase") or None, note=body.text("reason")
    ),
    "reply": lambda handle, body: handle.reply(body.word("answer"), question=body.word("question")),
    "skip": lambda handle, body: handle.skip(body.word("phase"), reason=body.word("reason")),
    "cancel": lambda handle, body: handle.cancel(body.word("reason")),
    "redo": lambda handle, body: handle.redo(
        body.word("phase"), reason=body.text("reason"), cascade=body.flag("cascade")
    ),
    "accept": _accept,
    "baseline": lambda handle, body: handle.gates.baseline(
        body.word("gate"), phase=body.text("phase") or None, reason=body.word("reason")
    ),
    "command": lambda handle, body: handle.gates.set_command(
        body.word("gate"), body.word("command"), body.word("reason"), phase=body.text("phase") or None
    ),
    "report": lambda handle, body: handle.gates.report(
        body.word("gate"),
        compliant=body.flag("compliant"),
        note=body.text("reason"),
        phase=body.text("phase") or None,
    ),
    "release": lambda handle, body: handle.release(body.word("reason"), phase=body.text("phase") or None),
    "complete": lambda handle, body: handle.complete(force=body.flag("force")),
    "finish": lambda handle, body: handle.finish(body.word("summary"), phase=body.text("phase") or None),
    "unblock": lambda handle, body: handle.tasks.unblock(body.word("task")),
    "retry": lambda handle, body: handle.tasks.retry(body.word("task")),
}


def _paused(project: Project, session: str, body: Body) -> Session:
    if project.active() != session:
        raise Conflict(f"{session} is not the active session")
    return project.sessions.pause(body.text("reason"))


#: Decisions about a session as a whole.
_OF_SESSIONS: dict[str, Callable[[Project, str, Body], Session]] = {
    "pause": _paused,
    "resume": lambda project, session, _body: project.sessions.resume(session).state,
    "reopen": lambda project, session, body: project.sessions.reopen(session, body.text("reason")).state,
    "archive": lambda project, session, _body: project.sessions.archive(session),
}


def _edit(handle: SessionHandle, task: str, body: Body) -> Outcome:
    """Change a document, whole or in parts. A reason makes it another version of the plan."""
    changes, document = body.table("changes"), body.table("document")
    if bool(changes) is bool(document):
        raise Invalid("an edit has a document or changes")
    if changes:
        return handle.tasks.replan(task, changes, reason=body.word("reason"))
    if document.get("id") != handle.tasks.document(task)["id"]:
        raise Invalid(f"the document is not that of {task}")
    return handle.tasks.write([document], new=False, reason=body.text("reason") or "edited")


_TASK_ACTIONS: dict[str, Callable[[SessionHandle, str, Body], Outcome]] = {
    "split": lambda handle, task, body: handle.tasks.split(task, body.texts("parts")),
    "edit": _edit,
    "block": lambda handle, task, body: handle.tasks.block(task, body.word("reason")),
    "unblock": lambda handle, task, _body: handle.tasks.unblock(task),
    "release": lambda handle, task, body: handle.tasks.release(task, reason=body.text("reason")),
    "start": lambda handle, task, _body: handle.tasks.start(task),
    "done": lambda handle, task, body: handle.tasks.done(task, body.text("summary"), met=body.texts("met")),
    "fail": lambda handle, task, body: handle.tasks.fail(task, body.word("reason")),
    "retry": lambda handle, task, _body: handle.tasks.retry(task),
    "reopen": lambda handle, task, _body: handle.tasks.reopen(task),
    "remove": lambda handle, task, _body: handle.tasks.remove(task),
}
