"""The Gemini API, as far as a coding agent needs it."""

import json
import re
from typing import Any

from tests.clients.scripts import Call, Message, Result, Turn

NAME = "gemini"
USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
MODEL_PATH = re.compile(r"/v1(beta)?/models/[^/]+:(stream)?[gG]enerateContent")


def is_model(path: str) -> bool:
    return MODEL_PATH.fullmatch(path) is not None


def aside(path: str) -> dict[str, Any] | None:
    """Answers that no script is asked for."""
    if path.endswith(":countTokens"):
        return {"totalTokens": 100}
    return None


def messages(body: dict[str, Any]) -> tuple[Message, ...]:
    system = Message("system", _text((body.get("systemInstruction") or {}).get("parts", ())))
    return (system, *(_message(entry) for entry in body["contents"]))


def tools(body: dict[str, Any]) -> tuple[str, ...]:
    offered = body.get("tools") or ()
    return tuple(function["name"] for tool in offered for function in tool.get("functionDeclarations", ()))


def answer(turn: Turn, *, path: str, body: dict[str, Any], prefix: str) -> tuple[str, bytes]:
    """The content type and the body of the reply."""
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text or not turn.calls else []
    for index, call in enumerate(turn.calls):
        parts.append({"functionCall": {"id": f"call_{prefix}_{index}", "name": call.tool, "args": call.input}})
    reason = "PROHIBITED_CONTENT" if turn.refused else "STOP"
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}
    reply = json.dumps({"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "scripted"})
    if ":stream" not in path:
        return "application/json", reply.encode()
    return "text/event-stream", f"data: {reply}\n\n".encode()


def problem(turn: Turn) -> bytes:
    """The body of an answer that is an error, with the wait in its details."""
    wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{turn.retry_after_s}s"}
    status = "RESOURCE_EXHAUSTED" if turn.status == 429 else "INVALID_ARGUMENT"
    error = {"code": turn.status, "message": turn.text, "status": status}
    return json.dumps({"error": {**error, "details": [wait]} if turn.retry_after_s else error}).encode()


def _message(entry: dict[str, Any]) -> Message:
    parts = entry.get("parts", ())
    calls = tuple(
        Call(part["functionCall"]["name"], part["functionCall"].get("args", {}))
        for part in _having(parts, "functionCall")
    )
    results = tuple(_result(part["functionResponse"]) for part in _having(parts, "functionResponse"))
    return Message("assistant" if entry.get("role") == "model" else "user", _text(parts), calls, results)


def _result(response: dict[str, Any]) -> Result:
    told = response.get("response", {})
    text = "\n".join(value if isinstance(value, str) else json.dumps(value) for value in told.values())
    return Result(response.get("id", response["name"]), text, "error" in told)


def _having(parts: Any, key: str) -> list[dict[str, Any]]:
    return [part for part in parts if key in part]


def _text(parts: Any) -> str:
    return "\n".join(part["text"] for part in _having(parts, "text"))
