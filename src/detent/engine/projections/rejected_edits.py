"""Keeps the text of an edit that was not adopted, beside the document."""

from itertools import count

from detent.store.port import Store


def keep_rejected(store: Store, name: str) -> str:
    """Copy the document to `NAME.rejected-N` and return that name. The caller holds PROJECT."""
    text = store.get(name) or b""
    taken = store.names(f"{name}.rejected-")
    kept = next((other for other in taken if store.get(other) == text), None)
    if kept is None:
        kept = next(free for number in count(1) if (free := f"{name}.rejected-{number}") not in taken)
        store.put(kept, text)
    return kept
