"""The Anthropic Messages API, as far as a coding agent needs it."""

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.scripts import Call, Message, Result, Turn

NAME = "anthropic"
USAGE = {"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def is_model(path: str) -> bool:
    return path == "/v1/messages"


def aside(path: str) -> dict[str, Any] | None:
    """Answers that no script is asked for."""
    if path == "/v1/messages/count_tokens":
        return {"input_tokens": 100}
    return None


def messages(body: dict[str, Any]) -> tuple[Message, ...]:
    system = Message("system", _text(body.get("system", "")))
    return (system, *(_message(entry["role"], entry["content"]) for entry in body["messages"]))


def tools(body: dict[str, Any]) -> tuple[str, ...]:
    return tuple(tool["name"] for tool in body.get("tools") or ())


def answer(turn: Turn, *, path: str, body: dict[str, Any], prefix: str) -> tuple[str, bytes]:
    """The content type and the body of the reply."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text or not turn.calls else []
    for index, call in enumerate(turn.calls):
        blocks.append({"type": "tool_use", "id": f"toolu_{prefix}_{index}", "name": call.tool, "input": call.input})
    head = {
        "id": f"msg_{prefix}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "stop_sequence": None,
        "usage": USAGE,
    }
    reason = "refusal" if turn.refused else "tool_use" if turn.calls else "end_turn"
    if not body.get("stream"):
        return "application/json", json.dumps({**head, "content": blocks, "stop_reason": reason}).encode()
    events = _events({**head, "content": [], "stop_reason": None}, blocks, reason)
    return "text/event-stream", b"".join(_sse(event) for event in events)


def problem(turn: Turn) -> bytes:
    """The body of an answer that is an error; a header tells the wait."""
    kind = "rate_limit_error" if turn.status == 429 else "invalid_request_error"
    return json.dumps({"type": "error", "error": {"type": kind, "message": turn.text}}).encode()


def _events(head: dict[str, Any], blocks: list[dict[str, Any]], reason: str) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": head}
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": USAGE}
    yield {"type": "message_stop"}


def _sse(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _message(role: str, content: str | list[dict[str, Any]]) -> Message:
    if isinstance(content, str):
        return Message(role, content)
    calls = tuple(Call(block["name"], block["input"]) for block in content if block["type"] == "tool_use")
    results = tuple(
        Result(block["tool_use_id"], _text(block.get("content", "")), bool(block.get("is_error")))
        for block in content
        if block["type"] == "tool_result"
    )
    return Message(role, _text(content), calls, results)


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block.get("type") == "text")
