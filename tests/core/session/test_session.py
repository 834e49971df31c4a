from datetime import timedelta
from typing import Any

import pytest

from detent.core.session.commands import Begin, Cancel, Complete, Fail, Finish, Redo, Skip
from detent.core.session.decide import decide, decide_start
from detent.core.session.events import (
    AgentLaunched,
    ComplexitySet,
    DocumentAdopted,
    GateCommandSet,
    ImportedPhase,
    PhaseBegun,
    PhaseReviewed,
    PhasesImported,
    SessionCompleted,
    TailDropped,
)
from detent.core.session.evolve import MAX_NOTES, evolve, fingerprint
from detent.core.session.phase_state import Tokens
from detent.core.session.session import SessionStatus, decode_session, encode_session
from detent.core.session.status import Status
from detent.errors import Corrupt
from tests.support.values import NOON, after, commit, diamond, opened, session_at, start, workflow


def test_a_session_that_begins_with_anything_but_a_start_is_corrupt():
    with pytest.raises(Corrupt, match="opens with PhaseBegun"):
        evolve(None, commit(1, PhaseBegun(phase="a", attempt=1)))


@pytest.mark.parametrize("version", [0, 1, 3, 99])
def test_a_commit_that_does_not_follow_is_corrupt(version):
    with pytest.raises(Corrupt, match=f"commit {version} does not follow 1"):
        evolve(opened(), commit(version, SessionCompleted()))


def test_a_second_start_in_a_journal_is_corrupt():
    session = after(opened(), decide(opened(), Finish(summary="done")))

    with pytest.raises(Corrupt):
        evolve(session, commit(3, *decide_start(start())))


def test_an_event_of_a_phase_that_the_workflow_does_not_have_is_corrupt():
    with pytest.raises(Corrupt, match="names phase z"):
        evolve(opened(), commit(2, PhaseBegun(phase="z", attempt=1)))


@pytest.mark.parametrize(
    "event",
    [
        PhaseReviewed(phase="z", decision="continue"),
        AgentLaunched(phase="z", agent="a", agent_id="1"),
        GateCommandSet(gate="tests", phases=("a",), command="make test", reason="it moved"),
        ComplexitySet(level="unheard of"),
    ],
)
def test_an_event_that_names_anything_that_is_not_there_is_corrupt_with_a_way_out(event):
    with pytest.raises(Corrupt, match="commit 2 names what is not there") as refused:
        evolve(opened(), commit(2, event))

    assert refused.value.way_out == f"detent doctor --restore {opened().id} sets it aside, and all commits behind it"


def test_a_commit_without_events_changes_only_the_version():
    session = opened()

    same = evolve(session, commit(2, DocumentAdopted(document="state.json", digest="0"), TailDropped(bytes=3)))

    assert same.version == 2
    assert same.phases == session.phases


def test_an_earlier_session_is_never_changed_by_a_later_commit():
    first = opened()
    mark, phases = fingerprint(first), dict(first.phases)

    after(first, decide(first, Finish(summary="done")))

    assert fingerprint(first) == mark
    assert first.phases == phases


def test_the_notes_are_the_latest_hundred_in_order():
    session = opened()
    for number in range(MAX_NOTES + 20):
        session = after(session, decide(session, Redo(phase="a", reason=str(number))))

    assert len(session.notes) == MAX_NOTES
    assert [note.action for note in session.notes[-2:]] == [
        f"began a again, attempt {MAX_NOTES + 20}",
        f"began a again, attempt {MAX_NOTES + 21}",
    ]


def test_times_of_attempts_are_kept_apart_from_the_first_start():
    later = NOON + timedelta(hours=1)
    session = opened()
    session = after(session, decide(session, Fail(error="broke")), at=NOON + timedelta(minutes=5))

    session = after(session, decide(session, Redo(phase="a")), at=later)

    state = session.phases["a"]
    assert (state.started, state.begun, state.completed, state.error) == (NOON, later, None, None)
    assert (state.attempt, state.retries, state.fence) == (2, 1, 3)


def test_tokens_add_up_over_attempts_and_resets():
    session = session_at({"a": Status.COMPLETED, "b": Status.IN_PROGRESS})
    session = after(session, decide(session, Finish(summary="done", tokens=Tokens(input=5, output=1))))
    session = after(session, decide(session, Redo(phase="a", cascade=True)))
    session = after(session, decide(session, Finish(summary="done")))
    session = after(session, decide(session, Begin(phase="b")))

    session = after(session, decide(session, Fail(error="broke", tokens=Tokens(input=2, output=2))))

    assert session.phases["b"].tokens == Tokens(input=7, output=3)


