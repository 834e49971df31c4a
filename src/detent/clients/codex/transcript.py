"""Reads the transcript ("rollout") of an agent of Codex."""

import re
from typing import Any

from detent.clients.usage import Call, Usage, count, entries, fields, text

_EXITED = re.compile(r"^Process exited with code (\d+)$", re.MULTILINE)


def agent_usage(payload: dict[str, Any]) -> Usage | None:
    """None if nothing is told about it."""
    path = payload.get("agent_transcript_path")
    if not isinstance(path, str):
        return None
    total: dict[str, Any] = {}
    calls: dict[str, tuple[str, str]] = {}
    failed: set[str] = set()
    model = ""
    for entry in entries(path):
        item = fields(entry.get("payload"))
        if entry.get("type") == "turn_context":
            model = text(item.get("model")) or model
        match item.get("type"):
            case "token_count":
                # Each line has the total so far.
                total = fields(fields(item.get("info")).get("total_token_usage")) or total
            case "function_call" | "custom_tool_call":
                given = item.get("arguments") or item.get("input") or ""
                calls[str(item.get("call_id"))] = str(item.get("name")), str(given)
            case "function_call_output":
                exited = _EXITED.search(str(item.get("output")))
                if exited is not None and exited[1] != "0":
                    failed.add(str(item.get("call_id")))
            case _:
                pass
    if not total and not calls:
        return None
    return Usage(
        count(total.get("input_tokens")),
        count(total.get("output_tokens")),
        tuple(Call(*call, key not in failed) for key, call in calls.items()),
        model,
    )
