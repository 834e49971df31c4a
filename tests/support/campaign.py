"""Campaigns: tests with many cases of one kind. `make test` runs a seeded sample of them, `make soak` runs all."""

import os
import random
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TypeVar

#: Set by `make soak`.
IS_WHOLE = bool(os.environ.get("DETENT_SOAK"))
#: Another number chooses another sample.
SEED = os.environ.get("DETENT_SEED", "1")
#: Every call is struck in a soak, every seventh one otherwise.
STRIDE = 1 if IS_WHOLE else 7
_T = TypeVar("_T")


def struck_calls() -> Iterator[int]:
    """The numbers of the calls at which a test fails or kills a command. The test ends the loop."""
    return count(STRIDE, STRIDE)


def examples(sample: int) -> int:
    """The number of examples of a property; eight times as many in a soak."""
    return 8 * sample if IS_WHOLE else sample


def sampled(cases: Sequence[_T], count: int, name: str) -> list[_T]:
    """`count` of the cases, in their order; all of them in a soak. The name makes samples of two tests differ."""
    if IS_WHOLE or count >= len(cases):
        return list(cases)
    chosen = set(random.Random(f"{SEED} {name}").sample(range(len(cases)), count))
    return [case for number, case in enumerate(cases) if number in chosen]
