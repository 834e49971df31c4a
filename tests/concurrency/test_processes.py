"""Many processes at once: nothing is lost, nothing is doubled, one wins, and the others are told why."""

import os
import signal
import threading
from collections import Counter

import pytest

from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.status import Status
from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.errors import DetentError
from tests.support import workers
from tests.support.project import build_project
from tests.support.values import row, workflow
from tests.support.workers import run

PROCESSES = 8
TIMES = 200
ROUNDS = 12


@pytest.fixture
def directory(tmp_path):
    build_project(tmp_path)
    yield str(tmp_path)
    with open_project(tmp_path, actor="tester") as project:
        assert check(project) == []


def side_by_side(keys):
    """Phases that need nothing, and one at the end that is never begun, so that the session stays open."""
    return workflow(dict.fromkeys(keys, ()) | {"end": tuple(keys)})


def started(directory, graph):
    with open_project(directory, actor="tester") as project:
        return project.start(graph, "try it").id


def tags(commit):
    for event in commit.events:
        for field in ("agent", "summary", "error", "reason"):
            text = getattr(event, field, "")
            if text and text.startswith("process"):
                yield text


def test_many_processes_lose_no_transition_and_double_none(directory, context):
    phases = [f"p{number}" for number in range(5)]
    started(directory, side_by_side(phases))
    barrier, reports, stop = context.Barrier(PROCESSES + 1), context.Queue(), context.Event()
    names = [f"process{number}" for number in range(PROCESSES)]
    writing = [
        (workers.transit, (directory, name, barrier, reports), {"times": TIMES, "phases": phases}) for name in names
    ]
    reader = context.Process(target=workers.watch, args=(directory, barrier, reports, stop))
    reader.daemon = True
    reader.start()

    results = {name: (done, refused) for name, done, refused in run(context, *writing, reports=reports)}
    stop.set()
    _, seen = reports.get(timeout=workers.PATIENCE_S)
    reader.join(workers.PATIENCE_S)

    with open_project(directory, actor="tester") as project:
        commits = list(project.session().log())
    assert sorted(results) == names
    done = [tag for successes, _ in results.values() for tag in successes]
    refused = [refusal for _, refusals in results.values() for refusal in refusals]
    assert len(done) + len(refused) == PROCESSES * TIMES
    assert [commit.version for commit in commits] == list(range(1, len(done) + 2))
    assert Counter(tag for commit in commits for tag in tags(commit)) == Counter(done)
    assert all(tag.startswith(commit.by) for commit in commits for tag in tags(commit))
    assert len(done) > TIMES
    assert all(message for _, message in refused)
    assert {kind for kind, _ in refused} == {"Refused"}
    assert seen == sorted(seen)
    assert reader.exitcode == 0
    session = None
    for commit in commits:
        session = evolve(session, commit)
        assert fingerprint(session) == commit.state


def test_of_many_processes_that_begin_a_phase_exactly_one_does(directory, context):
    phases = [f"p{number}" for number in range(ROUNDS + 1)]
    started(directory, side_by_side(phases))
    barrier, reports = context.Barrier(PROCESSES), context.Queue()
    jobs = [
        (workers.begin_each, (directory, f"process{number}", barrier, reports), {"phases": phases[1:]})
        for number in range(PROCESSES)
    ]

    answers = [answer for _, found in run(context, *jobs, reports=reports) for answer in found]

    for phase in phases[1:]:
        won = [token for key, token, _ in answers if key == phase and token]
        lost = [message for key, token, message in answers if key == phase and not token]
        assert (len(won), len(lost)) == (1, PROCESSES - 1)
        assert all(f"{phase} is in_progress" in message for message in lost)
    with open_project(directory, actor="tester") as project:
        state = project.session().state
        assert state.with_status(Status.IN_PROGRESS) == tuple(phases)
        assert {state.phases[key].attempt for key in phases} == {1}
        assert state.version == 1 + ROUNDS


def test_of_many_processes_that_hold_the_same_token_exactly_one_finishes(directory, context):
    phases = [f"p{number}" for number in range(ROUNDS)]
    started(directory, side_by_side(phases))
    with open_project(directory, actor="tester") as project:
        handle = project.session()
        for key in phases[1:]:
            handle.begin(key)
        tokens = [str(handle.state.token(key)) for key in phases]
    barrier, reports = context.Barrier(PROCESSES), context.Queue()
    jobs = [
        (workers.finish_each, (directory, f"process{number}", barrier, reports), {"tokens": tokens})
        for number in range(PROCESSES)
    ]

    answers = [answer for _, found in run(context, *jobs, reports=reports) for answer in found]

    with open_project(directory, actor="tester") as project:
        state = project.session().state
    for key, token in zip(phases, tokens, strict=True):
        (winner,) = [name for held, name, _ in answers if held == token and name]
        assert state.phases[key].summary == f"by {winner}"
        lost = [message for held, name, message in answers if held == token and not name]
        assert all(f"{key} is completed" in message for message in lost)


def test_sessions_started_at_the_same_moment_get_ids_and_numbers_of_their_own(directory, context):
    barrier, reports = context.Barrier(PROCESSES), context.Queue()
    graph = workflow(prefix="REQ")
    jobs = [
        (workers.start_one, (directory, f"process{number}", barrier, reports), {"graph": graph})
        for number in range(PROCESSES)
    ]

    found = run(context, *jobs, reports=reports)

    assert sorted(number for _, _, number in found) == list(range(1, PROCESSES + 1))
    with open_project(directory, actor="tester") as project:
        assert project.store.sessions() == sorted(session for _, session, _ in found)
        assert project.session().state.number == PROCESSES


def test_the_lock_of_a_killed_process_is_free_at_once(directory, context):
    started(directory, row("a", "b"))
    barrier = context.Barrier(2)
    holder = context.Process(target=workers.hold_lock, args=(directory, barrier), daemon=True)
    holder.start()
    barrier.wait(workers.PATIENCE_S)
    threading.Timer(0.3, os.kill, (holder.pid, signal.SIGKILL)).start()

    with open_project(directory, actor="tester") as project:
        assert project.session().finish("done").version == 2

    holder.join(workers.PATIENCE_S)
    assert holder.exitcode == -signal.SIGKILL


def test_threads_that_share_a_project_lose_nothing(directory):
    phases = [f"p{number}" for number in range(8)]
    started(directory, side_by_side(phases))
    done, refused = [], []

    def work(handle, phase):
        try:
            for number in range(25):
                done.append(handle.fail(f"{phase}-{number}", phase=phase).events)
                done.append(handle.redo(phase).events)
        except DetentError as refusal:
            refused.append(refusal.message)

    with open_project(directory, actor="tester") as project:
        handle = project.session()
        for key in phases[1:]:
            handle.begin(key)
        threads = [threading.Thread(target=work, args=(handle, phase)) for phase in phases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        commits = list(handle.log())

    assert refused == []
    assert len(done) == 8 * 50
    assert [commit.version for commit in commits] == list(range(1, 8 + len(done) + 1))
    assert sorted(map(repr, done)) == sorted(repr(commit.events) for commit in commits[8:])
