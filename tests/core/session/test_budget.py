"""Budgets by name, and what is usual."""

import pytest
from msgspec.structs import replace

from detent.config.settings import parse_settings
from detent.core.session.budget import TIERS, budget_status, cost_left, usual
from detent.core.session.events import Budget, Options
from detent.core.session.phase_state import Tokens
from detent.core.session.phases import Phases
from detent.errors import Invalid
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.history import history_text
from tests.support.values import session_at


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_stands_for_its_limits(tier):
    assert parse_settings(f'budget = "{tier}"', "detent.toml").options().budget == TIERS[tier]


def test_limits_can_be_given_one_by_one():
    assert parse_settings("[budget]\nminutes = 5", "detent.toml").options().budget == Budget(minutes=5)


@pytest.mark.parametrize("limit", ["minutes", "phase_minutes", "tokens", "phase_tokens", "cost"])
@pytest.mark.parametrize("value", [-1, 0])
def test_a_limit_that_is_not_above_0_is_refused(limit, value):
    with pytest.raises(Invalid, match=r"detent.toml, line 2: Expected .* >.*budget"):
        parse_settings(f"[budget]\n{limit} = {value}", "detent.toml")


def test_an_unknown_tier_is_refused():
    with pytest.raises(Invalid):
        parse_settings('budget = "huge"', "detent.toml")


@pytest.mark.parametrize(
    ("used", "status"),
    [(0, "on_track"), (80, "on_track"), (81, "approaching"), (100, "approaching"), (101, "exceeded")],
)
def test_near_a_limit_is_not_over_it(used, status):
    assert budget_status(used, 100) == status


@pytest.mark.parametrize(
    ("budget", "accepted", "left"),
    [
        (None, False, None),
        (Budget(tokens=5), False, None),
        (Budget(cost=1.0), False, 0.25),
        (Budget(cost=0.5), False, 0.0),
        (Budget(cost=1.0), True, None),
    ],
)
def test_the_cost_that_is_left_is_of_all_phases(budget, accepted, left):
    session = session_at()
    phases = {key: replace(state, tokens=Tokens(cost=0.25)) for key, state in session.phases.items()}
    phases["b"] = replace(phases["b"], budget_accepted=accepted)
    session = replace(session, phases=Phases(phases), options=Options(budget=budget))

    assert cost_left(session, "b") == left


@pytest.mark.parametrize("minutes", [[], [10], [0, 0]])
def test_nothing_is_usual_without_enough_to_compare_with(minutes):
    assert usual(minutes) is None


def test_only_the_last_five_are_usual():
    assert usual([1000, 10, 20, 30, 40, 50]).minutes == 30


def entry(minutes, **fields):
    return {"type": "fix", "status": "completed", "metrics": {"total_duration_minutes": minutes}, **fields}


@pytest.mark.parametrize(
    ("earlier", "says"),
    [
        ([entry(10), entry(10)], "50 % longer than the 2 before"),
        ([entry(13), entry(13)], ""),
        ([entry(10)], ""),
        ([entry(10), entry(10, type="feature")], ""),
        ([entry(10), entry(10, status="cancelled")], ""),
        ([entry(10), entry(None)], ""),
    ],
)
def test_the_history_tells_what_took_longer_than_usual(earlier, says):
    text = history_text([*earlier, entry(15)], left_out=len(earlier), canvas=Canvas())

    assert (says in text) if says else ("longer" not in text)
