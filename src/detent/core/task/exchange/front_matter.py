"""Parses front matter: the part of YAML that task files use, which is texts, lists and texts of several lines."""

import re

import msgspec

from detent.errors import Invalid

_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(?:[ \t]+(.*))?")
_ENTRY = re.compile(r"[ \t]*-(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"([|>])[+-]?")

Value = str | list[str]


def split_front_matter(text: str) -> tuple[dict[str, Value], str]:
    """The keys between the first two `---` lines, and the text behind them."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        raise Invalid("it does not begin with a line of ---")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise Invalid("the part between --- lines has no end")
    return _keys(lines[1:end]), "\n".join(lines[end + 1 :])


def _keys(lines: list[str]) -> dict[str, Value]:
    keys: dict[str, Value] = {}
    at = 0
    while at < len(lines):
        key = _KEY.fullmatch(lines[at].rstrip())
        at += 1
        if key is None:
            if lines[at - 1].strip() and not lines[at - 1].lstrip().startswith("#"):
                raise Invalid(f"line {at + 1} is not key: value: {lines[at - 1].strip()[:80]!r}")
            continue
        begin = at
        while at < len(lines) and not _KEY.fullmatch(lines[at].rstrip()):
            at += 1
        keys[key[1]] = _value(key[2] or "", lines[begin:at])
    return keys


def _value(first: str, more: list[str]) -> Value:
    first = first.strip()
    if first.startswith("["):
        return _flow_list(" ".join([first, *(line.strip() for line in more)]))
    if not first and any(_ENTRY.fullmatch(line) for line in more):
        return _block_list(more)
    return _text(first, more)


def _text(first: str, more: list[str]) -> str:
    block = _BLOCK.fullmatch(first)
    lines = [line.strip() for line in more if block or not line.lstrip().startswith("#")]
    if block:
        return ("\n" if block[1] == "|" else " ").join(lines).strip()
    return _scalar(" ".join([first, *(line for line in lines if line)]))


def _block_list(lines: list[str]) -> list[str]:
    entries: list[list[str]] = []
    for line in lines:
        if entry := _ENTRY.fullmatch(line):
            entries.append([entry[1] or ""])
        elif entries and line.strip():
            entries[-1].append(line)
    return [_text(first.strip(), more) for first, *more in entries]


def _flow_list(text: str) -> list[str]:
    entries, quote, current = [], "", ""
    for character in text[1:]:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"" and not current.strip():
            quote = character
        elif character in ",]":
            entries.append(current)
            current = ""
            if character == "]":
                break
            continue
        current += character
    else:
        raise Invalid(f"a list has no end: {text[:80]!r}")
    return [_scalar(entry) for entry in entries if entry.strip()]


def _scalar(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return msgspec.json.decode(text, type=str)
        except msgspec.DecodeError:
            return text[1:-1]
    plain = text.partition(" #")[0].rstrip()
    return "" if plain in ("null", "~") else plain
