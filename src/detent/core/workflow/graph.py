"""The phase graph: phases, their needs, and the order that follows. A session pins its workflow when it starts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain as joined
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec.structs import replace

from detent.core.gate import Gate, gate_name
from detent.core.gate.registry import decode_gate
from detent.core.gate.voted import Voted
from detent.core.lazy import lazy
from detent.sha256 import sha256

MAX_PHASES = 20_000
MAX_KEY = 64
#: Number of phases of a chunk. Large graphs are processed in chunks.
CHUNK = 64
_KEY_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Phase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One node of the graph."""

    key: str
    title: str = ""
    agent: str = ""
    needs: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    timeout_minutes: int | None = None
    #: Not part of the workflow unless a variant includes it.
    optional: bool = False
    #: The phase in which the tasks of a session are done.
    tasks: bool = False
    #: `begin` hands over the discovery notes, with a warning if they are old.
    discovery: bool = False
    #: The phase may rewrite tests that stood when the session began. It may not lose any of them.
    rewrites_tests: bool = False
    #: What the agents of the phase are told, in the words of the project.
    instructions: str = ""

    def gate(self, name: str) -> Gate | None:
        """The gate of this name."""
        return next((gate for gate in self.gates if gate_name(gate) == name), None)


class Workflow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, dict=True):
    """A phase graph with a name. `phases` is in declaration order, which breaks ties everywhere."""

    name: str
    title: str = ""
    phases: tuple[Phase, ...]
    #: Prefix of the ids of its sessions in the history, such as REQ; None for no ids.
    prefix: str | None = None
    #: Whether phases are begun and finished by hand, or by delegation to their agents.
    activation: Literal["explicit", "delegation"] = "explicit"
    #: Size name to the phases that this size leaves out.
    sizes: dict[str, tuple[str, ...]] = {}

    @lazy
    def by_key(self) -> Mapping[str, Phase]:
        return {phase.key: phase for phase in self.phases}

    @lazy
    def order(self) -> tuple[str, ...]:
        """Phase keys in topological order; ties in declaration order."""
        return topological_order(self.phases)

    @lazy
    def followers(self) -> Mapping[str, tuple[str, ...]]:
        """Phase key to the phases that need it directly."""
        followers: dict[str, list[str]] = {phase.key: [] for phase in self.phases}
        for phase in self.phases:
            for need in phase.needs:
                followers[need].append(phase.key)
        return {key: tuple(keys) for key, keys in followers.items()}

    @lazy
    def digest(self) -> str:
        # Decoded first: msgspec omits a default by identity, so equal workflows may be encoded differently.
        plain = msgspec.json.decode(msgspec.json.encode(self), type=Workflow, dec_hook=decode_gate)
        return sha256(msgspec.json.encode(plain)).hexdigest()

    def descendants(self, key: str) -> tuple[str, ...]:
        """Every phase that needs `key`, directly or not, in graph order."""
        descendants: set[str] = set()
        waiting = list(self.followers[key])
        while waiting:
            follower = waiting.pop()
            if follower not in descendants:
                descendants.add(follower)
                waiting.extend(self.followers[follower])
        return tuple(k for k in self.order if k in descendants)

    @lazy
    def entries(self) -> tuple[tuple[str, ...], ...]:
        """For each chunk of graph order, the phases that need none of their own chunk."""
        chunks = [self.order[at : at + CHUNK] for at in range(0, len(self.order), CHUNK)]
        return tuple(
            tuple(key for key in chunk if not inside.intersection(self.by_key[key].needs))
            for chunk in chunks
            for inside in (frozenset(chunk),)
        )

    @lazy
    def rank(self) -> Mapping[str, int]:
        """Phase key to its index in graph order."""
        return {key: index for index, key in enumerate(self.order)}

    def with_gates(self, change: Callable[[Gate], Gate]) -> "Workflow":
        """The graph with its gates changed."""
        return replace(
            self, phases=tuple(replace(phase, gates=tuple(map(change, phase.gates))) for phase in self.phases)
        )

    def without(self, keys: Iterable[str]) -> "Workflow":
        """The graph with `keys` removed and their edges bridged."""
        removed = set(keys)
        bridged: dict[str, tuple[str, ...]] = {}
        for key in self.order:
            needs = (bridged[need] if need in removed else (need,) for need in self.by_key[key].needs)
            bridged[key] = tuple(dict.fromkeys(joined.from_iterable(needs)))
        phases = tuple(replace(phase, needs=bridged[phase.key]) for phase in self.phases if phase.key not in removed)
        sizes = {size: tuple(key for key in left_out if key not in removed) for size, left_out in self.sizes.items()}
        return replace(self, phases=phases, sizes=sizes)


def chain(name: str, phases: Iterable[tuple[str, str]], *, title: str = "") -> Workflow:
    """A linear workflow of (title, agent) pairs: phase_0, phase_1, …"""
    chained: list[Phase] = []
    for index, (phase_title, agent) in enumerate(phases):
        needs = (chained[-1].key,) if chained else ()
        chained.append(Phase(key=f"phase_{index}", title=phase_title, agent=agent, needs=needs))
    return Workflow(name=name, title=title, phases=tuple(chained), activation="delegation")


