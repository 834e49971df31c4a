"""Recorded decisions of the public implementation, as plain data for the tests beside this file."""

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from detent.documents.state.stamp import format_stamp

NOW = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)

RELATIVE = re.compile(r"<now(?:(?P<sign>[+-])(?P<count>\d+)(?P<unit>[smhd]))?>")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Case:
    id: str
    area: str
    input: dict[str, Any]
    expect: dict[str, Any]
    note: str
    state: Any = None
    state_raw: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)

    def disk(self) -> Any:
        return self.state if self.state_raw is None else json.loads(self.state_raw)

    def incoming(self) -> Any:
        """The document that the recorded call wanted to write."""
        sent = self.input["tool_input"]
        return sent["content_json"] if "content_json" in sent else json.loads(sent["content"])

    def calls(self) -> list[list[Any]]:
        listed = self.input["calls"] if "calls" in self.input else [self.input["args"]]
        return [[self.state if argument == "$state" else argument for argument in call] for call in listed]


def cases(file: str = "cases.jsonl") -> list[Case]:
    text = (Path(__file__).parents[2] / "oracle" / file).read_text(encoding="utf-8")
    return [_case(json.loads(line)) for line in text.splitlines()]


def _case(recorded: dict[str, Any]) -> Case:
    fields = {name: value for name, value in recorded.items() if name in Case.__dataclass_fields__}
    return Case(**_resolved(fields))


def _resolved(value: Any) -> Any:
    if value == {"$undefined": True}:
        return None
    if isinstance(value, dict):
        return {key: _resolved(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_resolved(each) for each in value]
    match = RELATIVE.fullmatch(value) if isinstance(value, str) else None
    return format_stamp(NOW + _offset(match)) if match else value


def _offset(match: re.Match[str]) -> timedelta:
    if match["sign"] is None:
        return timedelta()
    away = timedelta(seconds=int(match["count"]) * SECONDS[match["unit"]])
    return -away if match["sign"] == "-" else away
