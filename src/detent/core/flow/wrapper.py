"""The `bash(…)` that a step's command is written in: one at the front, and the last parenthesis."""

_OPEN = "bash("


def is_wrapped(command: str) -> bool:
    return command.strip().startswith(_OPEN)


def is_balanced(command: str) -> bool:
    """True if a wrapper that was opened is closed at the end of the command. Parentheses inside it do not count."""
    return not is_wrapped(command) or command.strip().endswith(")")


def unwrap(command: str) -> str:
    """The command for bash. A command without a wrapper stays as it is."""
    if not is_wrapped(command) or not is_balanced(command):
        return command
    return command.strip()[len(_OPEN) : -1]
