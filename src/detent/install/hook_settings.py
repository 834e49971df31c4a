"""The hooks in a client's JSON settings: put in beside those of others, found again by the script that they run."""

from typing import Any

from detent.errors import Invalid
from detent.install import json_text
from detent.install.clients import CLAUDE_CODE, Client, Invocation, own_invocation, status_line, wanted_groups
from detent.install.part import Outcome

Groups = dict[str, list[dict[str, Any]]]


def merge(current: bytes | None, *, client: Client, invocation: Invocation) -> Outcome:
    text = _text(current, client.settings)
    settings = read(current, client)
    wanted, present = wanted_groups(client, invocation), own_groups(settings)
    if "hooks" not in settings:
        text = json_text.insert(text, (), {}, key="hooks")
    for event in {**wanted, **present}:
        if present.get(event, []) == wanted.get(event, []):
            continue
        text = _without_handlers(text, settings, event)
        text = _with_groups(text, settings, event, wanted.get(event, []))
    note = ""
    if client.name == CLAUDE_CODE:
        text, note = _with_status_line(text, settings, status_line(invocation))
    return Outcome(text.encode(), note)


def strip(current: bytes, original: bytes | None, *, client: Client) -> Outcome:
    """Without our entries. What they leave empty goes too, unless it was there before."""
    text = _text(current, client.settings)
    settings = read(current, client)
    before = _readable(original, client)
    for event in own_groups(settings):
        text = _without_handlers(text, settings, event)
        if not json_text.parse(text, client.settings)["hooks"][event] and event not in before.get("hooks", {}):
            text = json_text.remove(text, ("hooks", event))
    if own_invocation(settings.get("statusLine")):
        text = json_text.remove(text, ("statusLine",))
    if text == _text(current, client.settings):
        return Outcome(current)
    left = json_text.parse(text, client.settings)
    if left.get("hooks") == {} and "hooks" not in before:
        text = json_text.remove(text, ("hooks",))
        del left["hooks"]
    return Outcome(text.encode() if left or original is not None else None)


def read(current: bytes | None, client: Client) -> dict[str, Any]:
    """The settings, of a shape in which hooks can be put; anything else is refused, with the place."""
    settings = json_text.parse(_text(current, client.settings), client.settings)
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise _misshapen(client, "hooks", "an object")
    for event in client.events:
        if not isinstance(hooks.get(event, []), list):
            raise _misshapen(client, f"hooks.{event}", "a list")
    return settings


def own_groups(settings: dict[str, Any]) -> Groups:
    """Our entries by event, each group reduced to the handlers in it that are ours."""
    found: Groups = {}
    for event, groups in settings.get("hooks", {}).items():
        for group in groups if isinstance(groups, list) else ():
            own = [handler for handler in _handlers(group) if own_invocation(handler)]
            if own:
                found.setdefault(event, []).append({**group, "hooks": own})
    return found


def _with_groups(text: str, settings: dict[str, Any], event: str, groups: list[dict[str, Any]]) -> str:
    if event not in settings.get("hooks", {}):
        text = json_text.insert(text, ("hooks",), [], key=event)
    for group in groups:
        text = json_text.insert(text, ("hooks", event), group)
    if not json_text.parse(text, "settings")["hooks"][event]:
        text = json_text.remove(text, ("hooks", event))
    return text


def _without_handlers(text: str, settings: dict[str, Any], event: str) -> str:
    """From the last to the first, so that positions stay true."""
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
        return text, "the status line is set already and was left as it is"
    if present is not None:
        text = json_text.remove(text, ("statusLine",))
    elif "statusLine" in settings:
        return text, "the status line is switched off and was left so"
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


def _readable(original: bytes | None, client: Client) -> dict[str, Any]:
    try:
        return {} if original is None else read(original, client)
    except Invalid:
        return {}


def _misshapen(client: Client, place: str, wanted: str) -> Invalid:
    return Invalid(f"{place} in {client.settings} is not {wanted}", way_out="nothing was changed; correct it first")
