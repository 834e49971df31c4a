"""Answers in the words of each client. Nothing to say is said by saying nothing."""

from _json import encode_basestring_ascii as quote

LIMIT = 9_000
#: Events at which a client hands `additionalContext` to its model. At the end of a turn or of an agent it would be
#: taken for a wish to go on, or ignored; there and everywhere else a message for the person is all that is left.
HEARD = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStart",
    "BeforeAgent",
    "AfterTool",
)


def deny(client: str, reason: str) -> str:
    """The call must not happen; the agent is told why."""
    reason = quote(reason[:LIMIT])
    if client == "gemini":
        return f'{{"decision":"deny","reason":{reason}}}'
    return (
        '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",'
        f'"permissionDecisionReason":{reason}}}}}'
    )


def keep_going(client: str, reason: str) -> str:
    """The agent must not stop yet."""
    decision = "deny" if client == "gemini" else "block"
    return f'{{"decision":"{decision}","reason":{quote(reason[:LIMIT])}}}'


def tell(event_name: str, text: str) -> str:
    """Something that the agent should know, or the person where the agent cannot hear it."""
    text = quote(text[:LIMIT])
    if event_name not in HEARD:
        return f'{{"systemMessage":{text}}}'
    return f'{{"hookSpecificOutput":{{"hookEventName":{quote(event_name)},"additionalContext":{text}}}}}'
