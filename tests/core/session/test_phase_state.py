"""Every field of a phase's state declares how long it lasts, and redo, reset and rollback go by that."""

from typing import Annotated, get_args, get_origin, get_type_hints

import pytest
from msgspec.structs import replace

from detent.core.session.events import PhaseRedone, PhaseReset
from detent.core.session.phase_state import Lasts, PhaseState
from detent.core.session.phases import Phases
from detent.core.session.status import Status
from tests.support.filled import filled
from tests.support.values import after, session_at

EMPTY, FULL = PhaseState(), filled(PhaseState)
DECLARED = get_type_hints(PhaseState, include_extras=True)


def lasts(name: str) -> Lasts | None:
    kinds = [extra for extra in get_args(DECLARED[name]) if isinstance(extra, Lasts)]
    return kinds[0] if get_origin(DECLARED[name]) is Annotated and len(kinds) == 1 else None


def named(*lengths: Lasts) -> set[str]:
    return {name for name in PhaseState.__struct_fields__ if lasts(name) in lengths}


def kept(state: PhaseState, of: PhaseState) -> set[str]:
    return {name for name in PhaseState.__struct_fields__ if getattr(state, name) == getattr(of, name)}


def test_every_field_declares_how_long_it_lasts():
    undeclared = [name for name in PhaseState.__struct_fields__ if lasts(name) is None]

    assert undeclared == [], "write OfAttempt, OverRedos, OverResets or Always around the type of these fields"


def test_a_full_state_differs_from_an_empty_one_in_every_field():
    assert kept(FULL, of=EMPTY) == set()


@pytest.mark.parametrize(
    ("state", "survivors"),
    [
        (FULL.redone(), named(Lasts.REDO, Lasts.RESET, Lasts.ALWAYS)),
        (FULL.reset(), named(Lasts.RESET, Lasts.ALWAYS)),
        (FULL.rolled_back(EMPTY), named(Lasts.ALWAYS)),
    ],
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
