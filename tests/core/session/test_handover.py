from datetime import timedelta

import msgspec
import pytest

from detent.core.session.events import Discovery
from detent.core.session.handover import DISCOVERY_FRESH, expected_paths, handover
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from tests.support.values import NOON, diamond, opened, session_at, workflow

DONE, SKIPPED = Status.COMPLETED, Status.SKIPPED


def leaving(session, **artifacts):
    """`session` in which each named phase has left artifacts and a word for the next."""
    phases = {
        key: msgspec.structs.replace(state, artifacts=artifacts.get(key, ()), context=f"from {key}")
        for key, state in session.phases.items()
    }
    return msgspec.structs.replace(session, phases=session.phases.updated(phases))


def test_a_phase_is_given_what_the_phases_before_it_left():
    session = leaving(session_at({"a": DONE, "b": DONE, "c": DONE}, graph=diamond()), a=("x",), b=("y",), c=("z",))

    given = handover(session, "d", now=NOON, exists=frozenset({"y", "z"}))

    assert [(item.phase, item.artifacts, item.context) for item in given.passed] == [
        ("b", ("y",), "from b"),
        ("c", ("z",), "from c"),
    ]
    assert given.warnings == ()


def test_where_a_phase_was_skipped_those_before_it_are_given_once():
    session = leaving(session_at({"a": DONE, "b": SKIPPED, "c": SKIPPED}, graph=diamond()), a=("x",))

    given = handover(session, "d", now=NOON, exists=frozenset({"x"}))

    assert [item.phase for item in given.passed] == ["a"]


def test_phases_that_did_not_succeed_leave_nothing():
    session = session_at({"a": Status.FAILED, "b": Status.IN_PROGRESS}, graph=diamond())

    assert handover(session, "d", now=NOON, exists=frozenset()).passed == ()


def test_an_artifact_that_is_gone_is_warned_of_and_does_not_stop_the_phase():
    session = leaving(session_at({"a": DONE}), a=("x", "y"))

    given = handover(session, "b", now=NOON, exists=frozenset({"y"}))

    assert given.passed[0].artifacts == ("y",)
    assert given.passed[0].missing == ("x",)
    assert given.warnings == ("a recorded x, which is not there",)


def test_expected_paths_are_each_path_once():
    session = leaving(session_at({"b": DONE, "c": DONE}, graph=diamond()), b=("x", "y"), c=("y", "z"))

    assert expected_paths(session, "d") == ("x", "y", "z")


@pytest.mark.parametrize(("age", "warned"), [(DISCOVERY_FRESH, False), (DISCOVERY_FRESH + timedelta(seconds=1), True)])
def test_discovery_is_given_to_phases_that_want_it_with_a_warning_when_it_is_old(age, warned):
    graph = Workflow(name="trial", phases=(Phase(key="a", discovery=True), Phase(key="b", needs=("a",))))
    session = opened(graph, discovery=Discovery(text="it is a shop", at=NOON - age))

    given = handover(session, "a", now=NOON, exists=frozenset())

    assert given.discovery == "it is a shop"
    assert bool(given.warnings) is warned
    assert handover(session, "b", now=NOON, exists=frozenset()).discovery is None


def test_the_folder_is_the_sessions():
    given = handover(opened(workflow()), "a", now=NOON, exists=frozenset())

    assert (given.artifact_folder, given.artifact_path) == ("try-it", "docs/requirements/try-it")
    assert (given.session, given.task, given.agent) == ("WFS-trial", "try it", "a-agent")
