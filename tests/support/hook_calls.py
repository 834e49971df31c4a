"""Hook calls as clients send them: recorded payloads, and fields of common tool calls."""

from pathlib import Path

SLOW = {
    "argparse", "ast", "collections", "collections.abc", "contextlib", "dataclasses", "datetime", "enum", "functools",
    "inspect", "json", "msgspec", "os", "pathlib", "re", "site", "subprocess", "threading", "typing",
}  # fmt: skip

BASH = {"tool_name": "Bash", "tool_input": {"command": "git status && ls -la | head -3 > out.txt"}}

READ = {"tool_name": "Read", "tool_input": {"file_path": "src/a.py"}}

WRITE = {"tool_name": "Write", "tool_input": {"file_path": "src/a.py", "content": "x = 1\n"}}


PAYLOADS = Path(__file__).parents[1] / "hooks" / "payloads"


NAMES = sorted(path.name for path in PAYLOADS.glob("*.json") if path.name != "http_hook_request.json")


def client_of(name: str) -> str:
    first = name.split(".", maxsplit=1)[0]
    return first if first in ("codex", "gemini") else "claude-code"
