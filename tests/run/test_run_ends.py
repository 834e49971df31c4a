"""Every run comes to an end: by its work, a limit or a person. What ends is told, recorded and cleared away."""

import time
from collections import Counter
from datetime import timedelta

import pytest

from detent.core.run.run_event import End, GateStarted, Need, RunEnded, StepRan, TaskEnded
from detent.core.session.events import EscalationRaised
from detent.core.task.row import TaskStatus
from detent.engine.project import open_project
from detent.errors import LockTimeout
from detent.run.phase_run import PhaseRun
from detent.run.scheduler import Runner
from detent.run.workspaces import Workspaces
from tests.support.scripted_run import FLOW, Cast, bounded, done, stopped_only
from tests.support.task_documents import stepped
from tests.support.values import TickingClock
from tests.support.waiting import until

SLOW_GATE = 'gates = [{kind = "command", command = "sleep 0.8"}]'
PARALLEL = f'["z", {{key = "a", needs = ["z"], {SLOW_GATE}}}, {{key = "b", needs = ["z"]}}]'


@pytest.fixture
def tasked(scene):
    """A session with tasks of these titles."""

    def make(*titles, more="", **given):
        here = scene("", more=f'gates = "off"\n{more}', workflow=FLOW, **given)
        for title in titles:
            here.handle.tasks.add(title)
        return here

    return make


def raised(scene):
    events = (event for commit in scene.handle.log() for event in commit.events)
    return [event for event in events if isinstance(event, EscalationRaised)]


# Loops


def fail_task(handle, turn):
    handle.tasks.fail(turn.task, "cannot", fence=int(turn.env["DETENT_CLAIM"]))


def release_task(handle, turn):
    handle.tasks.release(turn.task, reason="not mine", fence=int(turn.env["DETENT_CLAIM"]))


def fail_phase_of_task(handle, turn):
    handle.fail("cannot", phase=turn.phase)


@pytest.mark.parametrize("move", [fail_task, release_task, fail_phase_of_task])
def test_an_agent_that_gives_its_task_up_itself_is_tried_a_few_times_and_then_a_person_decides(tasked, move):
    here = tasked("One")

    def act(turn, stopping):
        if turn.task:
            here.beside(lambda handle: move(handle, turn))
        yield done()

    cast = Cast(act)

    assert bounded(here, cast, attempts=3) is End.WAITING
    assert cast.worked_on == ["PLAN", *["IMPL-1"] * 3]
    assert here.escalations == [("agent_error", "IMPLEMENT")]
    assert Need.DECISION in {need.need for need in here.needed}


def test_an_agent_that_begins_its_phase_again_is_tried_a_few_times_and_then_a_person_decides(scene):
    here = scene('["a", "b"]')

    def act(turn, stopping):
        here.beside(lambda handle: handle.redo(turn.phase, reason="again"))
        yield done()

    cast = Cast(act)

    assert bounded(here, cast, attempts=3) is End.WAITING
    assert cast.worked_on == ["a"] * 3
    assert here.escalations == [("agent_error", "a")]


# Budgets

LIMIT = "budget = { phase_minutes = 5 }"


class Late:
    """A clock that goes far beyond every limit as soon as something of that kind was told."""

    def __init__(self, kind):
        self._kind = kind
        self.clock = TickingClock(step=timedelta(milliseconds=1))

    def look(self, scene):
        if scene.heard(self._kind):
            self.clock.now += timedelta(minutes=6)


def test_time_that_runs_out_while_a_gate_runs_ends_it_and_is_asked_about_once(scene):
    late, cast = Late(GateStarted), Cast()
    phases = '[{key = "a", gates = [{kind = "command", command = "sleep 30"}]}, "b"]'
    here = scene(phases, more=LIMIT, clock=late.clock)

    assert bounded(here, cast, idle=lambda: late.look(here)) is End.WAITING

    assert len(here.heard(GateStarted)) == 1
    assert [(one.kind, one.phase) for one in raised(here)] == [("budget_exceeded", "a")]
    assert cast.worked_on == ["a"]


