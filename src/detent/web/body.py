"""The fields of a posted object, each of the type that is asked for."""

from typing import Any

from detent.errors import Invalid

#: Characters of one text, and entries of one list.
MAX_TEXT, MAX_ENTRIES = 64 * 1024, 1_000


class Body:
    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        """A text; empty if it is not given."""
        value = self._fields.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise Invalid(f"{name} must be a text")
        if len(value) > MAX_TEXT:
            raise Invalid(f"{name} may have {MAX_TEXT} characters and has {len(value)}")
        return value

    def word(self, name: str) -> str:
        """A text that must be there."""
        value = self.text(name).strip()
        if not value:
            raise Invalid(f"{name} is needed")
        return value

    def flag(self, name: str) -> bool:
        value = self._fields.get(name)
        if not isinstance(value, bool | None):
            raise Invalid(f"{name} must be true or false")
        return bool(value)

    def number(self, name: str) -> int | None:
        value = self._fields.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise Invalid(f"{name} must be a whole number")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._fields.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise Invalid(f"{name} must be a list of texts")
        if len(value) > MAX_ENTRIES:
            raise Invalid(f"{name} may have {MAX_ENTRIES} entries and has {len(value)}")
        return tuple(value)

    def table(self, name: str) -> dict[str, Any]:
        value = self._fields.get(name)
        if value is not None and not isinstance(value, dict):
            raise Invalid(f"{name} must be an object")
        return value or {}
