"""Expands references in a command: each value goes into an environment variable that replaces the reference.

The shell expands a quoted variable to exactly its value and does not parse it again. The expansion is fitted to the
quotes around the reference, so no part of a value ever becomes part of the command's text.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from detent.core.flow.reference import Reference, find
from detent.core.flow.scope import Missing, Scope, SessionFacts, is_in_file_list, joined_text, plain
from detent.core.flow.site import Place, Site, Unsure
from detent.core.flow.sites import track
from detent.errors import Refused

#: Linux allows 128 KiB for one variable with its name, macOS 1 MiB for the whole environment.
MAX_VALUE_BYTES = 96 * 1024
MAX_TOTAL_BYTES = 640 * 1024
MAX_COMMAND_BYTES = 96 * 1024
_PREFIX = "DETENT_V"


class Expanded(msgspec.Struct, frozen=True, kw_only=True):
    """The command for bash, and the variables that it needs. `truncated` names the values that were cut."""

    command: str
    env: dict[str, str] = {}
    truncated: tuple[str, ...] = ()


def expand(command: str, scope: Scope) -> Expanded:
    """The command, without its `bash(…)`, ready to run; `Refused` if the place of a reference is not certain."""
    _check_bytes("the command", command, limit=MAX_COMMAND_BYTES)
    matches = list(find(command, scope.declared))
    if not matches:
        return Expanded(command=command)
    try:
        sites = track(command, scope.declared)
    except Unsure as unsure:
        first = matches[0].reference
        way_out = "write the command more simply, or put it in a script and give it the value as an argument"
        raise _refusal(first.name, unsure.position, unsure.why, way_out=way_out) from unsure
    for site in sites:
        if site.why:
            raise _refusal(site.name, site.start, site.why)
    return _Expansion(command, scope).expanded(sites)


def task_environment(document: Mapping[str, Any], session: SessionFacts) -> dict[str, str]:
    """Properties of the task as variables, for commands such as `for dep in ${depends_on}`."""
    context = document.get("context")
    context = context if isinstance(context, Mapping) else {}
    values = {
        "depends_on": _words(context.get("depends_on")),
        "focus_paths": _words(context.get("focus_paths")),
        "parent": plain(context.get("parent")),
        "task_id": plain(document.get("id")),
        "session_id": session.id,
        "session_dir": session.dir,
    }
    for name, value in values.items():
        _check_bytes(name, value, limit=MAX_VALUE_BYTES)
    return values


def _words(value: Any) -> str:
    return " ".join(plain(item) for item in value) if isinstance(value, list) else plain(value)


class _Expansion:
    """Collects the variables of one command."""

    def __init__(self, command: str, scope: Scope) -> None:
        self.command, self.scope = command, scope
        self.env: dict[str, str] = {}
        self.truncated: dict[str, None] = {}
        self.names: dict[str, str] = {}
        self.total = 0
        self.prefix = _PREFIX
        while self.prefix in command:
            self.prefix += "_"

    def expanded(self, sites: tuple[Site, ...]) -> Expanded:
        parts: list[str] = []
        at = 0
        for site in sites:
            parts.append(self.command[at : site.start])
            at = site.end
            if site.is_reference:
                parts.append(self._fitted(site))
        text = "".join([*parts, self.command[at:]])
        _check_bytes("the command with its values", text, limit=MAX_COMMAND_BYTES)
        return Expanded(command=text, env=self.env, truncated=tuple(self.truncated))

    def _fitted(self, site: Site) -> str:
        reference = Reference(name=site.name, start=site.start, end=site.end)
        value = self.scope.lookup(reference)
        if isinstance(value, Missing):
            raise _refusal(site.name, site.start, f"it has no value: {value.why}")
        is_file_list = is_in_file_list(self.command, reference)
        if isinstance(value, list) and not is_file_list:
            if site.place is Place.WORD:
                return " ".join(f'"${{{self._variable(site, plain(item))}}}"' for item in value)
            if site.place is Place.BARE and len(value) > 1:
                why = f"a list of {len(value)} cannot be part of one word; put it in quotes, or let it stand alone"
                raise _refusal(site.name, site.start, why)
            if site.place is Place.BARE:
                value = plain(value[0]) if value else ""
        variable = f"${{{self._variable(site, joined_text(value, ',' if is_file_list else None))}}}"
        match site.place:
            case Place.DOUBLE:
                return variable
            case Place.SINGLE:
                return f"'\"{variable}\"'"
            case Place.ANSI:
                return f"'\"{variable}\"$'"
            case Place.WORD | Place.BARE | Place.ASSIGNED | Place.ESCAPE:
                return f'"{variable}"'

    def _variable(self, site: Site, value: str) -> str:
        """The name of the variable with this value; equal values share a variable."""
        value = self._cut(site, value)
        if value not in self.names:
            name = self.names[value] = f"{self.prefix}{len(self.names)}"
            self.env[name] = value
            self.total += len(name) + _size(value) + 10
            if self.total > MAX_TOTAL_BYTES:
                why = f"with it the values of this command have more than {MAX_TOTAL_BYTES} bytes"
                raise _refusal(site.name, site.start, why, way_out="give the command files: [name.file]")
        return self.names[value]

    def _cut(self, site: Site, value: str) -> str:
        try:
            _check_bytes("the value", value)
        except Refused as refused:
            raise _refusal(site.name, site.start, refused.message) from refused
        size = _size(value)
        if size <= MAX_VALUE_BYTES:
            return value
        self.truncated[site.name] = None
        where = self.scope.files.get(site.name)
        rest = f", all of them are in {where}" if where else ""
        mark = f"\n[… cut by detent: this is the beginning of {size} bytes{rest}]"
        room = MAX_VALUE_BYTES - _size(mark)
        encoded = value.encode("utf-8", "surrogateescape")
        stop = next((room - back for back in range(4) if encoded[room - back] & 0xC0 != 0x80), room)
        return encoded[:stop].decode("utf-8", "surrogateescape") + mark


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _check_bytes(what: str, text: str, *, limit: int | None = None) -> None:
    if "\0" in text:
        raise Refused(f"{what} holds a NUL byte at character {text.index(chr(0)) + 1}, which no command can be given")
    try:
        size = _size(text)
    except UnicodeEncodeError as error:
        raise Refused(f"{what} holds half a character at {error.start + 1}, which no command can be given") from error
    if limit is not None and size > limit:
        raise Refused(f"{what} has {size} bytes and may have {limit}")


def _refusal(name: str, position: int, why: str, *, way_out: str | None = None) -> Refused:
    return Refused(f"[{name}] cannot be put into the command at character {position + 1}: {why}", way_out=way_out)
