"""Values of any type with every field filled, for tests that must not miss a field that is added later."""

import types
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

MOMENT = datetime(2020, 1, 2, tzinfo=UTC)
_PLAIN: dict[Any, Any] = {int: 7, float: 7.5, bool: True, datetime: MOMENT, type(None): None}
_NOTHING: dict[str, Any] = {}


def filled(wanted: Any, text: str = "some text", instead: Mapping[str, Any] = _NOTHING) -> Any:
    """A value of the type. Every text in it is `text`; of a union it has the last member that is not None."""
    return variants(wanted, text, instead)[-1]


def variants(wanted: Any, text: str = "some text", instead: Mapping[str, Any] = _NOTHING) -> list[Any]:
    """One value for each member of each union in the type, without None. `instead` gives fields by their names."""
    origin, given = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return variants(given[0], text, instead)
    if origin in (Union, types.UnionType):
        return [value for member in given if member is not type(None) for value in variants(member, text, instead)]
    if origin is Literal:
        return [given[-1]]
    if origin is tuple:
        return [(value,) for value in variants(given[0], text, instead)]
    if origin in (list, frozenset):
        return [origin([value]) for value in variants(given[0], text, instead)]
    if origin is dict:
        return [{text: value} for value in variants(given[1], text, instead)]
    if wanted in (str, Any):
        return [text]
    if wanted in _PLAIN:
        return [_PLAIN[wanted]]
    if issubclass(wanted, Enum):
        return [list(wanted)[-1]]
    return list(_records(wanted, text, instead))


def _records(wanted: Any, text: str, instead: Mapping[str, Any]) -> Iterator[Any]:
    hints = get_type_hints(wanted, include_extras=True)
    fields = {
        name: [instead[name]] if name in instead else variants(hints[name], text, instead)
        for name in field_names(wanted)
    }
    for number in range(max(map(len, fields.values()), default=1)):
        yield wanted(**{name: values[min(number, len(values) - 1)] for name, values in fields.items()})


def texts(value: Any, owner: str = "") -> Iterator[tuple[str, str]]:
    """Every text in the value, after the field that holds it, as in `Receipt.tail`."""
    names = field_names(value)
    if isinstance(value, str):
        yield owner, value
    elif names:
        for name in names:
            yield from texts(getattr(value, name), f"{type(value).__name__}.{name}")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from texts(key, owner)
            yield from texts(each, owner)
    elif isinstance(value, tuple | list | frozenset):
        for each in value:
            yield from texts(each, owner)


def field_names(record: Any) -> tuple[str, ...]:
    """The fields of a struct or of a named tuple."""
    names: tuple[str, ...] = getattr(record, "__struct_fields__", ()) or getattr(record, "_fields", ())
    return names
