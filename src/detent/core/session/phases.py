"""The phases of a session in graph order, as a persistent mapping: replacing one phase shares all others.

A session may have thousands of phases, and each commit makes a new session. The phases are kept in chunks, and values
that are read often are computed once a chunk, so that a commit costs no more than the chunk that it changes.
"""

from bisect import bisect
from collections.abc import Collection, ItemsView, Iterator, Mapping, ValuesView
from heapq import merge
from itertools import chain
from operator import attrgetter

from detent.core.lazy import lazy
from detent.core.session.phase_state import PhaseState
from detent.core.session.status import Status
from detent.core.workflow.graph import CHUNK

_DIGEST_BYTES = 32
_status_of = attrgetter("status")


class Chunk:
    """Consecutive phases in graph order."""

    def __init__(
        self,
        start: int,
        keys: tuple[str, ...],
        states: tuple[PhaseState, ...],
        earlier: bytes = b"",
        changed: Collection[int] = (),
    ) -> None:
        """`earlier` are the digests of an earlier version of the chunk, in which those at `changed` are out of date."""
        self.start, self.keys, self.states = start, keys, states
        self._earlier, self._changed = earlier, changed

    def replaced(self, at: int, state: PhaseState) -> "Chunk":
        before = self.states[at]
        states = (*self.states[:at], state, *self.states[at + 1 :])
        if "digests" in self.__dict__:
            after = Chunk(self.start, self.keys, states, self.digests, (at,))
        else:
            after = Chunk(self.start, self.keys, states, self._earlier, {*self._changed, at})
        # Handed on at once: documents are written later, when this chunk has successors that would compute it again.
        known = after.__dict__
        known["by_status"] = self._with_status(at, before.status, state.status)
        known["moved"] = self._with_fence(at, before, state)
        if state.artifacts == before.artifacts and "artifacts" in self.__dict__:
            known["artifacts"] = self.artifacts
        return after

    def _with_status(self, at: int, before: Status, after: Status) -> Mapping[Status, tuple[str, ...]]:
        """`by_status` with another status of one phase."""
        if before is after:
            return self.by_status
        key, changed = self.keys[at], dict(self.by_status)
        left = changed.pop(before)
        place = left.index(key)
        left = left[:place] + left[place + 1 :]
        if left:
            changed[before] = left
        joined = changed.get(after, ())
        place = bisect(joined, at, key=self.keys.index)
        changed[after] = (*joined[:place], key, *joined[place:])
        return changed

    def _with_fence(self, at: int, before: PhaseState, after: PhaseState) -> tuple[tuple[int, int, str], ...]:
        """`moved` with another state of one phase."""
        if after.fence == before.fence and _is_moved(after) is _is_moved(before):
            return self.moved
        index = self.start + at
        left = [entry for entry in self.moved if entry[1] != index]
        if _is_moved(after):
            left.append((after.fence, index, self.keys[at]))
            left.sort(reverse=True)
        return tuple(left)

    @lazy
    def by_status(self) -> Mapping[Status, tuple[str, ...]]:
        """Status to the keys of its phases; only statuses that occur."""
        keys_by_status: dict[Status, list[str]] = {}
        for key, state in zip(self.keys, self.states, strict=True):
            keys_by_status.setdefault(state.status, []).append(key)
        return {status: tuple(keys) for status, keys in keys_by_status.items()}

    @lazy
    def moved(self) -> tuple[tuple[int, int, str], ...]:
        """Fence, index and key of the phases that were ever begun or skipped, the latest first."""
        numbered = enumerate(zip(self.keys, self.states, strict=True), self.start)
        entries = ((state.fence, index, key) for index, (key, state) in numbered if _is_moved(state))
        return tuple(sorted(entries, reverse=True))

    @lazy
    def artifacts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for state in self.states for path in state.artifacts))

    @lazy
    def digests(self) -> bytes:
        """The digests of the phases, concatenated. Only changed phases are hashed."""
        digests = self._earlier
        if not digests:
            return b"".join([state.digest() for state in self.states])
        for at in self._changed:
            start = at * _DIGEST_BYTES
            digests = digests[:start] + self.states[at].digest() + digests[start + _DIGEST_BYTES :]
        return digests


