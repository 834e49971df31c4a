"""What comes next, for every way in which things can stand."""

from itertools import chain, combinations, product

import msgspec
import pytest

from detent.core.gate.closed import is_personal, is_rejected
from detent.core.gate.evidence import Judgement, Verdict
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.artifacts import ArtifactsGate
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.consensus import ConsensusGate
from detent.core.gate.kinds.constitution import ConstitutionGate
from detent.core.gate.kinds.delegation import DelegationGate
from detent.core.gate.kinds.elicitation import ElicitationGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.run.agent_event import Failure
from detent.core.session.events import Options, Supervised
from detent.core.session.open_decision import task_phase
from detent.core.session.session import Escalation, SessionStatus
from detent.core.session.status import Status
from detent.core.task.plan import Plan
from detent.core.task.row import Row, TaskStatus
from detent.run.policy import (
    SAME_FAILURE,
    SAME_SILENCE,
    Next,
    Runnable,
    after_gates,
    is_only_stale,
    may_try_again,
    pause_before,
    runnable,
)
from tests.support.values import NOON, diamond, row, session_at

GATES = {
    "tests": TestsGate(),
    "command": CommandGate(command="make"),
    "artifacts": ArtifactsGate(paths=("a",)),
    "delegation": DelegationGate(),
    "checked": ConstitutionGate(name="checked", articles=("I",), checks={"I": "true"}),
    "unchecked": ConstitutionGate(name="unchecked", articles=("I",)),
    "approval": ApprovalGate(),
    "consensus": ConsensusGate(approvers=("ada",), quorum=1),
    "elicitation": ElicitationGate(),
    "merge": CommandGate(name="merge", command="detent merge"),
}
PERSONAL = {"unchecked", "approval", "consensus", "elicitation"}
#: Where a person says yes or no; an article that was not looked at yet is not a no.
VOTED = PERSONAL - {"unchecked"}
SILENT = {Verdict.PENDING, Verdict.ERROR}


def judged(name, verdict):
    kind = {"checked": "constitution", "unchecked": "constitution", "merge": "command"}.get(name, name)
    return Judgement(gate=name, kind=kind, verdict=verdict, reason="because", way_out="do it")


def expected(closed, turns_left, repeats):
    """The table of the module's head, written down a second time and in another way."""
    if not closed:
        return Next.FINISH
    if len(closed) > 1 and closed.get("merge") in (Verdict.PENDING, Verdict.STALE):
        # It runs when nothing else is closed.
        closed = {name: verdict for name, verdict in closed.items() if name != "merge"}
    if set(closed) <= PERSONAL:
        return Next.REJECTED if Verdict.FAIL in {closed.get(name) for name in VOTED} else Next.HOLD
    verdicts = {verdict for name, verdict in closed.items() if name not in PERSONAL}
    if turns_left < 1 or repeats >= (2 if verdicts <= SILENT else 3):
        return Next.GIVE_UP
    return Next.TURN


@pytest.mark.parametrize("names", [*combinations(GATES, 1), *combinations(GATES, 2)], ids="+".join)
def test_every_verdict_has_its_consequence(names):
    for verdicts in product(Verdict, repeat=len(names)):
        closed = {name: verdict for name, verdict in zip(names, verdicts, strict=True) if verdict is not Verdict.PASS}
        judgements = [judged(*one) for one in zip(names, verdicts, strict=True)]
        for turns_left, repeats in product((-1, 0, 1, 9), range(1, 5)):
            gates = [GATES[name] for name in names]
            found = after_gates(gates, judgements, turns_left=turns_left, repeats=repeats)
            assert found is expected(closed, turns_left, repeats), (closed, turns_left, repeats)


def test_a_phase_without_gates_is_finished_after_its_turn():
    assert after_gates((), (), turns_left=0, repeats=9) is Next.FINISH


def test_what_failed_is_looked_at_once_more_than_what_never_ran():
    assert (SAME_SILENCE, SAME_FAILURE) == (2, 3)


@pytest.mark.parametrize("name", GATES)
def test_only_a_person_opens_what_asks_for_votes_answers_or_judgement(name):
    assert is_personal(tuple(GATES.values()), judged(name, Verdict.PENDING)) is (name in PERSONAL)


@pytest.mark.parametrize("name", GATES)
def test_a_no_is_what_a_person_said_and_not_what_a_command_found(name):
    assert is_rejected([judged(name, Verdict.FAIL)]) is (name in VOTED)
    assert not is_rejected([judged(name, Verdict.PENDING), judged(name, Verdict.PASS)])


@pytest.mark.parametrize("verdicts", [*product(Verdict, repeat=1), *product(Verdict, repeat=2)])
def test_what_only_grew_old_is_told_from_what_failed(verdicts):
    closed = set(verdicts) - {Verdict.PASS}
    only = closed in ({Verdict.STALE}, {Verdict.STALE, Verdict.PENDING})

    assert is_only_stale([judged("tests", verdict) for verdict in verdicts]) is only


@pytest.mark.parametrize(
    ("gate", "merges"),
    [
        (CommandGate(command="detent merge"), True),
        (CommandGate(command="detent merge --phase b"), True),
        (CommandGate(command="make"), False),
        (TestsGate(command="detent merge"), False),
    ],
)
def test_a_merge_is_told_by_its_command(gate, merges):
    assert gate.runs_last is merges


@pytest.mark.parametrize(("failure", "tries"), list(product(Failure, range(1, 5))))
def test_another_attempt_follows_unless_it_was_refused_or_stopped_or_there_were_enough(failure, tries):
    allowed = failure in (Failure.ERROR, Failure.TIMEOUT, Failure.TRANSIENT) and tries < 3

    assert may_try_again(failure, tries=tries, attempts=3) is allowed


