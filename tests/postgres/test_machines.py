"""Several machines share a journal: nothing is lost or doubled, one wins, and views stay where they are."""

import threading
from collections import Counter
from datetime import timedelta

import msgspec
import pytest

from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.status import Status
from detent.engine import journal as journals
from detent.engine.notes import NoteKind, keep_note
from detent.engine.project import open_project, utc_now
from detent.engine.run_lease import NAME, RunLease, live_lease, read_lease
from detent.errors import Conflict, Refused
from detent.hooks.files import has_drifted, read_document
from detent.run.lease import Lease
from detent.store.port import PROJECT
from detent.store.postgres.pool import Pool
from tests.support import workers
from tests.support.postgres import postgres_store
from tests.support.values import journal, row, workflow
from tests.support.waiting import PATIENCE_S
from tests.support.workers import run

MACHINES = 8
TIMES = 25
ROUNDS = 4


def side_by_side(keys):
    return workflow(dict.fromkeys(keys, ()) | {"end": tuple(keys)})


def started(root, graph):
    with open_project(root, actor="tester") as project:
        return project.start(graph, "try it").id


def tags(commit):
    for event in commit.events:
        for field in ("agent", "summary", "error", "reason"):
            text = getattr(event, field, "")
            if text and text.startswith("process"):
                yield text


def test_machines_that_write_at_once_lose_no_transition_and_double_none(machines, context):
    phases = [f"p{number}" for number in range(5)]
    roots = machines(MACHINES)
    started(roots[0], side_by_side(phases))
    barrier, reports = context.Barrier(MACHINES), context.Queue()
    jobs = [
        (workers.transit, (str(root), f"process{number}", barrier, reports), {"times": TIMES, "phases": phases})
        for number, root in enumerate(roots)
    ]

    results = run(context, *jobs, reports=reports)

    done = [tag for _, successes, _ in results for tag in successes]
    refused = [refusal for _, _, refusals in results for refusal in refusals]
    assert len(done) + len(refused) == MACHINES * TIMES
    assert {kind for kind, _ in refused} == {"Refused"}
    with open_project(roots[0], actor="tester") as project:
        commits = list(project.session().log())
    assert [commit.version for commit in commits] == list(range(1, len(done) + 2))
    assert Counter(tag for commit in commits for tag in tags(commit)) == Counter(done)
    session = None
    for commit in commits:
        session = evolve(session, commit)
        assert fingerprint(session) == commit.state


def test_of_many_machines_that_begin_a_phase_exactly_one_does(machines, context):
    phases = [f"p{number}" for number in range(ROUNDS + 1)]
    roots = machines(MACHINES)
    started(roots[0], side_by_side(phases))
    barrier, reports = context.Barrier(MACHINES), context.Queue()
    jobs = [
        (workers.begin_each, (str(root), f"process{number}", barrier, reports), {"phases": phases[1:]})
        for number, root in enumerate(roots)
    ]

    answers = [answer for _, each in run(context, *jobs, reports=reports) for answer in each]

    for phase in phases[1:]:
        assert len([token for key, token, _ in answers if key == phase and token]) == 1
        lost = [message for key, token, message in answers if key == phase and not token]
        assert all(f"{phase} is in_progress" in message for message in lost)
    with open_project(roots[0], actor="tester") as project:
        state = project.session().state
        assert state.with_status(Status.IN_PROGRESS) == tuple(phases)
        assert state.version == 1 + ROUNDS


def test_sessions_that_machines_start_at_the_same_moment_get_ids_and_numbers_of_their_own(machines, context):
    roots = machines(MACHINES)
    barrier, reports = context.Barrier(MACHINES), context.Queue()
    jobs = [
        (workers.start_one, (str(root), f"process{number}", barrier, reports), {"graph": workflow(prefix="REQ")})
        for number, root in enumerate(roots)
    ]

    answers = run(context, *jobs, reports=reports)

    assert sorted(number for _, _, number in answers) == list(range(1, MACHINES + 1))
    with open_project(roots[0], actor="tester") as project:
        assert project.store.sessions() == sorted(session for _, session, _ in answers)


def overtaking(project, faster, monkeypatch):
    """The next commit through `project` is overtaken by what `faster` does."""
    append, waiting = project.store.append, [faster]

    def overtaken(session, after, commit):
        if waiting:
            waiting.pop()()
        return append(session, after, commit)

    monkeypatch.setattr(project.store, "append", overtaken)