_digests_of = attrgetter("digests")


def _is_moved(state: PhaseState) -> bool:
    """Whether the phase was ever begun or skipped."""
    return state.attempt > 0 or state.status is not Status.PENDING


class Phases(Mapping[str, PhaseState]):
    def __init__(self, states: Mapping[str, PhaseState]) -> None:
        self._places = {key: place for place, key in enumerate(states)}
        keys, values = tuple(states), tuple(states.values())
        starts = range(0, len(keys), CHUNK)
        self.chunks = tuple(Chunk(at, keys[at : at + CHUNK], values[at : at + CHUNK]) for at in starts)

    def replaced(self, key: str, state: PhaseState) -> "Phases":
        """The phases with another state of one. Raises `KeyError` for an unknown phase."""
        number, at = divmod(self._places[key], CHUNK)
        after = object.__new__(Phases)
        after._places = self._places
        changed = self.chunks[number].replaced(at, state)
        after.chunks = (*self.chunks[:number], changed, *self.chunks[number + 1 :])
        return after

    def updated(self, states: Mapping[str, PhaseState]) -> "Phases":
        after = self
        for key, state in states.items():
            after = after.replaced(key, state)
        return after

    def with_status(self, *statuses: Status) -> tuple[str, ...]:
        """The keys of the phases with one of these statuses."""
        matches: list[str] = []
        for chunk in self.chunks:
            present = chunk.by_status.keys() & statuses
            if len(present) == 1:
                matches += chunk.by_status[present.pop()]
            elif present:
                pairs = zip(chunk.keys, chunk.states, strict=True)
                matches += [key for key, state in pairs if state.status in statuses]
        return tuple(matches)

    def count(self, status: Status) -> int:
        return sum(len(chunk.by_status.get(status, ())) for chunk in self.chunks)

    def statuses(self, first: int, end: int) -> dict[str, Status]:
        """The phases from index `first` up to `end`, without `end`, each with its status."""
        statuses: dict[str, Status] = {}
        for chunk in self.chunks[first // CHUNK : -(-end // CHUNK)]:
            start, stop = max(0, first - chunk.start), end - chunk.start
            statuses.update(zip(chunk.keys[start:stop], map(_status_of, chunk.states[start:stop]), strict=True))
        return statuses

    def latest(self) -> Iterator[str]:
        """The keys of the phases that were ever begun or skipped, by fence, the latest first."""
        moved = sorted((chunk.moved for chunk in self.chunks if chunk.moved), reverse=True)
        for number, entries in enumerate(moved, 1):
            if number < len(moved) and entries[-1] < moved[number][0]:
                yield from (key for _, _, key in merge(*moved[number - 1 :], reverse=True))
                return
            # In most sessions chunk follows chunk, and no merging is needed.
            yield from (key for _, _, key in entries)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The artifacts of all phases, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(chunk.artifacts for chunk in self.chunks)))

    @property
    def digests(self) -> bytes:
        """The digests of all phases, concatenated."""
        return b"".join(map(_digests_of, self.chunks))

    def __getitem__(self, key: str) -> PhaseState:
        number, at = divmod(self._places[key], CHUNK)
        return self.chunks[number].states[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def values(self) -> ValuesView[PhaseState]:
        return _States(self)

    def items(self) -> ItemsView[str, PhaseState]:
        return _Pairs(self)

    def __repr__(self) -> str:
        return f"Phases({dict(self.items())})"


class _States(ValuesView[PhaseState]):
    """Iterates over the chunks without a lookup for each phase."""

    _mapping: Phases

    def __iter__(self) -> Iterator[PhaseState]:
        return chain.from_iterable(chunk.states for chunk in self._mapping.chunks)


class _Pairs(ItemsView[str, PhaseState]):
    _mapping: Phases

    def __iter__(self) -> Iterator[tuple[str, PhaseState]]:
        return zip(self._mapping, self._mapping.values(), strict=True)