def test_pauses_double_to_a_limit():
    assert [pause_before(again, 2.0) for again in (1, 2, 3, 8, 9, 1000)] == [2, 4, 8, 256, 300, 300]


# What is due


def phases(found):
    return [one.phase for one in found]


def with_escalation(session, phase):
    return msgspec.structs.replace(session, escalations=(Escalation(kind="k", phase=phase, detail="d", at=NOON),))


def with_review(session, phase):
    reviewed = msgspec.structs.replace(session.phases[phase], review="pending")
    options = Options(supervised=Supervised())
    return msgspec.structs.replace(session, phases=session.phases.replaced(phase, reviewed), options=options)


def subsets(keys):
    return [set(some) for some in chain.from_iterable(combinations(keys, count) for count in range(len(keys) + 1))]


STANDINGS = [dict(zip("abcd", some, strict=True)) for some in product(Status, repeat=4)]


def test_whatever_the_standing_nothing_is_due_that_is_over_busy_held_asked_about_or_waits_for_another():
    for statuses in STANDINGS:
        session = session_at(statuses, graph=diamond())
        for busy, held in product(subsets("bc"), subsets("ab")):
            found = runnable(session, busy=dict.fromkeys(busy, 1), held=held)
            for one in found:
                status = statuses[one.phase]
                assert status in (Status.IN_PROGRESS, Status.FAILED, Status.PENDING)
                assert one.phase not in busy
                assert not (status is Status.IN_PROGRESS and one.phase in held)
                assert status is Status.IN_PROGRESS or not session.open_needs(one.phase)
                assert (one.slots, one.has_tasks) == (1, False)
            assert len(set(phases(found))) == len(found)


def test_whatever_the_standing_all_that_can_be_worked_on_is_due():
    for statuses in STANDINGS:
        session = session_at(statuses, graph=diamond())
        live = {key for key, status in statuses.items() if status is Status.IN_PROGRESS}
        new = {
            key
            for key, status in statuses.items()
            if status in (Status.PENDING, Status.FAILED) and not session.open_needs(key)
        }

        assert set(phases(runnable(session, busy={}, held=()))) == live | new


def test_nothing_new_begins_while_a_person_has_something_to_decide_but_what_is_begun_goes_on():
    for statuses in STANDINGS:
        session = session_at(statuses, graph=diamond())
        live = [key for key, status in statuses.items() if status is Status.IN_PROGRESS]

        assert phases(runnable(with_review(session, "a"), busy={}, held=())) == live
        assert phases(runnable(with_escalation(session, "c"), busy={}, held=())) == [key for key in live if key != "c"]


def test_what_is_begun_comes_first_then_what_failed_then_what_is_ready():
    graph = row("a")
    four = msgspec.structs.replace(
        graph, phases=tuple(msgspec.structs.replace(graph.phases[0], key=key) for key in "abcd")
    )
    session = session_at({"b": Status.FAILED, "c": Status.IN_PROGRESS}, graph=four)

    assert phases(runnable(session, busy={}, held=())) == ["c", "b", "a", "d"]
    assert [phases(runnable(session, busy={}, held=(), most=most)) for most in (1, 3)] == [["c"], ["c", "b", "a"]]


@pytest.mark.parametrize("status", [SessionStatus.COMPLETED, SessionStatus.CANCELLED])
def test_nothing_is_due_in_a_session_that_is_over(status):
    session = msgspec.structs.replace(session_at({"a": Status.IN_PROGRESS}), status=status)

    assert runnable(session, busy={}, held=()) == []


# Tasks


def with_tasks(session, **statuses):
    rows = [
        Row(id=f"IMPL-{number}", title=name, status=TaskStatus(status))
        for number, (name, status) in enumerate(statuses.items(), 1)
    ]
    return msgspec.structs.replace(session, tasks=Plan(rows))


@pytest.mark.parametrize("phase", ["IMPLEMENT", "06-implementation", "development"])
def test_as_many_work_on_tasks_as_tasks_are_ready_whoever_is_at_work_already(phase):
    session = session_at({phase: Status.IN_PROGRESS}, graph=row(phase, "after"))
    tasked = with_tasks(session, one="pending", two="active", three="pending", four="completed")

    assert task_phase(tasked) == phase
    assert runnable(tasked, busy={phase: 1}, held=()) == [Runnable(phase, 2, has_tasks=True)]


def test_nobody_is_sent_where_every_task_is_taken():
    session = session_at({"IMPLEMENT": Status.IN_PROGRESS}, graph=row("IMPLEMENT"))

    assert runnable(with_tasks(session, one="active"), busy={"IMPLEMENT": 1}, held=()) == []


@pytest.mark.parametrize("statuses", [{"one": "completed"}, {}])
def test_one_works_on_a_phase_whose_tasks_are_done_or_that_has_none(statuses):
    session = with_tasks(session_at({"IMPLEMENT": Status.IN_PROGRESS}, graph=row("IMPLEMENT")), **statuses)

    assert runnable(session, busy={}, held=()) == [Runnable("IMPLEMENT")]
    assert runnable(session, busy={"IMPLEMENT": 1}, held=()) == []


def test_tasks_of_a_workflow_without_a_phase_for_them_are_nobodys():
    assert task_phase(with_tasks(session_at(), one="pending")) is None
    assert task_phase(session_at(graph=row("IMPLEMENT"))) is None
