"""Whether a state document asks for a person's look at finished phases, and at which ones."""

from detent.core.session.events import Supervised
from detent.documents.state.shape import mapping, sequence


def supervised(doc: object) -> Supervised | None:
    """None unless it is switched on by a literal true. Entries that name no phases are dropped; none left means all."""
    mode = mapping(mapping(doc).get("supervised_mode"))
    if mode.get("enabled") is not True:
        return None
    return Supervised(phases=tuple(filter(_names_phases, sequence(mode.get("review_phases")))))


def _names_phases(entry: object) -> bool:
    return isinstance(entry, str) and len(entry) == len("01") and entry.isascii() and entry.isdigit()
