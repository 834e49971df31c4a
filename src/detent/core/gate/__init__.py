"""Gates: the conditions that a phase must meet before it can be finished.

`kinds` has one module for each kind, `registry` lists the kinds, `judge` is the only judge of all of them.
"""

from detent.core.gate.kind import Gate, GateSettings, Opener, gate_name

__all__ = ["Gate", "GateSettings", "Opener", "gate_name"]
