"""The dry run of a policy as JSON."""

from typing import Any

import msgspec

from detent.core.history.dry_run import Outcome, TrialResult, by_gate


def trials_record(result: TrialResult, *, every: bool = False) -> dict[str, Any]:
    """`every`: also the steps that are as they were recorded."""
    return {
        "sessions": {"total": len(result.trials), **{outcome: result.count(outcome) for outcome in Outcome}},
        "gates": msgspec.to_builtins(by_gate(result.trials)),
        "trials": [
            {
                **msgspec.to_builtins(msgspec.structs.replace(trial, steps=())),
                "outcome": trial.outcome,
                "steps": msgspec.to_builtins(trial.steps if every else trial.differing),
            }
            for trial in result.trials
        ],
        "unreadable": result.unreadable,
    }
