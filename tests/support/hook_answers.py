"""What each client honours as an answer to each of its events; anything else it ignores, or worse."""

import json
from typing import Any

#: Events at which `additionalContext` reaches the model.
CONTEXT = {
    "claude-code": {
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "SubagentStart",
    },
    "codex": {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart"},
    "gemini": {"SessionStart", "BeforeAgent", "AfterTool"},
}
#: Events at which the agent can be kept from stopping, and the word for it.
STOPS = {"claude-code": {"Stop": "block"}, "codex": {"Stop": "block"}, "gemini": {"AfterAgent": "deny"}}
DENIES = {"claude-code": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool"}
MAX_CHARS = 10_000


def check_answer(client: str, event: object, text: str) -> dict[str, Any]:
    """The answer, after checking that the client would do something with it."""
    if not text:
        return {}
    assert text.startswith("{")
    fields = json.loads(text)
    assert isinstance(fields, dict)
    for value in (*fields.values(), *fields.get("hookSpecificOutput", {}).values()):
        assert not isinstance(value, str) or 0 < len(value) <= MAX_CHARS
    if set(fields) == {"systemMessage"}:
        return fields
    if "decision" in fields:
        assert set(fields) == {"decision", "reason"}
        expected = STOPS[client].get(str(event)) or ("deny" if (client, event) == ("gemini", "BeforeTool") else None)
        assert fields["decision"] == expected
        return fields
    assert set(fields) == {"hookSpecificOutput"}
    specific = fields["hookSpecificOutput"]
    assert specific["hookEventName"] == event
    if "permissionDecision" in specific:
        assert set(specific) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
        assert (client, event, specific["permissionDecision"]) in {
            ("claude-code", "PreToolUse", "deny"),
            ("codex", "PreToolUse", "deny"),
        }
    else:
        assert set(specific) == {"hookEventName", "additionalContext"}
        assert event in CONTEXT[client]
    return fields
