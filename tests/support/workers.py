"""What the processes do. Each waits at the barrier, so that all begin at the same moment, and reports on a queue."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Event as EventType
from queue import Queue
from threading import Barrier
from typing import Any

from detent.core.workflow.graph import Workflow
from detent.documents.workflow import get_workflow_state, update_phase_status
from detent.engine.project import open_project
from detent.errors import DetentError

PATIENCE_S = 60
ROUNDS = 30
Reports = Queue[Any]


def forked(*preloaded: str) -> Any:
    """Processes that are forked from one that has loaded what they need, and holds nothing of this one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.claimers", "tests.support.workers", *preloaded])
    return context


def transit(
    directory: str, name: str, barrier: Barrier, reports: Reports, *, times: int, phases: Sequence[str]
) -> None:
    """`times` random transitions; each leaves its own tag in the journal if it succeeds."""
    choose = random.Random(name)
    done, refused = [], []
    with open_project(directory, actor=name) as project:
        handle = project.session()
        barrier.wait(PATIENCE_S)
        for number in range(times):
            tag, phase = f"{name}-{number}", choose.choice(phases)
            command = choose.choice(("begin", "finish", "fail", "redo"))
            try:
                match command:
                    case "begin":
                        handle.begin(phase, agent=tag)
                    case "finish":
                        handle.finish(tag, phase=phase)
                    case "fail":
                        handle.fail(tag, phase=phase)
                    case "redo":
                        handle.redo(phase, reason=tag)
            except DetentError as refusal:
                refused.append((type(refusal).__name__, refusal.message))
            else:
                done.append(tag)
    reports.put((name, done, refused))


def watch(directory: str, barrier: Barrier, reports: Reports, stop: EventType) -> None:
    """Reads all the while, with a project kept open and with fresh ones."""
    seen = [0]
    with open_project(directory, actor="reader") as kept:
        handle = kept.session()
        barrier.wait(PATIENCE_S)
        while not stop.is_set():
            seen.append(handle.state.version)
            with open_project(directory, actor="reader") as fresh:
                seen.append(fresh.session().state.version)
            time.sleep(0.002)
    reports.put(("reader", seen))


def begin_each(directory: str, name: str, barrier: Barrier, reports: Reports, *, phases: Sequence[str]) -> None:
    """Begins every phase, together with all the others."""
    answers: list[tuple[str, str | None, str | None]] = []
    with open_project(directory, actor=name) as project:
        handle = project.session()
        for phase in phases:
            barrier.wait(PATIENCE_S)
            try:
                answers.append((phase, str(handle.begin(phase).token), None))
            except DetentError as refusal:
                answers.append((phase, None, refusal.message))
    reports.put((name, answers))


def finish_each(directory: str, name: str, barrier: Barrier, reports: Reports, *, tokens: Sequence[str]) -> None:
    """Finishes every attempt, together with all the others who hold the same token."""
    answers: list[tuple[str, str | None, str | None]] = []
    with open_project(directory, actor=name) as project:
        handle = project.session()
        for token in tokens:
            barrier.wait(PATIENCE_S)
            try:
                handle.finish(f"by {name}", token=token)
                answers.append((token, name, None))
            except DetentError as refusal:
                answers.append((token, None, refusal.message))
    reports.put((name, answers))


def start_one(directory: str, name: str, barrier: Barrier, reports: Reports, *, graph: Workflow) -> None:
    with open_project(directory, actor=name) as project:
        barrier.wait(PATIENCE_S)
        handle = project.start(graph, "the same task")
        reports.put((name, handle.id, handle.state.number))


def write_rounds(root: str, id_: str, number: int) -> None:
    """Add to what a phase of a workflow document has delivered, again and again."""
    for count in range(ROUNDS):
        phase = get_workflow_state(id_, root=root)["phases"][number]
        update_phase_status(id_, phase["id"], "active", [*phase["deliverables"], f"{number}-{count}"], root=root)


def hold_lock(directory: str, barrier: Barrier) -> None:
    with open_project(directory, actor="holder") as project, project.store.lock(project.session().id):
        barrier.wait(PATIENCE_S)
        time.sleep(PATIENCE_S)
        os._exit(1)


def run(context: Any, *jobs: Any, reports: Reports) -> list[Any]:
    """Start all jobs, collect a report from each, and see them end."""
    processes = [context.Process(target=target, args=args, kwargs=settings) for target, args, settings in jobs]
    for process in processes:
        process.start()
    try:
        received = [reports.get(timeout=PATIENCE_S) for _ in processes]
        for process in processes:
            process.join(PATIENCE_S)
        assert [process.exitcode for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
                process.join()
    return received
