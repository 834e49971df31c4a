"""Estimates the remaining time of a session from the durations of its phases in earlier sessions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from detent.core.session.budget import FEWEST_USUAL, MOST_USUAL
from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session
from detent.core.session.status import Status


def usual_minutes(history: Sequence[Mapping[str, Any]], workflow: str) -> dict[str, float]:
    """Phase key to its usual minutes; only phases with enough earlier runs.

    `history` has an entry for each session that ended, oldest first.
    """
    taken: dict[str, list[float]] = {}
    for entry in history:
        if entry.get("type") == workflow and entry.get("status") == "completed":
            for key, minutes in _durations(entry):
                taken.setdefault(key, []).append(minutes)
    last = {key: minutes[-MOST_USUAL:] for key, minutes in taken.items() if len(minutes) >= FEWEST_USUAL}
    return {key: sum(minutes) / len(minutes) for key, minutes in last.items()}


def minutes_left(session: Session, usual: Mapping[str, float], now: datetime, parallel: int = 1) -> float | None:
    """The remaining minutes; None if the usual duration of an open phase is unknown, or no time remains."""
    open_phases = [key for key in session.active_order if session.phases[key].status is not Status.COMPLETED]
    if session.has_ended or not all(key in usual for key in open_phases):
        return None
    left = {key: _left(session.phases[key], usual[key], now) for key in open_phases}
    longest: dict[str, float] = {}
    for key in session.workflow.order:
        before = max((longest[need] for need in session.workflow.by_key[key].needs), default=0.0)
        longest[key] = before + left.get(key, 0.0)
    return max(*longest.values(), sum(left.values()) / max(parallel, 1)) or None


def _left(state: PhaseState, usual: float, now: datetime) -> float:
    spent = (now - state.begun).total_seconds() / 60 if state.status is Status.IN_PROGRESS and state.begun else 0.0
    return max(usual - spent, 0.0)


def _durations(entry: Mapping[str, Any]) -> list[tuple[str, float]]:
    snapshots = entry.get("phase_snapshots")
    return [
        (str(snapshot.get("key")), float(snapshot["duration_minutes"]))
        for snapshot in (snapshots if isinstance(snapshots, list) else ())
        if isinstance(snapshot, dict) and snapshot.get("status") == "completed"
        if isinstance(snapshot.get("duration_minutes"), int | float)
    ]
