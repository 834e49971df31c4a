"""Detent inside coding agents: its hooks, instructions, agent definitions and commands, put in and taken out again.

Nothing that is there is overwritten or reformatted, and what was there before comes back byte for byte. The settings of
a person's home are never read or written, and no approval is ever given in a person's name.
"""

from detent.install.change import Change, Plan
from detent.install.check import Finding, findings
from detent.install.clients import CLIENTS
from detent.install.plans import HOOK, plan, plan_removal
from detent.install.write import apply

__all__ = ["CLIENTS", "HOOK", "Change", "Finding", "Plan", "apply", "findings", "plan", "plan_removal"]
