"""Reads the transcript of an agent of Claude Code, or what the result of its call says."""

import glob
import json
import os
from typing import Any

from detent.clients.usage import Call, Usage, count, entries, fields, text

_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def agent_usage(payload: dict[str, Any], agent_id: str) -> Usage | None:
    """None if nothing is told about it."""
    named = payload.get("agent_transcript_path")
    path = named if isinstance(named, str) else _beside(payload.get("transcript_path"), agent_id)
    return (_read(path) if path else None) or _told(fields(payload.get("tool_response")))


def conversation_tokens(home: str, conversation: str) -> tuple[int, int]:
    """The tokens of a conversation and of its sub-agents, below `projects` in the home of Claude Code."""
    if os.sep in conversation:
        return 0, 0
    name = os.path.join(glob.escape(home), "projects", "*", glob.escape(conversation))
    paths = [*glob.glob(f"{name}.jsonl"), *glob.glob(os.path.join(name, "subagents", "agent-*.jsonl"))]
    usages = [usage for path in paths if (usage := _read(path)) is not None]
    return sum(usage.input for usage in usages), sum(usage.output for usage in usages)


def _beside(transcript: object, agent_id: str) -> str | None:
    if not isinstance(transcript, str) or not agent_id.isalnum():
        return None
    return os.path.join(transcript.removesuffix(".jsonl"), "subagents", f"agent-{agent_id}.jsonl")


def _read(path: str) -> Usage | None:
    #: By message: each part of a message is a line with the usage of the whole message.
    used: dict[str, tuple[int, int]] = {}
    calls: dict[str, tuple[str, str]] = {}
    failed: set[str] = set()
    model = ""
    for entry in entries(path):
        message = fields(entry.get("message"))
        usage, content = fields(message.get("usage")), message.get("content")
        if entry.get("type") == "assistant" and usage:
            used[str(message.get("id"))] = _tokens(usage)
            model = text(message.get("model")) or model
        for block in map(fields, content if isinstance(content, list) else ()):
            if block.get("type") == "tool_use":
                calls[str(block.get("id"))] = str(block.get("name")), json.dumps(block.get("input"))
            elif block.get("type") == "tool_result" and block.get("is_error"):
                failed.add(str(block.get("tool_use_id")))
    if not used and not calls:
        return None
    total = [sum(column) for column in zip(*used.values(), strict=True)] or [0, 0]
    return Usage(total[0], total[1], tuple(Call(*call, key not in failed) for key, call in calls.items()), model)


def _told(response: dict[str, Any]) -> Usage | None:
    usage, tools = fields(response.get("usage")), response.get("toolsUsed")
    if not usage:
        return None
    named = [str(tool) for tool in tools] if isinstance(tools, list) else []
    return Usage(*_tokens(usage), tuple(Call(tool, "", succeeded=True) for tool in named))


def _tokens(usage: dict[str, Any]) -> tuple[int, int]:
    return sum(count(usage.get(key)) for key in _INPUT), count(usage.get("output_tokens"))
