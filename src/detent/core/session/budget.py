"""Budgets: time, tokens and cost against their limits, and durations against those of earlier sessions."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from detent.core.session.escalation import BUDGET_EXCEEDED
from detent.core.session.events import Budget, EscalationRaised
from detent.core.session.phase_state import Tokens
from detent.core.session.session import Session

APPROACHING = 0.8
#: The name of the budget that is money.
COST = "cost"
#: Named budgets.
TIERS: dict[str, Budget] = {
    "light": Budget(minutes=30, phase_minutes=10),
    "standard": Budget(minutes=90, phase_minutes=25),
    "epic": Budget(minutes=180, phase_minutes=40),
}
#: The usual duration is the mean of the last sessions: of at least two, at most five. A fifth more is tolerated.
FEWEST_USUAL, MOST_USUAL = 2, 5
TOLERATED = 1.2


class BudgetStatus(StrEnum):
    ON_TRACK = "on_track"
    APPROACHING = "approaching"
    EXCEEDED = "exceeded"


def budget_status(used: float, limit: float | None) -> BudgetStatus:
    """Approaching above 80 %, exceeded above 100 %; on track without a limit."""
    if not limit or limit < 0 or used <= APPROACHING * limit:
        return BudgetStatus.ON_TRACK
    return BudgetStatus.APPROACHING if used <= limit else BudgetStatus.EXCEEDED


def spent(
    session: Session, phase: str, now: datetime, more: Tokens = Tokens()
) -> list[tuple[str, float, float | None]]:
    """Name, amount and limit of each budget. `more` are tokens of the phase that the session has not recorded yet."""
    budget = session.options.budget or Budget()
    state = session.phases[phase]
    tokens = sum((phase_state.tokens for phase_state in session.phases.values()), more)
    own, begun = state.tokens + more, state.started
    return [
        ("minutes", (now - session.started_at).total_seconds() / 60, budget.minutes),
        ("minutes of the phase", (now - begun).total_seconds() / 60 if begun else 0.0, budget.phase_minutes),
        ("tokens", float(tokens.input + tokens.output), budget.tokens),
        ("tokens of the phase", float(own.input + own.output), budget.phase_tokens),
        (COST, tokens.cost, budget.cost),
    ]


def cost_left(session: Session, phase: str) -> float | None:
    """The cost that the budget still allows; None without such a budget, or if a person accepted more."""
    limit = session.options.budget.cost if session.options.budget is not None else None
    if limit is None or session.phases[phase].budget_accepted:
        return None
    return max(0.0, limit - sum(state.tokens.cost for state in session.phases.values()))


def budget_escalation(
    session: Session, phase: str, now: datetime, more: Tokens = Tokens()
) -> tuple[EscalationRaised, ...]:
    """An escalation for the first exceeded limit, at most one for each phase."""
    asked = any(entry.kind == BUDGET_EXCEEDED and entry.phase == phase for entry in session.escalations)
    if session.options.budget is None or asked or session.phases[phase].budget_accepted:
        return ()
    for name, used, limit in spent(session, phase, now, more):
        if limit is not None and budget_status(used, limit) is BudgetStatus.EXCEEDED:
            detail = f"{used:g} {name} used, and {limit:g} were allowed"
            if name == COST:
                detail = f"the cost is {used:g}, and {limit:g} was allowed"
            return (EscalationRaised(kind=BUDGET_EXCEEDED, phase=phase, detail=detail),)
    return ()


def budget_warnings(session: Session, phase: str, now: datetime) -> tuple[str, ...]:
    """A sentence for each budget that is near its limit or over it."""
    if session.options.budget is None:
        return ()
    return tuple(
        f"the cost is {used:g} of {limit:g}" if name == COST else f"{used:g} of {limit:g} {name} are used"
        for name, used, limit in spent(session, phase, now)
        if limit is not None and budget_status(used, limit) is not BudgetStatus.ON_TRACK
    )


class Usual(msgspec.Struct, frozen=True, kw_only=True):
    """The usual duration of sessions of a workflow."""

    minutes: float
    count: int

    def percent_over(self, minutes: float) -> int:
        return round((minutes / self.minutes - 1) * 100)

    def is_exceeded(self, minutes: float) -> bool:
        return minutes > self.minutes * TOLERATED


def usual(minutes: Sequence[float]) -> Usual | None:
    """The usual duration after these durations, oldest first; None if there are too few."""
    last = minutes[-MOST_USUAL:]
    if len(last) < FEWEST_USUAL or not sum(last) > 0:
        return None
    return Usual(minutes=sum(last) / len(last), count=len(last))
