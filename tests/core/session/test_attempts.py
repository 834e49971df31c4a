"""The attempts of a session, collected from its journal."""

from datetime import timedelta

import pytest

from detent.core.gate.evidence import Receipt, Result
from detent.core.session.attempts import attempts
from detent.core.session.events import (
    AgentLaunched,
    Event,
    GateChecked,
    PhaseBegun,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    PhaseReset,
    PhaseSkipped,
    SessionCancelled,
)
from detent.core.session.phase_state import Tokens
from tests.support.values import NOON, commit

BEGUN = PhaseBegun(phase="a", attempt=1, agent="dev")


def journal(*events: Event):
    """One commit a minute, with one event each."""
    return [commit(at + 1, event, at=NOON + timedelta(minutes=at)) for at, event in enumerate(events)]


@pytest.mark.parametrize(
    ("event", "how", "error"),
    [
        (PhaseFinished(phase="a", attempt=1, summary="done"), "completed", ""),
        (PhaseFailed(phase="a", attempt=1, error="broke"), "failed", "broke"),
        (PhaseSkipped(phase="a", reason="no"), "skipped", ""),
        (PhaseReset(phase="a", reason="again"), "reset", ""),
        (SessionCancelled(reason="enough"), "left", ""),
    ],
)
def test_every_end_of_an_attempt_has_a_word(event, how, error):
    [attempt] = attempts(journal(BEGUN, event))

    assert (attempt.phase, attempt.attempt, attempt.how, attempt.error) == ("a", 1, how, error)
    assert attempt.minutes(NOON + timedelta(days=1)) == 1


def test_an_attempt_in_progress_has_no_end():
    [attempt] = attempts(journal(BEGUN))

    assert attempt.ended is None
    assert attempt.minutes(NOON + timedelta(minutes=30)) == 30


def test_a_redone_phase_has_two_attempts_in_their_order():
    first, second = attempts(
        journal(
            BEGUN,
            PhaseRedone(phase="a", attempt=2, agent="other", reason="again"),
            PhaseFinished(phase="a", attempt=2, summary="done", tokens=Tokens(input=3)),
        )
    )

    assert (first.attempt, first.how, first.tokens) == (1, "redone", Tokens())
    assert (second.attempt, second.how, second.tokens, second.agents) == (2, "completed", Tokens(input=3), ("other",))


def test_an_attempt_has_its_agents_once_and_the_checks_that_did_not_pass():
    failed, passed = Receipt(result=Result.FAILED, error="broke"), Receipt(result=Result.PASSED)
    [attempt] = attempts(
        journal(
            BEGUN,
            AgentLaunched(phase="a", agent="qa", agent_id="1"),
            AgentLaunched(phase="a", agent="dev", agent_id="2"),
            AgentLaunched(phase="elsewhere", agent="nobody", agent_id="3"),
            GateChecked(phase="a", gate="tests", receipt=failed),
            GateChecked(phase="a", gate="tests", receipt=passed),
        )
    )

    assert attempt.agents == ("dev", "qa")
    assert [(check.gate, check.receipt, check.at) for check in attempt.closed] == [
        ("tests", failed, NOON + timedelta(minutes=4))
    ]
