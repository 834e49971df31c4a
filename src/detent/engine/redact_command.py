"""Commands as they may be written down: what somebody says is kept for ever, and a secret in it is not."""

from typing import Any

import msgspec

from detent.core.session.commands import Command

#: What people and agents say in their own words, whatever the command.
_SAID = frozenset(
    ("summary", "context", "error", "reason", "note", "text", "answer", "detail", "deliverables", "report")
)


def redact_command(command: Command) -> Command:
    said = {name: getattr(command, name) for name in command.__struct_fields__ if name in _SAID}
    changes = {name: _cleaned(value) for name, value in said.items() if value}
    return msgspec.structs.replace(command, **changes) if changes else command


def _cleaned(value: Any) -> Any:
    from detent.core.redact import redact  # noqa: PLC0415 - slow to load, and many commands say nothing

    if isinstance(value, str):
        return redact(value)
    if isinstance(value, tuple):
        return tuple(_cleaned(one) for one in value)
    return msgspec.structs.replace(
        value,
        summary=redact(value.summary),
        context=redact(value.context),
        deliverables=_cleaned(value.deliverables),
    )
