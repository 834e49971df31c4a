"""`make simulate`: many seeds of a small world, and some of a large one. DETENT_SEED sets the first seed.

A seed that breaks an invariant is printed with what it broke: `python -m tests.simulate SEED [large]` replays it.
"""

import os
import sys
import time
from collections.abc import Iterable
from multiprocessing import Pool

from tests.support.simulation import World

SMALL, LARGE = 10_000, 20
LARGE_WORLD = {"machines": 20, "sessions": 1_000}
#: A process of the pool works on this many seeds, then another one replaces it.
CHUNK = 25
PROGRESS_S = 10.0


def _small(seed: int) -> tuple[int, list[str]]:
    return seed, World(seed).run().problems


def _large(seed: int) -> tuple[int, list[str]]:
    return seed, World(seed, **LARGE_WORLD).run().problems


def _report(what: str, count: int, results: Iterable[tuple[int, list[str]]]) -> int:
    begun = shown = time.monotonic()
    broken = 0
    for done, (seed, problems) in enumerate(results, 1):
        if problems:
            broken += 1
            sys.stdout.write(f"seed {seed} of the {what} world: {'; '.join(problems[:3])}\n")
        if time.monotonic() - shown > PROGRESS_S or done == count:
            shown = time.monotonic()
            rate = done / (shown - begun)
            sys.stdout.write(f"{what} world: {done} of {count} seeds, {rate:.1f} a second, {broken} broken\n")
            sys.stdout.flush()
    return broken


def main(arguments: list[str]) -> int:
    if arguments:
        world = World(int(arguments[0]), **(LARGE_WORLD if "large" in arguments else {})).run()
        sys.stdout.write("\n".join((*world.faults, *world.problems, f"commits {world.digest}", "")))
        return int(bool(world.problems))
    first = int(os.environ.get("DETENT_SEED", "0"))
    small, large = int(os.environ.get("DETENT_SMALL", SMALL)), int(os.environ.get("DETENT_LARGE", LARGE))
    with Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        broken = _report("small", small, pool.imap_unordered(_small, range(first, first + small), CHUNK))
        broken += _report("large", large, pool.imap_unordered(_large, range(first, first + large)))
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
