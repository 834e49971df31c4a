"""Redacts secrets from text, records and documents before they are hashed or written.

A secret is replaced by `[redacted:<kind>]`. `form` recognises secrets by their form, `name` by the name beside them.
Text that only resembles a secret stays, because a journal full of holes is of no use either.
"""

import re
from collections.abc import Iterable, Set
from typing import Any, TypeVar

import msgspec

from detent.core.redact.form import FORMS, KEY_END, headless_keys, is_key_body, is_key_open

#: Documents are flatter than this; a deeper value is replaced as a whole, so that nothing can hide there.
MAX_DEPTH = 100
#: One pass is enough unless replacing a secret uncovers another, which the next pass finds.
MAX_PASSES = 8
_S = TypeVar("_S", bound=msgspec.Struct)
_KEY = "[redacted:private-key]"
_TOO_DEEP = "[redacted:depth]"
#: Most needles hold one of these marks, and most texts hold few of them. The most telling come first.
_MARKS = "_-.:=/KJI38qzxwk"


def _by_mark(*, ignores_case: bool) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """The needles with the place of their form, each with the first of its marks; an empty mark is in every text."""
    by_mark: dict[str, list[tuple[str, int]]] = {}
    for place, form in enumerate(FORMS):
        for needle in form.needles if form.ignores_case is ignores_case else ():
            searched = needle.lower() if ignores_case else needle
            by_mark.setdefault(next((mark for mark in _MARKS if mark in searched), ""), []).append((searched, place))
    return tuple((mark, tuple(needles)) for mark, needles in by_mark.items())


#: Most texts contain none of them, so they are searched first.
_NEEDLES, _LOWERED_NEEDLES = _by_mark(ignores_case=False), _by_mark(ignores_case=True)
_NAME_NEEDLES = ("pass", "secret", "token", "cred", "key", "pw")


def redact(text: str) -> str:
    """`text` without secrets. Redacting again changes nothing."""
    for _ in range(MAX_PASSES):
        redacted = _pass(text)
        if redacted == text:
            break
        text = redacted
    return text


def redact_part(text: str, *, inside_key: bool) -> tuple[str, bool]:
    """The same for a part of a longer text, such as a line.

    `inside_key` says that a private key began in an earlier part. Returned is also whether the next part is inside one.
    """
    if inside_key:
        end = re.search(KEY_END, text)
        if end is not None:
            text = f"{_KEY}{text[end.end() :]}"
        elif is_key_body(text):
            return (_KEY if text.strip() else text), True
    return redact(text), is_key_open(text)


def redact_tree(value: Any) -> Any:
    """A JSON value without secrets; all text of a field whose name means a secret is replaced."""
    return _tree(value, None, MAX_DEPTH)


def redact_fields(record: _S, names: Set[str]) -> _S:
    """A record without secrets in the named fields, and in the fields of these names of the records in them."""
    changes = {}
    for name in record.__struct_fields__:
        if name in names and (value := getattr(record, name)):
            redacted = _value(value, names)
            if redacted is not value:
                changes[name] = redacted
    return msgspec.structs.replace(record, **changes) if changes else record


def _value(value: Any, names: Set[str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, tuple):
        return tuple(_value(each, names) for each in value)
    return redact_fields(value, names) if isinstance(value, msgspec.Struct) else value


def _pass(text: str) -> str:
    lowered = text.lower()
    places = set()
    for searched, by_mark in ((text, _NEEDLES), (lowered, _LOWERED_NEEDLES)):
        for mark, needles in by_mark:
            if mark in searched:
                for needle, place in needles:
                    if needle in searched:
                        places.add(place)
    # In the order of the forms.
    for form in map(FORMS.__getitem__, sorted(places)):
        if form.least > 1 and max(map(text.count, form.needles)) < form.least:
            continue
        text = form.pattern.sub(lambda match, kind=form.kind: _without(match, kind), text)  # type: ignore[misc]
    if "PRIVATE KEY" in text:
        text = _replaced(text, headless_keys(text))
    # A name holds one of these words. Letters beyond ASCII may match one of them too: then look closely.
    if text.isascii() and not _has_name(lowered):
        return text
    from detent.core.redact.name import element_secrets, named_secrets  # noqa: PLC0415 - slow to load, and rarely needed

    for find in (named_secrets, element_secrets):
        text = _replaced(text, find(text))
    return text


def _has_name(lowered: str) -> bool:
    for word in _NAME_NEEDLES:  # noqa: SIM110 - every text comes here, and a generator takes three times as long
        if word in lowered:
            return True
    return False


def _tree(value: Any, kind: str | None, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value, kind)
    if not isinstance(value, dict | list | tuple):
        return value
    if not depth:
        return _TOO_DEEP
    if isinstance(value, dict):
        return _fields(value, depth - 1)
    return [_tree(each, kind, depth - 1) for each in value]


def _fields(value: dict[Any, Any], depth: int) -> dict[Any, Any]:
    from detent.core.redact.name import name_kind  # noqa: PLC0415 - slow to load

    fields: dict[Any, Any] = {}
    for key, each in value.items():
        name = redact(key) if isinstance(key, str) else key
        kind = name_kind(name) if isinstance(name, str) else None
        # Two keys that were secrets must not become one.
        while name in fields:
            name = f"{name}'"
        fields[name] = _tree(each, kind, depth)
    return fields


def _text(value: str, kind: str | None) -> str:
    from detent.core.redact.name import is_count, is_nothing  # noqa: PLC0415 - slow to load

    if kind is None or is_nothing(value) or is_count(kind, value):
        return redact(value)
    return f"[redacted:{kind}]"


def _without(match: re.Match[str], kind: str) -> str:
    from detent.core.redact.name import is_nothing  # noqa: PLC0415 - slow to load

    if is_nothing(match["secret"]):
        return match[0]
    start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
    return f"{match[0][:start]}[redacted:{kind}]{match[0][end:]}"


def _replaced(text: str, secrets: Iterable[tuple[str, int, int]]) -> str:
    parts: list[str] = []
    position = 0
    for kind, start, end in secrets:
        parts += text[position:start], f"[redacted:{kind}]"
        position = end
    return "".join(parts) + text[position:]