def test_a_commit_that_was_overtaken_is_decided_again_on_what_the_session_is_now(machines, monkeypatch):
    here, there = machines(2)
    started(here, side_by_side(("a", "b", "c")))
    with open_project(here, actor="ada") as project, open_project(there, actor="bob") as other:
        mine, theirs = project.session(), other.session()

        overtaking(project, lambda: theirs.begin("c"), monkeypatch)
        assert mine.begin("b").session.version == 3

        overtaking(project, lambda: theirs.finish("faster", phase="a"), monkeypatch)
        with pytest.raises(Refused, match="a is completed"):
            mine.fail("slower", phase="a")


def test_a_transition_is_one_statement(machines, monkeypatch):
    (here,) = machines(1, settings='gates = "off"\n[checkpoint]\ncapture = "off"\n')
    started(here, row("a", "b"))
    asked: list[str] = []

    def counted(pool, action, **options):
        # Documents are written behind, in a thread of their own.
        if threading.current_thread() is threading.main_thread():
            asked.append(action.__qualname__.split(".")[1])
        return run_statements(pool, action, **options)

    run_statements = Pool.run
    with open_project(here, actor="ada") as project:
        handle = project.session()
        assert handle.state.version == 1
        with monkeypatch.context() as patched:
            patched.setattr(Pool, "run", counted)
            handle.finish("done", phase="a")
            handle.redo("a")

    assert asked == ["append", "append"]


def test_a_commit_that_is_always_overtaken_ends(machines, monkeypatch):
    (here,) = machines(1)
    started(here, row("a", "b"))
    monkeypatch.setattr(journals, "_MAX_TRIES", 3)
    with open_project(here, actor="ada") as project:
        handle = project.session()

        def overtaken(session, after, commit):
            raise Conflict("always")

        with monkeypatch.context() as patched:
            patched.setattr(project.store, "append", overtaken)
            with pytest.raises(Conflict, match="always"):
                handle.finish("done")
        assert handle.state.version == 1


def test_the_views_of_a_machine_follow_when_a_command_runs_there(machines):
    here, there = machines(2)
    session = started(here, row("a", "b"))
    with open_project(there, actor="bob") as project:
        project.reconcile()
    assert read_document(f"{there}/.workflow")["active_workflow"]["session_id"] == session
    with open_project(here, actor="ada") as project:
        project.session().finish("done")
    stale = (there / ".workflow" / "state.json").read_bytes()

    with open_project(there, actor="bob") as project:
        assert project.session().state.version == 2
        assert (there / ".workflow" / "state.json").read_bytes() == stale
        project.reconcile()

    assert (there / ".workflow" / "state.json").read_bytes() != stale
    for root in (here, there):
        state = f"{root}/.workflow"
        assert not has_drifted(read_document(state), state)
    journal_here, journal_there = (root / ".workflow" / session / "journal.jsonl" for root in (here, there))
    assert journal_here.read_bytes() == journal_there.read_bytes()


def test_the_views_of_a_machine_follow_a_session_that_another_one_ended(machines):
    here, there = machines(2)
    session = started(here, row("a"))
    with open_project(there, actor="bob") as project:
        project.session().finish("done")
    assert read_document(f"{here}/.workflow")["active_workflow"]["session_id"] == session

    with open_project(here, actor="ada") as project:
        project.reconcile()

    assert read_document(f"{here}/.workflow")["active_workflow"] is None
    assert session in (here / ".workflow" / "history.jsonl").read_text()


def test_a_copy_of_the_journal_that_was_changed_is_noticed_and_made_again(machines):
    (here,) = machines(1)
    session = started(here, row("a", "b"))
    state, copy = f"{here}/.workflow", here / ".workflow" / session / "journal.jsonl"
    whole = copy.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole.replace(b"try it", b"cheat!")[:-20] + b"x" * 20, b"", whole * 2):
        copy.write_bytes(damaged)
        assert has_drifted(read_document(state), state)

        with open_project(here, actor="ada") as project:
            project.reconcile()

        assert copy.read_bytes() == whole


def test_the_active_session_is_the_same_on_every_machine(machines):
    here, there = machines(2)
    first = started(here, row("a", "b"))
    with open_project(there, actor="bob") as project:
        project.reconcile()
        second = project.start(row("a", "b"), "another").id

    with open_project(here, actor="ada") as project:
        assert project.active() == second
        project.reconcile()
    assert sorted(path.name for path in (here / ".workflow").glob(".active-*")) == [f".active-{second}"]
    with open_project(here, actor="ada") as project:
        project.sessions.switch(first)
    with open_project(there, actor="bob") as project:
        assert project.active() == first


