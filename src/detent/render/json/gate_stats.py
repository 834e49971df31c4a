"""The figures of a gate as JSON, with its rates."""

from typing import Any

import msgspec

from detent.core.history.gate_stats import GateStats


def stats_record(stats: GateStats) -> dict[str, Any]:
    return {**msgspec.to_builtins(stats), "first_try_rate": stats.first_try_rate}
