"""Compares two checkpoints: files, phases, gates, agents."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from detent.core.checkpoint.manifest import Manifest, changes
from detent.core.path_text import to_text


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison: a checkpoint, or the present."""

    name: str
    run_id: str
    completed: tuple[str, ...]
    files: Manifest
    #: `phase/gate` to its verdict.
    gates: Mapping[str, str]
    #: Agent to its status, input tokens and output tokens.
    agents: Mapping[str, tuple[str, int, int]]


class GateChange(msgspec.Struct, frozen=True, kw_only=True):
    gate: str
    before: str | None
    after: str | None


class AgentChange(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    before: str | None
    after: str | None
    input_tokens: int
    output_tokens: int


class CheckpointDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The differences from `a` to `b`."""

    a: str
    b: str
    same_run: bool
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    newly_completed: tuple[str, ...] = ()
    no_longer_completed: tuple[str, ...] = ()
    gates: tuple[GateChange, ...] = ()
    agents: tuple[AgentChange, ...] = ()

    @property
    def is_empty(self) -> bool:
        phases = (*self.newly_completed, *self.no_longer_completed)
        return not any((self.added, self.removed, self.modified, phases, self.gates, self.agents))

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """The files that differ, by path, each with its change: added, removed or modified."""
        changed = {"added": self.added, "removed": self.removed, "modified": self.modified}
        return tuple(sorted((path, change) for change, paths in changed.items() for path in paths))

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON, with paths as text."""
        record: dict[str, Any] = msgspec.to_builtins(replace(self, added=(), removed=(), modified=()))
        paths = {"added": self.added, "removed": self.removed, "modified": self.modified}
        return record | {kind: [to_text(path) for path in changed] for kind, changed in paths.items()}


def compare(a: Side, b: Side) -> CheckpointDiff:
    files = changes(a.files, b.files)
    return CheckpointDiff(
        a=a.name,
        b=b.name,
        same_run=a.run_id == b.run_id,
        added=files.added,
        removed=files.removed,
        modified=files.modified,
        newly_completed=tuple(key for key in b.completed if key not in a.completed),
        no_longer_completed=tuple(key for key in a.completed if key not in b.completed),
        gates=tuple(
            GateChange(gate=gate, before=a.gates.get(gate), after=b.gates.get(gate))
            for gate in dict.fromkeys((*a.gates, *b.gates))
            if a.gates.get(gate) != b.gates.get(gate)
        ),
        agents=tuple(
            _agent_change(agent, a.agents.get(agent), b.agents.get(agent))
            for agent in dict.fromkeys((*a.agents, *b.agents))
            if a.agents.get(agent) != b.agents.get(agent)
        ),
    )


def _agent_change(agent: str, before: tuple[str, int, int] | None, after: tuple[str, int, int] | None) -> AgentChange:
    old, new = before or (None, 0, 0), after or (None, 0, 0)
    return AgentChange(
        agent=agent, before=old[0], after=new[0], input_tokens=new[1] - old[1], output_tokens=new[2] - old[2]
    )
