"""Installs Detent in clients and removes it again: hooks, instructions, agent definitions and commands.

What an installation consists of is in the room of each client; here it becomes changes of files. Nothing that is there
is overwritten or reformatted, and a removal restores it byte for byte. The settings of a person's home are never
written, and no approval is ever given in a person's name.
"""

from detent.clients.installing.installation import Finding
from detent.install.change import Change, Plan
from detent.install.check import findings
from detent.install.plans import HOOK, plan, plan_removal
from detent.install.write import apply

__all__ = ["CLIENTS", "HOOK", "Change", "Finding", "Plan", "apply", "findings", "plan", "plan_removal"]


def __getattr__(name: str) -> object:
    if name == "CLIENTS":
        from detent.clients.registry import with_hooks  # noqa: PLC0415

        return with_hooks()
    raise AttributeError(f"module 'detent.install' has no attribute {name!r}")
