"""The tokens in Gemini CLI's own records: a file for each conversation, below `tmp/PROJECT/chats` in its directory."""

import glob
import os

from detent.clients.usage import count, entries, fields
from detent.core.session.phase_state import Tokens

#: The name of a record ends with this many characters of the conversation's id.
_ID_IN_NAME = 8


def recorded_tokens(home: str, conversation: str) -> Tokens:
    """The tokens of a conversation and of its sub-agents, whose records are in a directory with its id."""
    if os.sep in conversation or len(conversation) < _ID_IN_NAME:
        return Tokens()
    chats = os.path.join(glob.escape(home), "tmp", "*", "chats")
    own = glob.glob(os.path.join(chats, f"session-*-{glob.escape(conversation[:_ID_IN_NAME])}.jsonl"))
    subagents = glob.glob(os.path.join(chats, glob.escape(conversation), "*.jsonl"))
    return sum((_tokens(path) for path in own if _is_of(path, conversation)), sum(map(_tokens, subagents), Tokens()))


def _is_of(path: str, conversation: str) -> bool:
    first = next(entries(path), {})
    return first.get("sessionId") == conversation


def _tokens(path: str) -> Tokens:
    #: By message: a message is written again when its tools have ended.
    used: dict[str, Tokens] = {}
    for entry in entries(path):
        if tokens := fields(entry.get("tokens")):
            read = count(tokens.get("input"))
            # The total has the tokens of thinking, which the output does not count.
            written = max(count(tokens.get("output")), count(tokens.get("total")) - read)
            used[str(entry.get("id"))] = Tokens(input=read, output=written)
    return sum(used.values(), Tokens())
