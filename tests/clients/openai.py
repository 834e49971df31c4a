"""The OpenAI Responses API, as far as a coding agent needs it."""

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.scripts import Call, Message, Result, Turn

NAME = "openai"
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 110,
}


def is_model(path: str) -> bool:
    return path == "/v1/responses"


def aside(path: str) -> dict[str, Any] | None:
    """Answers that no script is asked for."""
    if path == "/v1/models":
        return {"object": "list", "data": [], "models": []}
    return None


def messages(body: dict[str, Any]) -> tuple[Message, ...]:
    items = body["input"]
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": items}]
    return (Message("system", body.get("instructions") or ""), *(_message(item) for item in items))


def tools(body: dict[str, Any]) -> tuple[str, ...]:
    return tuple(_tool_names(body.get("tools") or ()))


def answer(turn: Turn, *, path: str, body: dict[str, Any], prefix: str) -> tuple[str, bytes]:
    """The content type and the body of the reply."""
    output = [_said(turn.text, prefix)] if turn.text or not turn.calls else []
    output += [_called(call, f"{prefix}_{index}") for index, call in enumerate(turn.calls)]
    response = {"id": f"resp_{prefix}", "object": "response", "model": body.get("model", "scripted")}
    done = {**response, "status": "completed", "output": output, "usage": USAGE}
    if turn.refused:
        done |= {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    if not body.get("stream"):
        return "application/json", json.dumps(done).encode()
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(output):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{done['status']}", "response": done})
    return "text/event-stream", b"".join(_sse(number, event) for number, event in enumerate(events))


def problem(turn: Turn) -> bytes:
    """The body of an answer that is an error; a header tells the wait."""
    return json.dumps({"error": {"message": turn.text, "type": "requests", "code": "scripted"}}).encode()


def _said(text: str, prefix: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "id": f"msg_{prefix}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def _called(call: Call, call_id: str) -> dict[str, Any]:
    head = {"id": f"fc_{call_id}", "call_id": f"call_{call_id}", "status": "completed"}
    if isinstance(call.input, str):
        return {**head, "type": "custom_tool_call", "name": call.tool, "input": call.input}
    if call.tool == "tool_search":
        return {**head, "type": "tool_search_call", "execution": "client", "arguments": call.input}
    namespace, _, name = call.tool.rpartition("/")
    called = {**head, "type": "function_call", "name": name, "arguments": json.dumps(call.input)}
    return {**called, "namespace": namespace} if namespace else called


def _sse(number: int, event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode()


def _tool_names(offered: Any) -> Iterator[str]:
    """A namespace holds tools of its own; they are named `namespace/tool`, as a scenario calls them."""
    for tool in offered:
        if tool["type"] == "namespace":
            yield from (f"{tool['name']}/{name}" for name in _tool_names(tool.get("tools", ())))
        else:
            yield tool.get("name", tool["type"])


def _message(item: dict[str, Any]) -> Message:
    match item.get("type", "message"):
        case "message":
            role = {"assistant": "assistant", "user": "user"}.get(item["role"], "system")
            return Message(role, _text(item["content"]))
        case "function_call":
            return Message("assistant", calls=(Call(item["name"], json.loads(item["arguments"])),))
        case "custom_tool_call":
            return Message("assistant", calls=(Call(item["name"], item["input"]),))
        case "tool_search_call":
            return Message("assistant", calls=(Call("tool_search", item["arguments"]),))
        case "tool_search_output":
            return Message("tool", results=(Result(item["call_id"], json.dumps(item["tools"])),))
        case "function_call_output" | "custom_tool_call_output":
            return Message("tool", results=(Result(item["call_id"], _output(item["output"])),))
        case _:
            return Message("other")


def _output(output: Any) -> str:
    if isinstance(output, dict):
        output = output.get("content", "")
    return _text(output)


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if "text" in block)
