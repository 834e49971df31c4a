"""A decision about escalations: of all of them, or of those of one phase, which leaves the others open."""

import msgspec
import pytest

from detent.core.gate.evidence import GateState
from detent.core.session.commands import Begin, Escalate, Resolve
from detent.core.session.decide import decide
from detent.core.session.events import (
    EscalationRaised,
    EscalationsResolved,
    Event,
    PhaseSkipped,
    SessionCancelled,
    SessionCompleted,
)
from detent.core.session.evolve import fingerprint, with_state
from detent.core.session.session import SessionStatus
from detent.core.session.status import Status
from detent.errors import Refused
from tests.support.values import after, opened, workflow

PARALLEL = {"a": (), "b": (), "c": ("a", "b")}


def asked():
    """Two phases in progress, about each of which a person has to decide; about the first for two reasons."""
    session = opened(workflow(PARALLEL))
    session = after(session, decide(session, Begin(phase="b")))
    for kind, phase in (("stuck", "a"), ("budget_exceeded", "a"), ("budget_exceeded", "b")):
        session = after(session, decide(session, Escalate(kind=kind, phase=phase, detail=f"{kind} of {phase}")))
    return session


def resolve(action="retry", phase=None, reason=""):
    return decide(asked(), Resolve(action=action, phase=phase, reason=reason))


def open_ones(session):
    return [(one.kind, one.phase) for one in session.escalations]


# What is decided


@pytest.mark.parametrize("phase", [None, "a", "b"])
def test_retrying_says_what_it_was_about(phase):
    assert resolve(phase=phase, reason="it is mended") == (
        EscalationsResolved(action="retry", reason="it is mended", phase=phase),
    )


@pytest.mark.parametrize(("phase", "skipped"), [(None, ["a", "b"]), ("a", ["a"]), ("b", ["b"])])
def test_only_what_was_asked_about_is_left_out(phase, skipped):
    events = resolve("skip", phase)

    assert [event.phase for event in events if isinstance(event, PhaseSkipped)] == skipped
    session = after(asked(), events)
    assert [key for key, state in session.phases.items() if state.status is Status.SKIPPED] == skipped


def test_the_reason_for_leaving_a_phase_out_is_what_was_asked_about_it():
    [skipped] = [event for event in resolve("skip", "b") if isinstance(event, PhaseSkipped)]

    assert skipped.reason == "budget_exceeded of b"


def test_whoever_cancels_cancels_the_session_for_the_reason_of_that_phase():
    [_, cancelled] = resolve("cancel", "b")

    assert cancelled == SessionCancelled(reason="budget_exceeded of b")
    assert after(asked(), (cancelled,)).status is SessionStatus.CANCELLED


@pytest.mark.parametrize("phase", ["c", "nowhere"])
@pytest.mark.parametrize("action", ["retry", "skip", "cancel"])
def test_of_a_phase_about_which_nothing_was_asked_nothing_is_decided(action, phase):
    with pytest.raises(Refused, match="nothing waits for a decision"):
        resolve(action, phase)


def test_the_last_phase_that_is_left_out_completes_the_session():
    session = opened(workflow({"a": ()}))
    session = after(session, decide(session, Escalate(kind="stuck", phase="a", detail="stuck")))

    events = decide(session, Resolve(action="skip", phase="a"))

    assert isinstance(events[-1], SessionCompleted)


# What follows


@pytest.mark.parametrize(
    ("phase", "left"),
    [(None, []), ("a", [("budget_exceeded", "b")]), ("b", [("stuck", "a"), ("budget_exceeded", "a")])],
)
def test_what_was_not_decided_stays_open(phase, left):
    assert open_ones(after(asked(), resolve(phase=phase))) == left


@pytest.mark.parametrize(("phase", "accepted"), [(None, {"a", "b"}), ("a", {"a"}), ("b", {"b"})])
def test_only_the_budget_that_was_asked_about_may_be_exceeded(phase, accepted):
    session = after(asked(), resolve(phase=phase))

    assert {key for key, state in session.phases.items() if state.budget_accepted} == accepted


@pytest.mark.parametrize(("phase", "counted"), [(None, [0, 0]), ("a", [0, 4]), ("b", [4, 0])])
def test_the_counting_starts_anew_only_at_the_gates_that_were_asked_about(phase, counted):
    session = opened(workflow(PARALLEL))
    for key in ("a", "b"):
        session = with_state(session, key, gates={"tests": GateState(iterations=4)})
        session = after(session, (EscalationRaised(kind="max_iterations", phase=key, gate="tests", detail="4 runs"),))

    resolved = after(session, (EscalationsResolved(action="retry", phase=phase),))

    assert [resolved.phases[key].gates["tests"].iterations for key in ("a", "b")] == counted


def test_a_decision_of_a_journal_that_knew_no_phase_is_about_all_of_them():
    event = msgspec.json.decode(b'{"type": "escalations_resolved", "action": "retry"}', type=Event)

    assert event == EscalationsResolved(action="retry")
    assert open_ones(after(asked(), (event,))) == []
    assert b"phase" not in msgspec.json.encode(event)


def test_a_decision_about_all_has_the_hash_that_it_always_had():
    """Both ways to say it are one event: journals from before and from now agree on the state."""
    old = msgspec.json.decode(b'{"type": "escalations_resolved", "action": "retry", "reason": ""}', type=Event)

    assert fingerprint(after(asked(), (old,))) == fingerprint(after(asked(), resolve()))
    assert fingerprint(after(asked(), resolve(phase="a"))) != fingerprint(after(asked(), resolve()))
