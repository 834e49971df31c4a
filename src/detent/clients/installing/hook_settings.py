"""The hooks in a client's JSON settings: merges them beside other hooks and recognises them by the script they run.

Only tools that can change something have a hook, so that reading files costs nothing. All MCP tools have one: a name
does not tell what the tool does.
"""

import shlex
from typing import Any, NamedTuple, Protocol

from detent.clients.dialect import EXPECTED, TOLD
from detent.clients.installing import json_text
from detent.clients.installing.parts import Outcome
from detent.errors import Invalid

Groups = dict[str, list[dict[str, Any]]]

#: Matchers of an event that has a hook at every occurrence.
EVERY: tuple[str | None, ...] = (None,)
#: The argument of the hook that makes it print a status line.
STATUS_LINE = "statusline"
_TIMEOUT_S = 10
#: The end of the hook's path in every installation. An entry that runs it belongs to Detent.
HOOK_TAIL = "/detent/hooks/fast.py"
MODULE = "--module"

#: By its path, because an agent could put a program named sh on the PATH of its client.
_SHELL = "/bin/sh"
#: Starts the hook if it is there. An interpreter that cannot find its script ends with code 2, which blocks the client.
_LAUNCH = '[ -x "$0" ] && [ -r "$1" ] && exec "$0" -I -S "$@"'
#: The answer where the hook is gone, in the form that every client shows to the person.
_GONE = (
    'printf %s \'{"systemMessage":'
    '"Detent is gone, so this project is not guarded: install it again, or remove its hooks"}\''
)
#: Events at which a message reaches the person once a conversation or prompt, and not once a tool call.
_TOLD_AT = ("SessionStart", "UserPromptSubmit", "BeforeAgent")


class LeftOut(NamedTuple):
    """The hook that a client's launcher may leave out; `hooks/left_out.py` says why and when."""

    #: The matcher of the shell, in a group of its own.
    matcher: str
    #: The variable with the project's directory.
    variable: str
    #: Paths in it that say which hooks the client runs. If one has changed, the next hook may never come.
    settings: tuple[str, ...]

    @property
    def script(self) -> str:
        """Ends the launcher unless a call expects its hook, words wait, or the settings may have changed."""
        return (
            f"p=${self.variable} d=$p/.workflow/{EXPECTED}; "
            'for f in "$d"/*; do [ "$f" = "$d/*" ] || d=; done; '
            f'for f in {" ".join(self.settings)}; do [ ! -e "$p/$f" ] || [ "$p/$f" -ot "$d" ] || d=; done; '
            '[ -n "$p" ] && [ -n "$d" ] && [ -w "$d/." ] && [ -z "$DETENT_SOCKET" ] && '
            f'[ ! -e "$p/.workflow/{TOLD}" ] && exit 0; '
        )


class Starts(Protocol):
    """The command of a hook, for a client and an event. `first` is run by the shell that starts it."""

    def argv(self, argument: str, event: str = "", first: str = "") -> list[str]: ...


class Invocation(NamedTuple):
    """The command that starts the hook: isolated, without site-packages, with the interpreter that runs Detent."""

    python: str
    hook: str
    #: File of the dialect of a client that is no part of Detent.
    module: str = ""

    def argv(self, argument: str, event: str = "", first: str = "") -> list[str]:
        launch = f"{first}{_LAUNCH}; {_GONE if event in _TOLD_AT else 'exit 0'}"
        module = [MODULE, self.module] if self.module else []
        return [_SHELL, "-c", launch, self.python, self.hook, argument, *module]


def own_invocation(handler: object) -> Invocation | None:
    """The invocation in an entry, if the entry belongs to Detent."""
    if not isinstance(handler, dict) or not isinstance(handler.get("command"), str):
        return None
    arguments = handler.get("args")
    try:
        argv = [handler["command"], *arguments] if isinstance(arguments, list) else shlex.split(handler["command"])
    except ValueError:
        return None
    at = next((at for at, word in enumerate(argv) if isinstance(word, str) and word.endswith(HOOK_TAIL)), 0)
    if not at:
        return None
    module = argv[argv.index(MODULE) + 1] if MODULE in argv[:-1] else ""
    return Invocation(argv[at - 1], argv[at], module if isinstance(module, str) else "")


class HookSettings(NamedTuple):
    """The form in which a client's settings hold hooks."""

    #: The argument that names the client to the hook.
    client: str
    path: str
    #: The matchers of each event, one group each; None stands for every occurrence.
    events: dict[str, tuple[str | None, ...]]
    session_end_timeout_s: int
    #: Units of the timeout in a second.
    timeout_units: int = 1
    #: Whether a command may be given as `command` and `args`, without a shell.
    exec_form: bool = False
    #: Additional fields of every handler.
    extra: tuple[tuple[str, str], ...] = ()
    has_status_line: bool = False
    left_out: LeftOut | None = None

    def groups(self, invocation: Starts) -> Groups:
        """The groups of each event as the settings should hold them."""
        return {
            event: [
                ({} if matcher is None else {"matcher": matcher})
                | {"hooks": [self._handler(invocation, event, matcher)]}
                for matcher in matchers
            ]
            for event, matchers in self.events.items()
        }

    def _handler(self, invocation: Starts, event: str, matcher: str | None) -> dict[str, Any]:
        is_after = event in ("PostToolUse", "PostToolUseFailure")
        left_out = self.left_out if is_after and self.left_out and self.left_out.matcher == matcher else None
        argv = invocation.argv(self.client, event, left_out.script if left_out else "")
        timeout_s = self.session_end_timeout_s if event == "SessionEnd" else _TIMEOUT_S
        command: dict[str, Any] = (
            {"command": argv[0], "args": argv[1:]} if self.exec_form else {"command": shlex.join(argv)}
        )
        return {"type": "command", **dict(self.extra), **command, "timeout": timeout_s * self.timeout_units}


