"""Two things measured in turns, so that a noisy machine is noisy for both."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import comb
from statistics import median, quantiles
from typing import Any, NamedTuple

#: Runs a batch and returns the seconds that one operation of it took.
Batch = Callable[[], float]


class Setting(NamedTuple):
    """Where to work, and how long."""

    directory: str
    quick: bool

    def pick(self, full: int, quick: int) -> int:
        return quick if self.quick else full


class Pair(NamedTuple):
    ours: float
    theirs: float
    #: Median of the rounds' own ratios: the two halves of a round saw the same machine.
    ratio: float
    #: How far apart the middle half of those ratios lies.
    spread: float = 0.0


def interleave(ours: Batch, theirs: Batch, *, rounds: int, warm_up: int = 1) -> Pair:
    """Medians over `rounds`; who goes first alternates."""
    for _ in range(warm_up):
        ours(), theirs()
    figures: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2:
            second, first = theirs(), ours()
        else:
            first, second = ours(), theirs()
        figures.append((first, second))
    ratios = [one / other for one, other in figures]
    low, ratio, high = quantiles(ratios, n=4)
    return Pair(median(one for one, _ in figures), median(other for _, other in figures), ratio, high - low)


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, and the bounds between which it lies with a confidence of 95 %.

    By the sign test: the bounds are values themselves, whatever the distribution is. Fewer than six values are too few
    for that, and give their extremes.
    """
    ordered, count = sorted(values), len(values)
    outside, below = 0, 1
    while below <= 0.025 * 2**count:
        outside += 1
        below += comb(count, outside)
    outside = max(outside, 1)
    return median(ordered), ordered[outside - 1], ordered[-outside]


def seconds_each(work: Callable[[], object], count: int) -> float:
    """Seconds that one of the `count` operations took that `work` did."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) / count


class Calls(NamedTuple):
    """An entry for each call: the descriptor that was synced, the bytes that were written."""

    syncs: list[int]
    written: list[int]


@contextmanager
def counted_calls() -> Iterator[Calls]:
    """Counts this process's syncs and the bytes it writes, by wrapping what `os` offers for it."""
    calls = Calls([], [])
    plain = {name: getattr(os, name) for name in ("fsync", "fdatasync", "write") if hasattr(os, name)}

    def synced(name: str) -> Callable[..., Any]:
        def sync(fd: int) -> None:
            plain[name](fd)
            calls.syncs.append(fd)

        return sync

    def write(fd: int, data: Any) -> int:
        length: int = plain["write"](fd, data)
        calls.written.append(length)
        return length

    for name in plain:
        setattr(os, name, write if name == "write" else synced(name))
    try:
        yield calls
    finally:
        for name, function in plain.items():
            setattr(os, name, function)


def say(text: str) -> None:
    """Progress, on standard error; figures go to standard output."""
    print(f"  {text}", file=sys.stderr, flush=True)
