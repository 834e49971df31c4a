"""Publishes documents without overwriting an edit made by hand.

A ledger beside the documents holds the digests of what Detent wrote. It is written first, with the digest before and
after, so a crash between the two leaves a document that the ledger knows. Any other content is an edit.
"""

import os
from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec

from detent.documents import STATE_DOCUMENT
from detent.sha256 import sha256
from detent.store.port import Store

LEDGER = ".documents.json"
#: Errors of decoding bytes that are not JSON, not UTF-8, or nested too deeply.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decode = msgspec.json.Decoder(dict[str, tuple[str, ...]]).decode


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:32]


def encode(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def decoded(data: bytes | None) -> Any:
    """The JSON value; None without data, and for data that is not JSON."""
    try:
        return msgspec.json.decode(data) if data is not None else None
    except UNREADABLE:
        return None


def shown_session(store: Store) -> str | None:
    """The session that the state document shows; None if it shows none, or cannot be read."""
    document = decoded(store.get(STATE_DOCUMENT))
    flow = document.get("active_workflow") if isinstance(document, dict) else None
    name = flow.get("session_id") if isinstance(flow, dict) else None
    return name if isinstance(name, str) else None


def publish(store: Store, documents: Mapping[str, bytes], *, overwrite: bool = False) -> list[str]:
    """Write changed documents; returns those edited by hand, which are left alone. The caller holds PROJECT."""
    edited: list[str] = []
    for directory, names in _by_directory(documents).items():
        ledger_name = os.path.join(directory, LEDGER)
        ledger = read_ledger(store, ledger_name)
        behind: dict[str, bytes] = {}
        unknown: dict[str, tuple[str, ...]] = {}
        for name in names:
            current, wanted = store.get(name), documents[name]
            known = ledger.get(name, ())
            if current == wanted:
                if digest(wanted) not in known:
                    unknown[name] = (digest(wanted),)
            elif current is not None and digest(current) not in known and not overwrite:
                edited.append(name)
            else:
                behind[name] = wanted
                # Only digests of what Detent wrote: the same edit made again must count as an edit again.
                before = (digest(current),) if current is not None and digest(current) in known else ()
                ledger[name] = (*before, digest(wanted))
        if behind or unknown:
            store.put(ledger_name, msgspec.json.encode(ledger | unknown))
            for name, data in behind.items():
                store.put(name, data)
    return edited


def publish_views(store: Store, views: Mapping[str, bytes]) -> list[str]:
    """Write generated views; an edited view is kept as `.bak` and overwritten."""
    edited = publish(store, views)
    for name in edited:
        text = store.get(name) or b""
        for number in count(1):
            kept = f"{name}.bak" if number == 1 else f"{name}.bak-{number}"
            if store.get(kept) in (None, text):
                store.put(kept, text)
                break
    publish(store, {name: views[name] for name in edited}, overwrite=True)
    return edited


def witness(store: Store, name: str) -> None:
    """Record the digest of a file, so that drift detection sees a change. The caller holds PROJECT."""
    data = store.get(name)
    ledger = read_ledger(store, LEDGER)
    wanted = () if data is None else (digest(data),)
    if ledger.get(name, ()) != wanted:
        store.put(LEDGER, msgspec.json.encode(ledger | {name: wanted}))


def edited_documents(store: Store, names: list[str]) -> list[str]:
    """The documents of `names` that were edited by hand."""
    edited = []
    for directory, grouped in _by_directory(names).items():
        ledger = read_ledger(store, os.path.join(directory, LEDGER))
        for name in grouped:
            current = store.get(name)
            if current is not None and digest(current) not in ledger.get(name, ()):
                edited.append(name)
    return edited


def read_ledger(store: Store, name: str) -> dict[str, tuple[str, ...]]:
    data = store.get(name)
    if data is None:
        return {}
    try:
        return _decode(data)
    except UNREADABLE:
        # Without a ledger every document counts as edited, so nothing is lost.
        return {}


def _by_directory(names: Mapping[str, bytes] | list[str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name in names:
        grouped.setdefault(os.path.dirname(name), []).append(name)
    return grouped