def test_of_machines_that_take_the_lease_of_a_run_at_once_one_does(machines):
    roots = machines(4)
    session = started(roots[0], row("a", "b"))
    projects = [open_project(root, actor=f"runner{number}") for number, root in enumerate(roots)]
    barrier, taken, refused = threading.Barrier(len(projects)), [], []

    def take(project):
        barrier.wait()
        try:
            taken.append(Lease(project, session))
        except Conflict as conflict:
            refused.append(conflict.message)

    threads = [threading.Thread(target=take, args=(project,)) for project in projects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(taken), len(refused)) == (1, 3)
    assert all("is being run by" in message for message in refused)
    taken[0].give_back()
    assert Lease(projects[1], session).run == read_lease(projects[2].store, session).run
    projects[0].store.delete(f"{session}/{NAME}")
    for project in projects:
        project.close()


@pytest.mark.parametrize(("age_s", "is_alive"), [(10, True), (100, False)])
def test_the_lease_of_another_machine_is_judged_by_the_clock_of_the_database(machines, age_s, is_alive):
    (here,) = machines(1)
    session = started(here, row("a", "b"))
    with open_project(here, actor="ada", clock=lambda: utc_now() + timedelta(days=1)) as project:
        now = project.store.now()
        assert now is not None
        beat = now - timedelta(seconds=age_s)
        lease = RunLease(run="run-1", owner="bob", host="elsewhere", pid=1, born="x", since=beat, beat=beat)
        with project.store.lock(PROJECT):
            project.store.put(f"{session}/{NAME}", msgspec.json.encode(lease))

        assert (live_lease(project.store, session, now=project.clock()) is not None) == is_alive
        project.store.delete(f"{session}/{NAME}")


def test_notes_that_machines_keep_at_once_all_stand(machines):
    roots = machines(3)
    session = started(roots[0], row("a", "b"))
    stores = [open_project(root, actor="ada").store for root in roots]
    barrier = threading.Barrier(len(stores))

    def keep(store, text):
        barrier.wait()
        keep_note(store, session, NoteKind.CHAT, text)

    threads = [threading.Thread(target=keep, args=(store, f"note {n}")) for n, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    names = stores[0].names(f"{session}/.chat/chat-")
    assert len(names) == 3
    assert sorted(stores[0].get(name) or b"" for name in names) == [b"note 0\n", b"note 1\n", b"note 2\n"]


def test_a_session_that_ended_elsewhere_is_in_the_history(machines):
    here, there = machines(2)
    started(here, row("a"))
    with open_project(there, actor="bob") as project:
        project.session().finish("done")

    with open_project(here, actor="ada") as project:
        assert [entry["session_id"] for entry in project.history()] == ["WFS-try-it"]


def test_projects_of_one_database_do_not_see_each_other(tmp_path):
    one, other = postgres_store(tmp_path / "a"), postgres_store(tmp_path / "b")
    one.create("WFS-trial", journal(1)[0], beside=[(".active-WFS-trial", b"1")])

    assert (other.sessions(), other.names(".active-")) == ([], [])
    assert one.get("project-id") != other.get("project-id")


def test_a_listener_hears_of_the_commit_of_another_machine(tmp_path, monkeypatch):
    from detent.store.postgres import listener

    monkeypatch.setattr(listener, "POLL_S", 3_600.0)
    here = postgres_store(tmp_path / "a")
    there = postgres_store(tmp_path / "b", here.project)
    end = here.create("WFS-trial", journal(1)[0])
    pause = threading.Event()
    while there.may_have_news("WFS-trial", 1):
        pause.wait(0.01)

    here.append("WFS-trial", end, journal(2)[1])

    while not there.may_have_news("WFS-trial", 1):
        pause.wait(0.01)
    assert not there.may_have_news("WFS-trial", 2)


def test_a_commit_wakes_those_that_wait_for_it_on_another_machine(tmp_path):
    here = postgres_store(tmp_path / "a")
    there = postgres_store(tmp_path / "b", here.project)
    end = here.create("WFS-trial", journal(1)[0])
    here.create("WFS-other", journal(1)[0])
    woken, other = threading.Event(), threading.Event()

    with there.waking("WFS-trial", woken.set), there.waking("WFS-other", other.set):
        # The listener connects in a thread of its own: commits before that are told to nobody.
        commits = iter(journal(40)[1:])
        for commit in commits:
            end = here.append("WFS-trial", end, commit)
            if woken.wait(0.5):
                break
        # The message about the start of the other session may come late: wait until none comes.
        while other.wait(1):
            other.clear()
        woken.clear()
        here.append("WFS-trial", end, next(commits))
        assert woken.wait(PATIENCE_S)
        assert not other.is_set()
