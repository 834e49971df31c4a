"""Values of any type with every field filled, for tests that must not miss a field that is added later."""

import types
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

MOMENT = datetime(2020, 1, 2, tzinfo=UTC)
_PLAIN: dict[Any, Any] = {int: 7, float: 7.5, bool: True, datetime: MOMENT, type(None): None}


def filled(wanted: Any, text: str = "some text") -> Any:
    """A value of the type. Every text in it is `text`; of a union it has the last member that is not None."""
    return variants(wanted, text)[-1]


def variants(wanted: Any, text: str = "some text") -> list[Any]:
    """One value for each member of each union in the type, without None."""
    origin, given = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return variants(given[0], text)
    if origin in (Union, types.UnionType):
        return [value for member in given if member is not type(None) for value in variants(member, text)]
    if origin is tuple:
        return [(value,) for value in variants(given[0], text)]
    if origin in (list, frozenset):
        return [origin([value]) for value in variants(given[0], text)]
    if origin is dict:
        return [{text: value} for value in variants(given[1], text)]
    if wanted in (str, Any):
        return [text]
    if wanted in _PLAIN:
        return [_PLAIN[wanted]]
    if issubclass(wanted, Enum):
        return [list(wanted)[-1]]
    return list(_records(wanted, text))


def _records(wanted: type[msgspec.Struct], text: str) -> Iterator[msgspec.Struct]:
    fields = {field.name: variants(field.type, text) for field in msgspec.structs.fields(wanted)}
    for number in range(max(map(len, fields.values()), default=1)):
        yield wanted(**{name: values[min(number, len(values) - 1)] for name, values in fields.items()})
