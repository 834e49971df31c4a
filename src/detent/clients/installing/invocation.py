"""How a client starts the hook, and how an entry that starts it is recognised again."""

import shlex
from typing import NamedTuple

#: How the hook's path ends wherever Detent is installed; an entry that runs it is ours.
HOOK_TAIL = "/detent/hooks/fast.py"
MODULE = "--module"


class Invocation(NamedTuple):
    """How the hook is started: isolated, without site-packages, by the interpreter that Detent runs with."""

    python: str
    hook: str
    #: File of a client's dialect that is no part of Detent.
    module: str = ""

    def argv(self, argument: str) -> list[str]:
        return [self.python, "-I", "-S", self.hook, argument, *([MODULE, self.module] if self.module else [])]


def own_invocation(handler: object) -> Invocation | None:
    """The invocation in an entry, if the entry is ours."""
    if not isinstance(handler, dict) or not isinstance(handler.get("command"), str):
        return None
    arguments = handler.get("args")
    try:
        argv = [handler["command"], *arguments] if isinstance(arguments, list) else shlex.split(handler["command"])
    except ValueError:
        return None
    hook = next((word for word in argv[1:] if isinstance(word, str) and word.endswith(HOOK_TAIL)), None)
    if hook is None:
        return None
    module = argv[argv.index(MODULE) + 1] if MODULE in argv[:-1] else ""
    return Invocation(argv[0], hook, module if isinstance(module, str) else "")
