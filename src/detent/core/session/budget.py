"""Time and tokens against their limits, and against what earlier sessions took."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from detent.core.session.events import Budget, EscalationRaised
from detent.core.session.phase_state import Tokens
from detent.core.session.session import Session

APPROACHING = 0.8
BUDGET_EXCEEDED = "budget_exceeded"
#: Budgets that have a name, for work of a size.
TIERS: dict[str, Budget] = {
    "light": Budget(minutes=30, phase_minutes=10),
    "standard": Budget(minutes=90, phase_minutes=25),
    "epic": Budget(minutes=180, phase_minutes=40),
}
#: What is usual is the mean of the last sessions, of at least two and at most five; a fifth more is still usual.
FEWEST_USUAL, MOST_USUAL = 2, 5
TOLERATED = 1.2


class BudgetStatus(StrEnum):
    ON_TRACK = "on_track"
    APPROACHING = "approaching"
    EXCEEDED = "exceeded"


def budget_status(used: float, limit: float | None) -> BudgetStatus:
    """Approaching above 80 %, exceeded above 100 %; no limit is never reached."""
    if not limit or limit < 0 or used <= APPROACHING * limit:
        return BudgetStatus.ON_TRACK
    return BudgetStatus.APPROACHING if used <= limit else BudgetStatus.EXCEEDED


def spent(
    session: Session, phase: str, now: datetime, more: Tokens = Tokens()
) -> list[tuple[str, float, float | None]]:
    """What was used of what: name, amount, limit. `more` is what the phase used besides what the session knows."""
    budget = session.options.budget or Budget()
    state = session.phases[phase]
    tokens = [more, *(one.tokens for one in session.phases.values())]
    begun = state.started
    return [
        ("minutes", (now - session.started_at).total_seconds() / 60, budget.minutes),
        ("minutes of the phase", (now - begun).total_seconds() / 60 if begun else 0.0, budget.phase_minutes),
        ("tokens", float(sum(one.input + one.output for one in tokens)), budget.tokens),
        (
            "tokens of the phase",
            float(state.tokens.input + state.tokens.output + more.input + more.output),
            budget.phase_tokens,
        ),
        ("cost", sum(one.cost for one in tokens), budget.cost),
    ]


def budget_escalation(
    session: Session, phase: str, now: datetime, more: Tokens = Tokens()
) -> tuple[EscalationRaised, ...]:
    """An escalation for the first limit that was exceeded, once for each phase."""
    asked = any(entry.kind == BUDGET_EXCEEDED and entry.phase == phase for entry in session.escalations)
    if session.options.budget is None or asked or session.phases[phase].budget_accepted:
        return ()
    for name, used, limit in spent(session, phase, now, more):
        if limit is not None and budget_status(used, limit) is BudgetStatus.EXCEEDED:
            detail = f"{used:g} {name} used, and {limit:g} were allowed"
            return (EscalationRaised(kind=BUDGET_EXCEEDED, phase=phase, detail=detail),)
    return ()


def budget_warnings(session: Session, phase: str, now: datetime) -> tuple[str, ...]:
    """What is near its limit or over it, in words."""
    return tuple(
        f"{used:g} of {limit:g} {name} are used"
        for name, used, limit in spent(session, phase, now)
        if limit is not None and budget_status(used, limit) is not BudgetStatus.ON_TRACK
    )


class Usual(msgspec.Struct, frozen=True, kw_only=True):
    """How long sessions of a kind have taken of late."""

    minutes: float
    count: int

    def percent_over(self, minutes: float) -> int:
        return round((minutes / self.minutes - 1) * 100)

    def is_exceeded(self, minutes: float) -> bool:
        return minutes > self.minutes * TOLERATED


def usual(minutes: Sequence[float]) -> Usual | None:
    """Of the last of these durations, oldest first; None while there are too few to compare with."""
    last = minutes[-MOST_USUAL:]
    if len(last) < FEWEST_USUAL or not sum(last) > 0:
        return None
    return Usual(minutes=sum(last) / len(last), count=len(last))
