"""What the processes do that work on tasks. Each waits at the barrier and reports on a queue."""

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.synchronize import Event as EventType
from threading import Barrier

from detent.engine.project import open_project
from detent.errors import DetentError, NotFound
from tests.support.values import written_tasks
from tests.support.workers import PATIENCE_S, Reports


def claim_all(directory: str, name: str, barrier: Barrier, reports: Reports, *, finishing: bool) -> None:
    """Takes what is next until there is nothing left."""
    taken = []
    with open_project(directory, actor=name) as project:
        tasks = project.session().tasks
        barrier.wait(PATIENCE_S)
        try:
            while True:
                claimed = tasks.start(owner=name, pid=os.getpid())
                taken.append((claimed.task, claimed.fence))
                if finishing:
                    tasks.done(claimed.task, fence=claimed.fence)
        except NotFound:
            # The claims of a process that has ended may be taken by others: no process ends before all have done.
            with suppress(threading.BrokenBarrierError):
                barrier.wait(PATIENCE_S)
        except DetentError as error:
            barrier.abort()
            taken = [(error.message, 0)]
    reports.put((name, taken))


def claim_and_hang(directory: str, name: str, reports: Reports, *, task: str, lease_s: float) -> None:
    """Takes one task and never gets on with it."""
    with open_project(directory, actor=name) as project:
        claimed = project.session().tasks.start(task, owner=name, pid=os.getpid(), lease_s=lease_s)
        project.flush()
        reports.put((name, claimed.task, claimed.fence))
        time.sleep(PATIENCE_S)


def claim_and_beat(directory: str, name: str, reports: Reports, stop: EventType, *, task: str, lease_s: float) -> None:
    """Takes one task and works on it for longer than its lease, saying so all the while."""
    with open_project(directory, actor=name) as project:
        tasks = project.session().tasks
        claimed = tasks.start(task, owner=name, lease_s=lease_s)
        reports.put((name, claimed.task, claimed.fence))
        while not stop.wait(lease_s / 10):
            tasks.beat(claimed.task, claimed.fence)
        tasks.done(claimed.task, "It took a while.", fence=claimed.fence)
    reports.put((name, "done", claimed.fence))


def finish_each(directory: str, name: str, barrier: Barrier, reports: Reports, *, tasks: Sequence[str]) -> None:
    """Says of every task that it is done, together with all the others."""
    answers: list[tuple[str, str | None, str | None]] = []
    with open_project(directory, actor=name) as project:
        own = project.session().tasks
        for task in tasks:
            barrier.wait(PATIENCE_S)
            try:
                own.done(task, f"by {name}")
                answers.append((task, name, None))
            except DetentError as refusal:
                answers.append((task, None, refusal.message))
    reports.put((name, answers))


def add_many(directory: str, name: str, barrier: Barrier, reports: Reports, *, times: int) -> None:
    """Adds tasks, together with all the others."""
    added = []
    with open_project(directory, actor=name) as project:
        tasks = project.session().tasks
        barrier.wait(PATIENCE_S)
        for number in range(times):
            outcome = tasks.add(f"{name}-{number}")
            added += written_tasks(outcome)
    reports.put((name, added))


def edit_files(
    directory: str, session: str, name: str, barrier: Barrier, reports: Reports, *, tasks: Sequence[str]
) -> None:
    """A person edits files while others work, and commands settle them."""
    adopted = []
    with open_project(directory, actor=name) as project:
        barrier.wait(PATIENCE_S)
        for task in tasks:
            path = f"{directory}/.workflow/{session}/.task/{task}.json"
            with open(path, encoding="utf-8") as file:
                text = file.read().replace('"title": "', f'"title": "{name}: ', 1)
            with open(f"{path}.mine", "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(f"{path}.mine", path)
            adopted += [adoption.document.rpartition("/")[2] for adoption in project.reconcile() if adoption.adopted]
    reports.put((name, adopted))