def test_time_that_runs_out_while_a_step_runs_ends_it_and_is_asked_about_once(tasked):
    late, cast = Late(StepRan), Cast()
    here = tasked(more=LIMIT, clock=late.clock)
    here.handle.tasks.write([stepped(1, "sleep 30")])

    assert bounded(here, cast, idle=lambda: late.look(here)) is End.WAITING

    assert len(here.heard(StepRan)) == 1
    assert [(one.kind, one.phase) for one in raised(here)] == [("budget_exceeded", "IMPLEMENT")]
    assert here.handle.tasks.row("IMPL-1").status is TaskStatus.PENDING
    assert cast.worked_on == ["PLAN"]


def test_after_a_person_allowed_more_time_the_gate_is_run_to_its_end(scene):
    late, cast = Late(GateStarted), Cast()
    gate = '{kind = "command", command = "test -e may.txt || { touch may.txt; sleep 30; }"}'
    here = scene(f'[{{key = "a", gates = [{gate}]}}]', more=LIMIT, clock=late.clock)
    assert bounded(here, cast, idle=lambda: late.look(here)) is End.WAITING

    here.handle.resolve("retry", "it may take longer")

    assert bounded(here, cast) is End.COMPLETED
    assert (cast.worked_on, here.attempts) == (["a"], {"a": 1})


# Many agents


def test_a_task_that_takes_longer_than_fifty_others_is_recorded(tasked):
    here = tasked(*(f"Task {number}" for number in range(1, 54)))
    others = []

    def act(turn, stopping):
        if turn.task == "IMPL-1":
            assert until(lambda: len(others) >= 52)
        elif turn.task:
            others.append(turn.task)
        yield done(f"did {turn.task}")

    assert bounded(here, Cast(act), parallel=2) is End.COMPLETED
    assert here.handle.tasks.row("IMPL-1").status is TaskStatus.COMPLETED
    assert Counter(event.task for event in here.heard(TaskEnded)).most_common(1)[0][1] == 1


def test_a_phase_whose_agent_had_many_helpers_gets_to_its_gates(scene):
    here = scene('[{key = "a", gates = [{kind = "command", command = "true"}]}]')

    def act(turn, stopping):
        with open_project(here.root, actor="somebody") as other:
            for number in range(51):
                other.session(here.handle.id).record_agent_started(turn.phase, "helper", f"sub-{number}")
        yield done("with help")

    assert bounded(here, Cast(act)) is End.COMPLETED
    assert here.session.phases["a"].summary == "with help"
    assert here.attempts == {"a": 1}


# Between finding something to do and doing it


def first(monkeypatch, owner, name, move):
    """Whenever the method is called `move` is made before: what may happen between two lines at any time."""
    real = getattr(owner, name)

    def moved(self, *arguments):
        move(self, *arguments)
        return real(self, *arguments)

    monkeypatch.setattr(owner, name, moved)


def test_a_phase_that_cannot_begin_any_more_is_left_and_the_run_ends_as_it_stands(scene, monkeypatch):
    here, moves = scene('["a", {key = "b", needs = ["a"]}]'), []

    def ask_first(rooms, phase):
        if phase == "b" and not moves:
            moves.append(here.beside(lambda handle: handle.escalate("stuck", "a", "a person must look")))

    first(monkeypatch, Workspaces, "project", ask_first)

    assert bounded(here, Cast(), parallel=2) is End.WAITING
    assert len(moves) == 1
    assert here.statuses == {"a": "completed", "b": "pending"}
    assert here.told[-1].end is End.WAITING
    assert here.told[-1].said.startswith("1 of 2 a: ")


def test_a_phase_that_somebody_else_has_begun_meanwhile_is_gone_on_with(scene, monkeypatch):
    here, moves = scene('["a", {key = "b", needs = ["a"]}]'), []

    def begin_first(run, state):
        if run._phase == "b" and not moves:
            moves.append(here.beside(lambda handle: handle.begin("b")))

    first(monkeypatch, PhaseRun, "_begin", begin_first)
    cast = Cast()

    assert bounded(here, cast, parallel=2) is End.COMPLETED
    assert len(moves) == 1
    assert (cast.worked_on, here.attempts) == (["a", "b"], {"a": 1, "b": 1})


