"""The `bash(…)` that a step's command is written in: one at the front, and the last parenthesis."""

_OPEN = "bash("


def is_wrapped(command: str) -> bool:
    return command.strip().startswith(_OPEN)


def is_balanced(command: str) -> bool:
    """Whether a wrapper that was opened is closed where the command ends. Parentheses inside it are not counted."""
    return not is_wrapped(command) or command.strip().endswith(")")


def unwrap(command: str) -> str:
    """What bash is to run. A command without a wrapper is one already."""
    if not is_wrapped(command) or not is_balanced(command):
        return command
    return command.strip()[len(_OPEN) : -1]
