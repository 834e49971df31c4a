"""Several processes that move one session, against one process that does the same number of transitions."""

import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

from bench.measure import Setting, interleave, say
from bench.table import Goal, Row, Section
from bench.workload import ACTOR, SUMMARY, make_project, side_by_side
from detent.engine.project import open_project

WRITERS = 8
RUN_S_MAX = 120


def writers(setting: Setting) -> Section:
    total = setting.pick(4_000, 800)
    runs = iter(range(1_000_000))

    def throughput(count: int) -> float:
        directory = os.path.join(setting.directory, f"writers-{next(runs)}")
        return _throughput(directory, count, total // count)

    say(f"{WRITERS} processes and one, in turns")
    pair = interleave(lambda: throughput(WRITERS), lambda: throughput(1), rounds=setting.pick(7, 3))
    return Section(
        name="writers",
        rows=(
            Row(
                what=f"{WRITERS} writers of one session : 1 writer, throughput",
                unit="/s",
                **pair._asdict(),
                goal=Goal(0.9, at_least=True),
            ),
        ),
        remarks=(f"{total:,} transitions in all either way, processes started at a barrier",),
    )


def _throughput(directory: str, count: int, each: int) -> float:
    """Transitions a second of `count` processes that make `each` of them."""
    with make_project(directory, checkpoints=False) as project:
        session = project.start(side_by_side(WRITERS), "Measure writers")
        for key in session.state.ready:
            session.begin(key)
    return run_writers([directory] * count, each)


def run_writers(directories: Sequence[str], each: int) -> float:
    """Transitions a second of a process in each directory that makes `each` of them."""
    context, count = multiprocessing.get_context("spawn"), len(directories)
    barrier, times = context.Barrier(count), context.Queue()
    processes = [
        context.Process(target=_write, args=(directory, number, each, barrier, times))
        for number, directory in enumerate(directories)
    ]
    try:
        for process in processes:
            process.start()
        spans: list[tuple[float, float]] = [times.get(timeout=RUN_S_MAX) for _ in processes]
        for process in processes:
            process.join(RUN_S_MAX)
    finally:
        _end(processes)
    return count * each / (max(end for _, end in spans) - min(start for start, _ in spans))


def _write(directory: str, number: int, each: int, barrier: Barrier, times: "Queue[tuple[float, float]]") -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open_project(directory, actor=f"{ACTOR}-{number}") as project:
        session = project.session()
        phase = session.state.workflow.order[number]
        barrier.wait(RUN_S_MAX)
        start = time.monotonic()
        for _ in range(each // 2):
            session.finish(SUMMARY, phase=phase)
            session.redo(phase)
        times.put((start, time.monotonic()))


def _end(processes: Sequence[BaseProcess]) -> None:
    for process in processes:
        if process.is_alive():
            process.terminate()
            process.join(RUN_S_MAX)
