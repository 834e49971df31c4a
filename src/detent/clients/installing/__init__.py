"""Installs Detent in clients and removes it again: hooks, instructions, agent definitions and commands.

The room of each client says what its installation consists of; this package turns that into changes of files. It never
overwrites or reformats other content, and a removal restores it byte for byte. It never writes the settings in a
person's home, and never gives an approval in a person's name.
"""

from detent.clients.installing.check import findings
from detent.clients.installing.files import Change, Plan, apply
from detent.clients.installing.installation import Finding
from detent.clients.installing.plans import HOOK, SHARED, plan, plan_removal

__all__ = ["HOOK", "SHARED", "Change", "Finding", "Plan", "apply", "findings", "plan", "plan_removal"]
