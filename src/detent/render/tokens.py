"""Tokens and what they cost, as people say them."""

from detent.core.session.phase_state import Tokens


def tokens_text(tokens: Tokens) -> str:
    """41.2k tokens, $0.83; what is not known is not said."""
    total = tokens.input + tokens.output
    said = [f"{count_text(total)} tokens" if total else "", cost_text(tokens.cost) if tokens.cost else ""]
    return ", ".join(part for part in said if part)


def count_text(count: int) -> str:
    """950, 41.2k, 3.1M."""
    size, units = float(count), ["", "k", "M", "G"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return str(count) if units[0] == "" else f"{size:.1f}{units[0]}" if size < 99.5 else f"{size:.0f}{units[0]}"


def cost_text(cost: float) -> str:
    """Dollars, with as many digits as say something."""
    return f"${cost:.2f}" if cost >= 0.01 else f"${cost:.4f}"
