"""Redo, reset and rollback keep the fields of a phase's state that declare it by their place, and no others."""

import pytest
from msgspec.structs import replace

from detent.core.session.events import PhaseRedone, PhaseReset
from detent.core.session.phase_state import PhaseState
from detent.core.session.phases import Phases
from detent.core.session.status import Status
from tests.support.filled import filled
from tests.support.values import after, session_at

EMPTY, FULL = PhaseState(), filled(PhaseState)
ALWAYS = {"attempt", "fence", "started", "tokens", "pre", "post"}
OVER_RESETS = ALWAYS | {"status", "agent"}
OVER_REDOS = OVER_RESETS | {"tree", "review_redos"}


def kept(state: PhaseState, of: PhaseState) -> set[str]:
    return {name for name in PhaseState.__struct_fields__ if getattr(state, name) == getattr(of, name)}


def test_a_full_state_differs_from_an_empty_one_in_every_field():
    assert kept(FULL, of=EMPTY) == set()


@pytest.mark.parametrize(
    ("state", "survivors"),
    [(FULL.redone(), OVER_REDOS), (FULL.reset(), OVER_RESETS), (FULL.rolled_back(EMPTY), ALWAYS)],
    ids=["redo", "reset", "rollback"],
)
def test_a_field_survives_what_it_declares_and_is_empty_after_the_rest(state, survivors):
    assert kept(state, of=FULL) == survivors
    assert kept(state, of=EMPTY) == set(PhaseState.__struct_fields__) - survivors


@pytest.mark.parametrize(
    ("event", "survivors", "of_the_event"),
    [
        (
            PhaseRedone(phase="a", attempt=8, agent="other"),
            FULL.redone(),
            {"status", "attempt", "fence", "agent", "begun", "tokens"},
        ),
        (PhaseReset(phase="a", reason="again"), FULL.reset(), {"status", "tokens"}),
    ],
    ids=["redo", "reset"],
)
def test_an_event_changes_only_its_own_fields_of_what_survives(event, survivors, of_the_event):
    session = session_at({"a": Status.COMPLETED})
    session = replace(session, phases=Phases({**session.phases, "a": replace(FULL, status=Status.COMPLETED)}))

    state = after(session, [event]).phases["a"]

    assert set(PhaseState.__struct_fields__) - kept(state, of=survivors) <= of_the_event