def topological_order(phases: Iterable[Phase]) -> tuple[str, ...]:
    """Phase keys in topological order, ties in declaration order. Phases of a cycle are left out."""
    waiting = {phase.key: set(phase.needs) for phase in phases}
    followers: dict[str, list[str]] = {}
    for key, needs in waiting.items():
        for need in needs:
            followers.setdefault(need, []).append(key)
    rank = {key: index for index, key in enumerate(waiting)}
    free = [rank[key] for key, needs in waiting.items() if not needs]
    keys = list(waiting)
    order: list[str] = []
    heapify(free)
    while free:
        key = keys[heappop(free)]
        order.append(key)
        for follower in followers.get(key, ()):
            waiting[follower].discard(key)
            if not waiting[follower]:
                heappush(free, rank[follower])
    return tuple(order)


def problems(workflow: Workflow, roles: Mapping[str, Sequence[str]] = MappingProxyType({})) -> list[str]:
    """All problems of the graph and its gates. `roles` are the people who fill a role."""
    phases = workflow.phases
    if not phases:
        return ["it has no phases"]
    if len(phases) > MAX_PHASES:
        return [f"it has {len(phases)} phases; the limit is {MAX_PHASES}"]
    known = set(workflow.by_key)
    cycles = _cycles(phases)
    stuck = known - set(topological_order(phases)) - {key for cycle in cycles for key in cycle}
    return [
        *_key_problems(phases),
        *(
            f"phase {phase.key} needs {need}, which is not one of its phases{_suggestion(need, known)}"
            for phase in phases
            for need in phase.needs
            if need not in known
        ),
        *(f"phases need each other in a circle: {' -> '.join([*cycle, cycle[0]])}" for cycle in cycles),
        *([f"phases that can never start: {', '.join(sorted(stuck))}"] if stuck else []),
        *(
            f"phase {phase.key} has two gates named {name}; give one of them another name"
            for phase in phases
            for name in sorted({gate_name(gate) for gate in phase.gates})
            if sum(gate_name(gate) == name for gate in phase.gates) > 1
        ),
        *(
            f"phase {phase.key} has a timeout of {phase.timeout_minutes} minutes; it must be more than 0"
            for phase in phases
            if phase.timeout_minutes is not None and phase.timeout_minutes <= 0
        ),
        *_quorum_problems(phases, roles),
        *(
            f"size {size} leaves out {key}, which is not one of its phases{_suggestion(key, known)}"
            for size, left_out in workflow.sizes.items()
            for key in left_out
            if key not in known
        ),
    ]


def _quorum_problems(phases: Iterable[Phase], roles: Mapping[str, Sequence[str]]) -> Iterable[str]:
    for phase in phases:
        for gate in phase.gates:
            if isinstance(gate, Voted) and gate.needs_quorum and gate.lowered_from is None:
                filled = {**gate.roles, **roles}
                # One person may fill two roles; whether enough people are there is asked when a session starts.
                seats = sum(max(1, len(filled.get(name, ()))) for name in gate.approvers)
                if not 1 <= gate.quorum <= seats:
                    who = ", ".join(gate.approvers) or "no approvers"
                    yield (
                        f"gate {gate_name(gate)} of phase {phase.key} has a quorum of {gate.quorum}, "
                        f"and {seats} can vote ({who}): it must be from 1 to {seats}; name more approvers, or lower it"
                    )


def _key_problems(phases: Iterable[Phase]) -> Iterable[str]:
    seen: set[str] = set()
    for phase in phases:
        if not phase.key or len(phase.key) > MAX_KEY or not _KEY_CHARS.issuperset(phase.key):
            yield f"phase key {phase.key!r} must be 1 to {MAX_KEY} letters, digits, '.', '_' or '-'"
        if phase.key in seen:
            yield f"phase {phase.key} is declared twice"
        seen.add(phase.key)


def _cycles(phases: Iterable[Phase]) -> list[list[str]]:
    """Each cycle once, in the direction of the work, from its first declared phase."""
    needs = {phase.key: phase.needs for phase in phases}
    cycles: dict[frozenset[str], list[str]] = {}
    visited: set[str] = set()
    for root, first in needs.items():
        path: list[str] = []
        on_path: dict[str, int] = {}
        stack = [(root, iter(first))] if root not in visited else []
        while stack:
            key, remaining = stack[-1]
            if key not in on_path:
                on_path[key] = len(path)
                path.append(key)
            for need in remaining:
                if need in on_path:
                    cycle = path[on_path[need] :][::-1]
                    cycles.setdefault(frozenset(cycle), cycle)
                elif need in needs and need not in visited:
                    stack.append((need, iter(needs[need])))
                    break
            else:
                stack.pop()
                visited.add(path.pop())
                del on_path[key]
    rank = {key: index for index, key in enumerate(needs)}
    return [_rotated(cycle, rank) for cycle in cycles.values()]


def _rotated(cycle: list[str], rank: Mapping[str, int]) -> list[str]:
    first = cycle.index(min(cycle, key=rank.__getitem__))
    return cycle[first:] + cycle[:first]


def _suggestion(word: str, known: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415 - only a misspelling needs it

    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
