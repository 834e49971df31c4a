"""Names a phase of a workflow for people: its title before the key that they type."""

from detent.core.workflow.graph import Phase


def own_title(phase: Phase) -> str:
    """The title, or nothing if it is the key in other letters."""
    return "" if _letters(phase.title) == _letters(phase.key) else phase.title


def titled(phase: Phase) -> str:
    """`Architecture (03-architecture)`, or the key alone."""
    return f"{title} ({phase.key})" if (title := own_title(phase)) else phase.key


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
