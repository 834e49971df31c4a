"""The phases of a session, in graph order: a value of which one phase is replaced without copying the others.

A session may have thousands of phases, and each commit makes a new session. The phases are kept in stretches, and what
is asked often is worked out once for each stretch, so that a commit costs no more than the stretch that it changes.
"""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from heapq import merge
from itertools import chain

from detent.core.lazy import lazy
from detent.core.session.phase_state import PhaseState
from detent.core.session.status import Status
from detent.core.workflow.graph import CHUNK

_DIGEST_BYTES = 32


class Chunk:
    """Phases that follow one another in graph order."""

    def __init__(self, start: int, keys: tuple[str, ...], states: tuple[PhaseState, ...]) -> None:
        self.start, self.keys, self.states = start, keys, states
        #: The digests of an earlier stretch, and which of them are not these states'.
        self._earlier, self._changed = b"", frozenset(range(len(keys)))

    def replaced(self, at: int, state: PhaseState) -> "Chunk":
        after = Chunk(self.start, self.keys, (*self.states[:at], state, *self.states[at + 1 :]))
        if "digests" in self.__dict__:
            after._earlier, after._changed = self.digests, frozenset((at,))
        else:
            after._earlier, after._changed = self._earlier, self._changed | {at}
        return after

    @lazy
    def standing(self) -> Mapping[Status, tuple[str, ...]]:
        """The keys by status; a status that none has is left out."""
        found: dict[Status, list[str]] = {}
        for key, state in zip(self.keys, self.states, strict=True):
            found.setdefault(state.status, []).append(key)
        return {status: tuple(keys) for status, keys in found.items()}

    @lazy
    def moved(self) -> tuple[tuple[int, int, str], ...]:
        """Fence, place and key of what has ever been more than pending, the latest first."""
        numbered = enumerate(zip(self.keys, self.states, strict=True), self.start)
        found = [
            (state.fence, place, key)
            for place, (key, state) in numbered
            if state.attempt or state.status is not Status.PENDING
        ]
        return tuple(sorted(found, reverse=True))

    @lazy
    def artifacts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for state in self.states for path in state.artifacts))

    @lazy
    def digests(self) -> bytes:
        """Of its phases, one after the other; only those are worked out that an earlier stretch did not have."""
        found = bytearray(self._earlier or len(self.keys) * _DIGEST_BYTES)
        for at in self._changed:
            found[at * _DIGEST_BYTES : (at + 1) * _DIGEST_BYTES] = self.states[at].digest()
        return bytes(found)


class Phases(Mapping[str, PhaseState]):
    def __init__(self, states: Mapping[str, PhaseState]) -> None:
        self._places = {key: place for place, key in enumerate(states)}
        keys, values = tuple(states), tuple(states.values())
        starts = range(0, len(keys), CHUNK)
        self.chunks = tuple(Chunk(at, keys[at : at + CHUNK], values[at : at + CHUNK]) for at in starts)

    def replaced(self, key: str, state: PhaseState) -> "Phases":
        """With another state of one phase. `KeyError` for a phase that is not there."""
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
        """The keys of the phases that stand there."""
        found: list[str] = []
        for chunk in self.chunks:
            parts = [keys for status in statuses if (keys := chunk.standing.get(status))]
            if len(parts) == 1:
                found += parts[0]
            elif parts:
                pairs = zip(chunk.keys, chunk.states, strict=True)
                found += [key for key, state in pairs if state.status in statuses]
        return tuple(found)

    def count(self, status: Status) -> int:
        return sum(len(chunk.standing.get(status, ())) for chunk in self.chunks)

    def between(self, first: int, end: int) -> Iterator[tuple[str, PhaseState]]:
        """The phases at these places in graph order."""
        for chunk in self.chunks[first // CHUNK : -(-end // CHUNK)]:
            start, stop = max(0, first - chunk.start), end - chunk.start
            yield from zip(chunk.keys[start:stop], chunk.states[start:stop], strict=True)

    def latest(self) -> Iterator[str]:
        """What has ever been more than pending, the one begun last first; of one fence the last in order."""
        moved = [chunk.moved for chunk in self.chunks if chunk.moved]
        return (key for _, _, key in merge(*moved, reverse=True))

    @property
    def artifacts(self) -> tuple[str, ...]:
        """What the phases have declared, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(chunk.artifacts for chunk in self.chunks)))

    @property
    def digests(self) -> bytes:
        """Of the phases, one after the other."""
        return b"".join([chunk.digests for chunk in self.chunks])

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
    """One after the other, without looking each of them up."""

    _mapping: Phases

    def __iter__(self) -> Iterator[PhaseState]:
        return chain.from_iterable(chunk.states for chunk in self._mapping.chunks)


class _Pairs(ItemsView[str, PhaseState]):
    _mapping: Phases

    def __iter__(self) -> Iterator[tuple[str, PhaseState]]:
        return zip(self._mapping, self._mapping.values(), strict=True)