def test_a_run_that_cannot_go_on_tells_so_before_it_fails(scene):
    here = scene()

    def act(turn, stopping):
        raise LockTimeout("somebody holds the lock")
        yield

    with pytest.raises(LockTimeout):
        bounded(here, Cast(act))

    assert isinstance(here.told[-1], RunEnded)
    assert (here.told[-1].end, here.told[-1].said) == (End.ERROR, "somebody holds the lock")


def test_an_approval_that_comes_before_the_run_has_heard_that_it_waits_is_seen(scene, monkeypatch):
    here, moves = scene('[{key = "a", gates = [{kind = "approval"}]}, "b"]'), []
    real = PhaseRun.run

    def approved_at_once(run):
        ended = real(run)
        if ended.outcome == "held" and not moves:
            moves.append(here.beside(lambda handle: handle.approve("fine", phase="a")))
        return ended

    monkeypatch.setattr(PhaseRun, "run", approved_at_once)

    assert bounded(here, Cast(), wait=True) is End.COMPLETED
    assert len(moves) == 1


def test_an_approval_between_two_looks_does_not_end_a_run_that_waits(scene, monkeypatch):
    here, moves = scene('[{key = "a", gates = [{kind = "approval"}]}, "b"]'), []
    looked = Runner._tell_needs

    def approved_before_it_looks(runner, session):
        if not moves and session.phases["a"].report is not None and not runner._jobs:
            moves.append(here.beside(lambda handle: handle.approve("fine", phase="a")))
        return looked(runner, session)

    monkeypatch.setattr(Runner, "_tell_needs", approved_before_it_looks)
    assert bounded(here, Cast(), wait=True) is End.COMPLETED
    assert len(moves) == 1


# Files that change beside a gate


def test_a_gate_is_not_blamed_for_what_somebody_changed_who_has_ended_since(scene, tmp_path):
    here = scene(PARALLEL)

    def act(turn, stopping):
        if turn.phase == "b":
            for number in range(6):
                (tmp_path / "x.py").write_text(f"{number}\n")
                time.sleep(0.2)
        yield done()

    assert bounded(here, Cast(act), parallel=2) is End.COMPLETED
    assert raised(here) == []


def test_a_gate_that_changes_its_own_files_is_said_to_after_two_runs(scene):
    here = scene('[{key = "a", gates = [{kind = "command", command = "echo x >> ran"}]}]')
    (here.root / "ran").touch()

    assert bounded(here, Cast()) is End.WAITING

    [escalation] = here.session.escalations
    assert (escalation.kind, "the gate's own command changes it" in escalation.detail) == ("gates_stale", True)
    assert (here.root / "ran").read_text() == "x\n" * 2


# Tasks in workflows of one's own


def test_tasks_are_done_in_the_phase_that_is_declared_for_them(scene):
    here, cast = scene('["design", {key = "build", tasks = true}, "check"]', more='gates = "off"'), Cast()
    here.handle.tasks.add("One")

    assert bounded(here, cast) is End.COMPLETED
    assert cast.worked_on == ["design", "IMPL-1", "check"]


def test_tasks_that_no_phase_does_are_said_to_a_person(scene):
    here = scene('["design", "build"]', more='gates = "off"')
    here.handle.tasks.add("One")

    assert bounded(here, Cast()) is End.WAITING

    [need] = here.needed
    assert (need.need, need.phase) == (Need.WORK, "build")
    assert need.text == "tasks are left, and no phase of w does tasks: set tasks = true for one in detent.toml"


@pytest.mark.parametrize("move", ["skip", "finish"])
def test_tasks_that_are_left_when_their_phase_was_ended_are_said_to_a_person(tasked, move):
    here = tasked("One")
    moves = {
        "skip": lambda handle: handle.skip("IMPLEMENT", reason="by hand"),
        "finish": lambda handle: handle.finish(phase="IMPLEMENT", summary="by hand"),
    }

    def act(turn, stopping):
        if turn.task:
            here.beside(moves[move])
            yield stopped_only(stopping)
        else:
            yield done()

    cast = Cast(act)

    assert bounded(here, cast) is End.WAITING
    assert cast.worked_on == ["PLAN", "IMPL-1", "REVIEW"]
    assert here.session.claims == {}
    [need] = here.needed
    assert (need.need, "tasks are left" in need.text) == (Need.WORK, True)
