"""Isolation of work in git worktrees: their names, and the gate that merges them.

The merge is a gate, so a phase is not finished before later phases have its work.
"""

import hashlib
from typing import Literal

from msgspec.structs import replace

from detent.core.gate import gate_name
from detent.core.gate.kinds.command import merge_gate
from detent.core.workflow.graph import Phase, Workflow

Mode = Literal["none", "session", "phase"]
GATE = "merge"
_OTHER_GATE = "merge-worktree"


def isolated(workflow: Workflow, mode: Mode, *, size: str | None = None) -> Workflow:
    """The workflow with a merge as the last gate of every phase, or only of the last phases.

    `size` is the size of the session; the phases that it leaves out do not count as last.
    """
    if mode == "none":
        return workflow
    last = _last_phases(workflow, size)
    phases = tuple(
        _with_merge(phase, phase.key if mode == "phase" else None) if mode == "phase" or phase.key in last else phase
        for phase in workflow.phases
    )
    return replace(workflow, phases=phases)


def tree_name(session: str, phase: str | None = None, project: str | None = None) -> str:
    """The name of the worktree's directory, and of its branch below `detent/`."""
    return ".".join(_plain(part) for part in (project, session, phase) if part is not None)


def _last_phases(workflow: Workflow, size: str | None) -> frozenset[str]:
    reduced = workflow.without(workflow.sizes.get(size, ())) if size is not None else workflow
    return frozenset(key for key, followers in reduced.followers.items() if not followers)


def _with_merge(phase: Phase, key: str | None) -> Phase:
    taken = {gate_name(gate) for gate in phase.gates}
    arguments = "" if key is None else f"{'-- ' if key.startswith('-') else ''}{key}"
    merge = merge_gate(_OTHER_GATE if GATE in taken else GATE, arguments)
    if any(gate.runnable() == merge.command for gate in phase.gates):
        return phase
    return replace(phase, gates=(*phase.gates, merge))


def _plain(part: str) -> str:
    """`part` if git accepts it in a branch name, else a similar unique text."""
    dotted = ".." in part or part.startswith(".") or part.endswith((".", ".lock"))
    if not dotted:
        return part
    return f"{part.replace('.', '-').strip('-')}-{hashlib.sha256(part.encode()).hexdigest()[:8]}"
