"""Reads JSON of unknown shape: a value of an unexpected type counts as absent."""

from typing import Any

Document = dict[str, Any]


def mapping(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def mapping_at(value: object, *keys: str) -> Document:
    for key in keys:
        value = mapping(value).get(key)
    return mapping(value)


def sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
