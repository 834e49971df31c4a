"""Legacy phase keys and their present names."""

# Not from `typing`: the hook path loads this module for every tool call.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

ALIASES: dict[str, str] = {
    "13-test-deploy": "12-test-deploy",
    "14-production": "13-production",
    "15-operations": "14-operations",
    "16-upgrade-plan": "15-upgrade-plan",
    "16-upgrade-execute": "15-upgrade-execute",
}


def normalize_phase_key(key: "T") -> "T":
    """The present name of a legacy key; any other value unchanged."""
    return ALIASES.get(key, key) if isinstance(key, str) else key  # type: ignore[return-value]
