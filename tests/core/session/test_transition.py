"""Every cell of the table: what is legal happens, and what is not changes nothing."""

from itertools import product
from typing import get_args

import pytest

from detent.core.session.commands import Begin, Fail, Finish, Redo, Skip
from detent.core.session.decide import decide
from detent.core.session.events import (
    PhaseBegun,
    PhaseEvent,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    PhaseReset,
    PhaseSkipped,
)
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.status import Status
from detent.core.session.transition import TRANSITIONS
from detent.errors import Corrupt, Refused
from tests.support.values import NOON, commit, session_at, workflow

EVENTS = get_args(PhaseEvent)
P, I, C, F, S = Status.PENDING, Status.IN_PROGRESS, Status.COMPLETED, Status.FAILED, Status.SKIPPED  # noqa: E741

#: Written down a second time and independently; `-` is a refusal.
EXPECTED = {
    #              begun redone finished failed skipped reset
    P: dict(zip(EVENTS, (I, None, None, None, S, None), strict=True)),
    I: dict(zip(EVENTS, (None, I, C, F, S, P), strict=True)),
    C: dict(zip(EVENTS, (None, I, None, None, None, P), strict=True)),
    F: dict(zip(EVENTS, (None, I, None, None, S, P), strict=True)),
    S: dict(zip(EVENTS, (None, I, None, None, None, None), strict=True)),
}
CELLS = list(product(Status, EVENTS))
LEGAL = [(status, event) for status, event in CELLS if EXPECTED[status][event] is not None]
ILLEGAL = [(status, event) for status, event in CELLS if EXPECTED[status][event] is None]


def happening(event: type[PhaseEvent], phase: str = "b") -> PhaseEvent:
    match event.__name__:
        case "PhaseBegun":
            return PhaseBegun(phase=phase, attempt=2)
        case "PhaseRedone":
            return PhaseRedone(phase=phase, attempt=2)
        case "PhaseFinished":
            return PhaseFinished(phase=phase, attempt=1, summary="done")
        case "PhaseFailed":
            return PhaseFailed(phase=phase, attempt=1, error="broke")
        case "PhaseSkipped":
            return PhaseSkipped(phase=phase, reason="not needed")
        case _:
            return PhaseReset(phase=phase, reason="a is done again")


def asking_for(event: type[PhaseEvent]):
    """The command that would cause the event; no command asks for a reset of one phase alone."""
    return {
        PhaseBegun: Begin(phase="b"),
        PhaseRedone: Redo(phase="b"),
        PhaseFinished: Finish(phase="b", summary="done"),
        PhaseFailed: Fail(phase="b", error="broke"),
        PhaseSkipped: Skip(phases=("b",), reason="not needed"),
    }.get(event)


def standing_at(status: Status):
    return session_at({"a": Status.COMPLETED, "b": status}, graph=workflow())


def test_the_table_covers_every_status_and_names_nothing_else():
    assert set(TRANSITIONS) == set(LEGAL)
    assert len(CELLS) == len(Status) * len(EVENTS) == 30


@pytest.mark.parametrize(("status", "event"), LEGAL)
def test_a_legal_event_moves_the_phase_where_the_table_says(status, event):
    before = standing_at(status)

    after = evolve(before, commit(before.version + 1, happening(event)))

    assert after.phases["b"].status is EXPECTED[status][event]
    assert {key: after.phases[key] for key in "ac"} == {key: before.phases[key] for key in "ac"}


@pytest.mark.parametrize(("status", "event"), ILLEGAL)
def test_an_illegal_event_in_a_journal_is_corruption_and_changes_nothing(status, event):
    before = standing_at(status)
    mark = fingerprint(before)

    with pytest.raises(Corrupt) as refusal:
        evolve(before, commit(before.version + 1, happening(event)))

    assert {event.__name__, "b", str(status)} <= set(refusal.value.message.replace(",", " ").split())
    assert fingerprint(before) == mark


@pytest.mark.parametrize(("status", "event"), [cell for cell in ILLEGAL if asking_for(cell[1])])
def test_asking_for_what_is_illegal_is_refused_with_the_state_and_a_way_out(status, event):
    before = standing_at(status)
    mark = fingerprint(before)

    with pytest.raises(Refused) as refusal:
        decide(before, asking_for(event))

    assert f"b is {status}" in refusal.value.message
    assert refusal.value.way_out
    assert fingerprint(before) == mark


@pytest.mark.parametrize(("status", "event"), [cell for cell in LEGAL if asking_for(cell[1])])
def test_asking_for_what_is_legal_causes_that_event(status, event):
    before = standing_at(status)

    events = decide(before, asking_for(event))

    assert [type(caused) for caused in events] == [event]
    evolve(before, commit(before.version + 1, *events, at=NOON))


def test_only_completed_and_skipped_phases_let_others_begin():
    assert [status for status in Status if status.is_settled] == [Status.COMPLETED, Status.SKIPPED]
