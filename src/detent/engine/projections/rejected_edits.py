"""Keeps text that was not taken over, such as an edit that was not adopted, beside its document."""

from itertools import count

from detent.store.port import Store


def keep_rejected(store: Store, name: str) -> str:
    """Copy the document to `NAME.rejected-N` and return that name. The caller holds PROJECT."""
    return keep_aside(store, name, store.get(name) or b"")


def keep_aside(store: Store, name: str, text: bytes) -> str:
    """Write the text to `NAME.rejected-N` and return that name. The caller holds PROJECT."""
    taken = store.names(f"{name}.rejected-")
    kept = next((other for other in taken if store.get(other) == text), None)
    if kept is None:
        kept = next(free for number in count(1) if (free := f"{name}.rejected-{number}") not in taken)
        store.put(kept, text)
    return kept
