"""Tokens and their cost, for people."""

from detent.core.session.phase_state import Tokens


def tokens_text(tokens: Tokens) -> str:
    """41.2k tokens, $0.83; without unknown parts."""
    total = tokens.input + tokens.output
    parts = [f"{count_text(total)} tokens" if total else "", cost_text(tokens.cost) if tokens.cost else ""]
    return ", ".join(filter(None, parts))


def count_text(count: int) -> str:
    """950, 41.2k, 3.1M."""
    size, units = float(count), ["", "k", "M", "G"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return str(count) if units[0] == "" else f"{size:.1f}{units[0]}" if size < 99.5 else f"{size:.0f}{units[0]}"


def cost_text(cost: float) -> str:
    """Dollars, with more digits for small amounts."""
    return f"${cost:.2f}" if cost >= 0.01 else f"${cost:.4f}"
