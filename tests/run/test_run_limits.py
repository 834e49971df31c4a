"""Limits of a run: an agent that never comes to an end is stopped, and a person decides."""

from datetime import timedelta

import pytest

from detent.core.actor import Actor, ActorKind, Channel
from detent.core.run.run_event import End
from detent.engine.project import open_project, utc_now
from tests.support.scripted_run import FLOW, GATED, Cast, bounded, done, stopped_only

AGENT = Actor(name="robot", kind=ActorKind.AGENT, channel=Channel.LIBRARY)


class Clock:
    """The time, which a test can move on."""

    def __init__(self):
        self.ahead = timedelta()

    def __call__(self):
        return utc_now() + self.ahead


def adding(here):
    """An agent that adds a task in every turn."""

    def act(turn, stopping):
        with open_project(here.root, actor=AGENT) as project:
            project.session(here.handle.id).tasks.add(f"one more after {turn.task or turn.phase}")
        yield done()

    return act


def test_an_agent_that_adds_a_task_in_every_turn_does_not_run_for_ever(scene):
    here = scene("", more='gates = "off"', workflow=FLOW)
    here.handle.tasks.add("One")

    cast = Cast(adding(here))
    assert bounded(here, cast, max_tasks=5) is End.WAITING

    assert here.escalations == [("run_limit", "IMPLEMENT")]
    assert here.session.added_tasks == 6
    assert "max_tasks of the run is 5" in here.session.escalations[0].detail
    assert "detent resolve retry" in here.session.escalations[0].detail


def test_tasks_of_a_person_are_not_counted(scene):
    here = scene("", more='gates = "off"', workflow=FLOW)
    for number in range(5):
        here.handle.tasks.add(f"task {number}")

    assert bounded(here, Cast(), max_tasks=0) is End.COMPLETED


def test_after_the_last_turn_of_a_run_a_person_decides_and_may_allow_as_many_again(scene):
    here, cast = scene('["a", "b", "c"]'), Cast()

    assert bounded(here, cast, max_turns=2) is End.WAITING
    assert (cast.worked_on, here.escalations) == (["a", "b"], [("run_limit", "c")])

    here.handle.resolve("retry", "go on")
    assert bounded(here, cast, max_turns=2) is End.COMPLETED
    assert cast.worked_on == ["a", "b", "c"]


def test_turns_of_one_attempt_count_for_the_run(scene):
    here = scene(GATED)
    turns = []

    def act(turn, stopping):
        turns.append(turn)
        (here.root / f"try-{len(turns)}").touch()
        yield done()

    assert bounded(here, Cast(act), max_turns=2) is End.WAITING
    assert len(turns) == 2
    assert here.escalations == [("run_limit", "a")]


def test_a_run_that_lasts_too_long_is_stopped(scene):
    clock = Clock()
    here = scene('["a"]', clock=clock)

    def act(turn, stopping):
        clock.ahead += timedelta(hours=9)
        yield stopped_only(stopping)

    assert bounded(here, Cast(act)) is End.WAITING

    assert here.escalations == [("run_limit", "a")]
    assert "the run has lasted 8 hours" in here.session.escalations[0].detail


def test_time_in_which_the_run_waits_for_a_person_does_not_count(scene):
    clock = Clock()
    here = scene('[{key="a", gates=[{kind="approval"}]}, "b"]', clock=clock)
    waited = []

    def idle():
        if here.needed and not waited:
            waited.append(True)
            clock.ahead += timedelta(hours=9)
        elif len(waited) == 1:
            waited.append(True)
            here.beside(lambda handle: handle.approve("fine"))

    assert bounded(here, Cast(), wait=True, idle=idle) is End.COMPLETED


@pytest.mark.parametrize(("phase", "agent", "counts"), [(7, 30, 7), (90, 30, 30)])
def test_the_shorter_of_the_limits_of_phase_and_agent_counts(scene, phase, agent, counts):
    here, cast = scene(f'[{{key="a", timeout_minutes={phase}}}]'), Cast(timeout_minutes=agent)

    here.run(cast)

    assert [turn.timeout_s for turn in cast.turns] == [counts * 60]


def test_the_limit_of_its_phase_counts_for_a_task(scene):
    here, cast = scene('[{key="a", tasks=true, timeout_minutes=7}]'), Cast(timeout_minutes=30)
    here.handle.tasks.add("One")

    here.run(cast)

    assert [turn.timeout_s for turn in cast.turns if turn.task] == [7 * 60]