def test_the_fingerprint_tells_apart_everything_that_can_happen():
    session = session_at({"a": Status.COMPLETED, "b": Status.IN_PROGRESS}, graph=diamond())
    commands: list[Any] = [
        Begin(),
        Begin(agent="other"),
        Finish(summary="done"),
        Finish(summary="done", artifacts=("x",)),
        Finish(summary="done", context="mind the gap"),
        Finish(summary="done", deliverables=("x",)),
        Finish(summary="done", tokens=Tokens(input=1)),
        Fail(error="broke"),
        Redo(phase="a", cascade=True),
        Skip(phases=("b",), reason="no"),
        Skip(phases=("c",), reason="no"),
        Complete(force=True),
        Cancel(reason="no"),
        Cancel(reason="no money"),
    ]

    marks = [fingerprint(after(session, decide(session, command))) for command in commands]
    marks.append(fingerprint(after(session, decide(session, Begin()), at=NOON + timedelta(milliseconds=1))))

    assert len({fingerprint(session), *marks}) == 1 + len(marks)


def test_the_fingerprint_is_the_same_after_a_round_trip_through_json():
    session = after(opened(), decide(opened(), Finish(summary="done", artifacts=("x",))))

    again = decode_session(encode_session(session))

    assert again == session
    assert fingerprint(again) == fingerprint(session)


@pytest.mark.parametrize(
    ("command", "status", "attribute", "value"),
    [
        (Complete(force=True, merged_commit="abc"), SessionStatus.COMPLETED, "merged_commit", "abc"),
        (Complete(force=True), SessionStatus.COMPLETED, "forced", True),
        (Cancel(reason="no money"), SessionStatus.CANCELLED, "cancel_reason", "no money"),
    ],
)
def test_the_end_of_a_session_says_how_and_when(command, status, attribute, value):
    session = after(opened(), decide(opened(), command), at=NOON)

    assert (session.status, session.ended_at, getattr(session, attribute)) == (status, NOON, value)


def test_ready_and_active_order_follow_the_statuses():
    session = session_at({"a": Status.COMPLETED, "b": Status.SKIPPED}, graph=diamond())

    assert session.ready == ("c",)
    assert session.active_order == ("a", "c", "d")


@pytest.mark.parametrize(
    ("statuses", "waits_for"),
    [
        ({"a": Status.IN_PROGRESS, "b": Status.SKIPPED, "c": Status.SKIPPED}, ("a",)),
        ({"a": Status.COMPLETED, "b": Status.SKIPPED, "c": Status.SKIPPED}, ()),
        ({"a": Status.FAILED, "b": Status.SKIPPED, "c": Status.COMPLETED}, ("a",)),
        ({"a": Status.IN_PROGRESS, "b": Status.COMPLETED, "c": Status.COMPLETED}, ()),
        ({"a": Status.SKIPPED, "b": Status.SKIPPED, "c": Status.FAILED}, ("c",)),
    ],
)
def test_a_skipped_phase_passes_on_what_it_would_have_waited_for(statuses, waits_for):
    session = session_at(statuses, graph=diamond())

    assert session.open_needs("d") == waits_for
    assert ("d" in session.ready) == (waits_for == ())


def test_looking_through_many_skipped_phases_ends():
    """There are 2^60 ways through them."""
    layers = [(f"l{number}", f"r{number}") for number in range(60)]
    needs: dict[str, tuple[str, ...]] = {"a": ()} | {
        key: layers[at - 1] if at else ("a",) for at, layer in enumerate(layers) for key in layer
    }
    graph = workflow({"a": ()} | needs | {"end": layers[-1]})
    session = session_at({key: Status.SKIPPED for layer in layers for key in layer}, graph=graph)

    assert session.open_needs("end") == ("a",)


def test_the_work_id_needs_a_prefix_and_a_number():
    assert opened(workflow(prefix="REQ"), number=5).work_id == "REQ-0005"
    assert opened(workflow(prefix="REQ")).work_id is None
    assert opened(workflow(), number=5).work_id is None


def test_an_import_places_each_phase_where_the_document_had_it():
    found = PhasesImported(
        source="state.json",
        started_at=NOON - timedelta(days=1),
        phases={
            "a": ImportedPhase(status="completed", attempt=2, summary="done", artifacts=("x",)),
            "b": ImportedPhase(status="in_progress", attempt=1, started=NOON),
        },
    )

    session = evolve(None, commit(1, decide_start(start())[0], found))

    assert [session.phases[key].status for key in "abc"] == ["completed", "in_progress", "pending"]
    assert session.started_at == NOON - timedelta(days=1)
    assert session.token("b") == ("b", 1, 1)
    assert decide(session, Finish(summary="done"))[0].phase == "b"


def test_sessions_do_not_share_what_their_tasks_are_looked_up_in():
    assert opened().tasks is not opened().tasks
