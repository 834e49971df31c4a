"""Phases in stretches against a plain dict of all of them."""

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detent.core.session.evolve import fingerprint
from detent.core.session.phase_state import PhaseState
from detent.core.session.phases import Phases
from detent.core.session.session import decode_session, encode_session
from detent.core.session.status import Status
from detent.core.workflow.graph import CHUNK
from tests.support.values import opened, session_at, workflow

STATUSES = list(Status)


def large_graph(chance: random.Random):
    """Each phase needs a few of those before it, near or far; more than two stretches of them."""
    keys = [f"p{number:03d}" for number in range(chance.randint(1, 3 * CHUNK))]
    return workflow(
        {
            key: tuple(chance.sample(keys[max(0, at - 9) : at], min(at, chance.randint(0, 2))))
            for at, key in enumerate(keys)
        }
    )


def statuses_of(graph, chance: random.Random):
    """Much is done at the front, little at the back, and some was skipped."""
    front = chance.randint(0, len(graph.order))
    return {
        key: chance.choice((Status.COMPLETED, Status.COMPLETED, Status.SKIPPED, *STATUSES))
        for key in graph.order[:front]
        if chance.random() < 0.9
    }


def settled(graph, statuses):
    found = set()
    for key in graph.order:
        status = statuses.get(key)
        if status is Status.COMPLETED or (status is Status.SKIPPED and found.issuperset(graph.by_key[key].needs)):
            found.add(key)
    return found


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_what_a_session_knows_of_its_phases_is_what_looking_at_each_of_them_tells(chance):
    graph = large_graph(chance)
    statuses = statuses_of(graph, chance)
    session = session_at(statuses, graph=graph)
    plain = {key: statuses.get(key, Status.PENDING) for key in graph.order}
    done = settled(graph, statuses)

    assert session.ready == tuple(
        key for key in graph.order if plain[key] is Status.PENDING and done.issuperset(graph.by_key[key].needs)
    )
    assert {key for key in plain if session.is_settled(key)} == done
    assert session.active_order == tuple(key for key in graph.order if plain[key] is not Status.SKIPPED)
    assert session.unfinished == tuple(key for key in plain if not plain[key].is_settled)
    for some in ((), (Status.COMPLETED,), (Status.PENDING, Status.FAILED), tuple(STATUSES)):
        assert session.with_status(*some) == tuple(key for key in plain if plain[key] in some)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_replacing_some_is_seen_in_the_new_value_and_not_in_the_old_one(chance):
    plain = {f"p{number}": PhaseState(fence=number % 7) for number in range(chance.randint(1, 3 * CHUNK))}
    phases = Phases(plain)
    changes = {
        key: PhaseState(
            status=chance.choice(STATUSES),
            attempt=chance.randint(0, 2),
            fence=chance.randint(0, 9),
            artifacts=(key, "x"),
        )
        for key in chance.sample(list(plain), chance.randint(0, len(plain)))
    }

    after, wanted = phases.updated(changes), {**plain, **changes}

    assert (dict(phases), dict(after)) == (plain, wanted)
    assert (list(after), list(after.values()), len(after)) == (list(wanted), list(wanted.values()), len(wanted))
    assert after == wanted
    assert (after == phases) == (wanted == plain)
    assert (after.digests == phases.digests) == (wanted == plain)
    assert after.digests == Phases(wanted).digests == b"".join(state.digest() for state in wanted.values())
    assert after.artifacts == tuple(dict.fromkeys(path for state in wanted.values() for path in state.artifacts))
    moved = [
        (state.fence, place, key)
        for place, (key, state) in enumerate(wanted.items())
        if state.attempt or state.status is not Status.PENDING
    ]
    assert list(after.latest()) == [key for *_, key in sorted(moved, reverse=True)]


def test_a_phase_that_is_not_there_cannot_be_replaced():
    with pytest.raises(KeyError):
        Phases({"a": PhaseState()}).replaced("b", PhaseState())


def test_most_of_a_large_session_is_shared_with_the_one_before():
    before = Phases({f"p{number}": PhaseState() for number in range(10 * CHUNK)})

    after = before.replaced("p70", PhaseState(attempt=1))

    assert [old is new for old, new in zip(before.chunks, after.chunks, strict=True)] == [True, False] + 8 * [True]


def test_a_large_session_is_the_same_after_a_round_trip_through_json():
    keys = [f"p{number}" for number in range(2 * CHUNK + 1)]
    session = session_at(dict.fromkeys(keys[:70], Status.COMPLETED), graph=workflow(dict.fromkeys(keys, ())))

    again = decode_session(encode_session(session))

    assert again == session
    assert isinstance(again.phases, Phases)
    assert fingerprint(again) == fingerprint(session)


def test_a_change_in_any_stretch_changes_the_fingerprint():
    session = opened(workflow({f"p{number}": () for number in range(3 * CHUNK)}))
    changed = [
        msgspec.structs.replace(session, phases=session.phases.replaced(key, PhaseState(attempt=1)))
        for key in ("p0", "p63", "p64", "p191")
    ]

    assert len({fingerprint(one) for one in (session, *changed)}) == 5


@given(st.lists(st.tuples(st.integers(0, 2 * CHUNK - 1), st.booleans()), max_size=8))
def test_digests_that_are_handed_on_are_those_of_the_states(changes):
    phases = Phases({f"p{number}": PhaseState() for number in range(2 * CHUNK)})
    for attempt, (number, is_asked) in enumerate(changes, 1):
        phases = phases.replaced(f"p{number}", PhaseState(attempt=attempt))
        if is_asked:
            assert phases.digests

    assert phases.digests == Phases(dict(phases.items())).digests