def merge(current: bytes | None, *, form: HookSettings, invocation: Invocation) -> Outcome:
    text = _text(current, form.path)
    settings = read(current, form)
    wanted, present = form.groups(invocation), own_groups(settings)
    if "hooks" not in settings:
        text = json_text.insert(text, (), {}, key="hooks")
    for event in {**wanted, **present}:
        if present.get(event, []) == wanted.get(event, []):
            continue
        text = _without_handlers(text, settings, event)
        text = _with_groups(text, settings, event, wanted.get(event, []))
    note = ""
    if form.has_status_line:
        status_line = {"type": "command", "command": shlex.join(invocation.argv(STATUS_LINE))}
        text, note = _with_status_line(text, settings, status_line)
    return Outcome(text.encode(), note)


def strip(current: bytes, original: bytes | None, *, form: HookSettings) -> Outcome:
    """Remove Detent's entries, and the containers that they leave empty unless the original has them."""
    text = _text(current, form.path)
    settings = read(current, form)
    before = _readable(original, form)
    for event in own_groups(settings):
        text = _without_handlers(text, settings, event)
        if not json_text.parse(text, form.path)["hooks"][event] and event not in before.get("hooks", {}):
            text = json_text.remove(text, ("hooks", event))
    if own_invocation(settings.get("statusLine")):
        text = json_text.remove(text, ("statusLine",))
    if text == _text(current, form.path):
        return Outcome(current)
    left = json_text.parse(text, form.path)
    if left.get("hooks") == {} and "hooks" not in before:
        text = json_text.remove(text, ("hooks",))
        del left["hooks"]
    return Outcome(text.encode() if left or original is not None else None)


def read(current: bytes | None, form: HookSettings) -> dict[str, Any]:
    """The settings; refused, with the place, if their shape cannot hold hooks."""
    settings = json_text.parse(_text(current, form.path), form.path)
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise _misshapen(form, "hooks", "an object")
    for event in form.events:
        if not isinstance(hooks.get(event, []), list):
            raise _misshapen(form, f"hooks.{event}", "a list")
    return settings


def own_groups(settings: dict[str, Any]) -> Groups:
    """Detent's entries by event, each group reduced to Detent's handlers."""
    groups_by_event: Groups = {}
    for event, groups in settings.get("hooks", {}).items():
        for group in groups if isinstance(groups, list) else ():
            own = [handler for handler in _handlers(group) if own_invocation(handler)]
            if own:
                groups_by_event.setdefault(event, []).append({**group, "hooks": own})
    return groups_by_event


def _with_groups(text: str, settings: dict[str, Any], event: str, groups: list[dict[str, Any]]) -> str:
    if event not in settings.get("hooks", {}):
        text = json_text.insert(text, ("hooks",), [], key=event)
    for group in groups:
        text = json_text.insert(text, ("hooks", event), group)
    if not json_text.parse(text, "settings")["hooks"][event]:
        text = json_text.remove(text, ("hooks", event))
    return text


def _without_handlers(text: str, settings: dict[str, Any], event: str) -> str:
    """Remove Detent's handlers of an event, from the last to the first, so that positions stay valid."""
    groups = settings.get("hooks", {}).get(event, [])
    for g, group in reversed(list(enumerate(groups))):
        handlers = _handlers(group)
        own = [h for h, handler in enumerate(handlers) if own_invocation(handler)]
        if own and len(own) == len(handlers):
            text = json_text.remove(text, ("hooks", event, g))
        else:
            for h in reversed(own):
                text = json_text.remove(text, ("hooks", event, g, "hooks", h))
    return text


def _with_status_line(text: str, settings: dict[str, Any], wanted: dict[str, Any]) -> tuple[str, str]:
    present = settings.get("statusLine")
    if present == wanted:
        return text, ""
    if present is not None and not own_invocation(present):
        return text, "the status line is already set and was not changed"
    if present is not None:
        text = json_text.remove(text, ("statusLine",))
    elif "statusLine" in settings:
        return text, "the status line is switched off and was not changed"
    return json_text.insert(text, (), wanted, key="statusLine"), ""


def _handlers(group: object) -> list[Any]:
    handlers = group.get("hooks") if isinstance(group, dict) else None
    return handlers if isinstance(handlers, list) else []


def _text(current: bytes | None, name: str) -> str:
    try:
        text = (current or b"").decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"{name} is not UTF-8: {error}", way_out="nothing was changed; save it as UTF-8") from error
    return text if text.strip("\ufeff \t\r\n") else "{}\n"


def _readable(original: bytes | None, form: HookSettings) -> dict[str, Any]:
    try:
        return {} if original is None else read(original, form)
    except Invalid:
        return {}


def _misshapen(form: HookSettings, place: str, wanted: str) -> Invalid:
    return Invalid(f"{place} in {form.path} is not {wanted}", way_out="nothing was changed; correct it first")
