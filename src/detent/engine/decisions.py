"""The open decisions of a session at this moment: with the files, the steps of tasks, and the run that works on it."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from detent.core.actor import ActorKind
from detent.core.gate.evidence import Result
from detent.core.gate.kind import gate_name
from detent.core.session.open_decision import (
    MAX_TASKS,
    DecisionKind,
    Judged,
    OpenDecision,
    View,
    open_decisions,
    recorded_verdicts,
)
from detent.core.session.session import Session
from detent.core.task.row import TaskStatus
from detent.engine.actor import account
from detent.engine.run_lease import live_lease
from detent.errors import Corrupt

if TYPE_CHECKING:
    from detent.engine.project import Project


def decisions_in_run(
    project: "Project", session: Session, held: Iterable[str], *, sees_tests: bool
) -> tuple[OpenDecision, ...]:
    """The open decisions of a run, which holds these phases."""
    judged = {key: project.session(session.id).gates.judgements(key)[key] for key in held}
    if not open_decisions(session, judged, View(running=True, sees_tests=sees_tests)):
        # The viewer changes the words, and not whether anything waits. To find the viewer means to look at files.
        return ()
    return open_decisions(session, judged, view_now(project, session, running=True, sees_tests=sees_tests))


#: Kinds that only a person decides, whatever an agent does.
_ONLY_PEOPLE = frozenset(
    {
        *(DecisionKind.ESCALATION, DecisionKind.BUDGET, DecisionKind.REVIEW, DecisionKind.VOTE, DecisionKind.ANSWER),
        *(DecisionKind.REPORT, DecisionKind.COMMAND, DecisionKind.STEP),
    }
)


def only_people(decisions: Iterable[OpenDecision], phase: str | None = None) -> tuple[OpenDecision, ...]:
    """The decisions that an agent can only wait for. With `phase`, those of the phase and of the session as a whole."""
    return tuple(entry for entry in decisions if entry.kind in _ONLY_PEOPLE and phase in (None, entry.phase or phase))


def view_now(project: "Project", session: Session, *, running: bool | None = None, sees_tests: bool = True) -> View:
    decides = project.actor.kind is not ActorKind.AGENT
    if running is None:
        running = live_lease(project.store, session.id, now=project.clock()) is not None
    return View(
        identity=account() if decides else None,
        active=project.active() == session.id,
        running=running,
        sees_tests=sees_tests,
        knows_tests=project.settings.run.tests is not None,
        steps=_waiting_steps(project, session),
    )


def verdicts_now(project: "Project", session: Session) -> Judged:
    """The verdicts of the phases in progress. Files are only looked at if a verdict depends on them."""
    if session.has_ended or not session.gates_apply:
        return {}
    if any(_depends_on_files(session, key) for key in session.in_progress):
        return project.session(session.id).gates.judgements()
    return recorded_verdicts(session, lambda path: os.path.exists(os.path.join(project.place.base, path)))


def _depends_on_files(session: Session, phase: str) -> bool:
    for gate in session.workflow.by_key[phase].gates:
        receipt = session.phases[phase].at_gate(gate_name(gate)).receipt
        if receipt is not None and receipt.inputs is not None and receipt.result is Result.PASSED:
            return True
    return False


def _waiting_steps(project: "Project", session: Session) -> dict[str, str]:
    """Blocked task to the step of it that waits for a person."""
    blocked = session.tasks.with_status(TaskStatus.BLOCKED)[:MAX_TASKS] if len(session.tasks) else ()
    if not blocked:
        return {}
    from detent.core.flow.progress import StepState  # noqa: PLC0415 - few sessions have steps that wait
    from detent.engine.flow.record import FlowFiles, Mask  # noqa: PLC0415

    steps = {}
    for task in blocked:
        try:
            record = FlowFiles(project, session.id, task, Mask({})).load()
        except Corrupt:
            continue
        for each in record.run.steps if record is not None else ():
            if each.state is StepState.WAITING:
                steps[task] = each.step
    return steps
