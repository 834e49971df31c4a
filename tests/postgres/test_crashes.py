"""Clients, servers and connections that die: what was acknowledged stands, and work goes on by itself."""

import os
import signal
import threading
import time
from collections import Counter
from itertools import count

import pytest

from detent.core.session.evolve import evolve, fingerprint
from detent.doctor.finding import ERROR
from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.errors import Conflict, StoreFailed
from detent.store.port import START
from detent.store.postgres import pool as pools
from tests.support.campaign import IS_WHOLE
from tests.support.loopback_proxy import LoopbackProxy
from tests.support.postgres import ROLE, new_project, postgres_store, shared_project
from tests.support.statements import Statements, watching_statements
from tests.support.values import journal, row

SESSION = "WFS-trial"
#: Every statement in a soak, every fourth one otherwise.
STRIDE = 1 if IS_WHOLE else 4
#: How long the database is away.
DOWN_S = 30.0 if IS_WHOLE else 3.0
WRITERS = 3


def commands(root, acknowledge):
    """A few commands of each kind of write; each is acknowledged when it returns."""
    with open_project(root, actor="ada") as project:
        handle = project.start(row("a", "b", "c"), "try it")
        acknowledge("start")
        handle.finish("a is done", phase="a")
        acknowledge("finish a")
        handle.begin("b")
        acknowledge("begin b")
        project.flush()
        acknowledge("flush")
        project.sessions.pause("a break")
        acknowledge("pause")
    acknowledge("close")


#: The commits that stand when a word was acknowledged, at least.
COMMITS = {"start": 1, "finish a": 2, "begin b": 3, "flush": 3, "pause": 4, "close": 4}


def killed_at(root, number, *, after):
    """Run the commands in a child that dies at a statement; the words that it acknowledged, and its exit status."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            with watching_statements(Statements(number, after=after)):
                commands(root, lambda word: os.write(writing, word.encode() + b"\n"))
            os._exit(0)
        except BaseException:  # noqa: BLE001 - a child must not go on with the tests
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as report:
        words = report.read().splitlines()
    _, status = os.waitpid(child, 0)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    return words, status


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_client_killed_at_any_statement_leaves_the_state_before_or_after(tmp_path, after):
    struck = 0
    for number in count(1 + after, STRIDE):
        root = shared_project(tmp_path / str(number))
        words, status = killed_at(root, number, after=after)
        if os.WIFEXITED(status):
            break
        struck += 1
        assert os.WTERMSIG(status) == signal.SIGKILL
        with open_project(root, actor="tester") as project:
            sessions = project.store.sessions()
            stands = COMMITS[words[-1]] if words else 0
            commits = list(project.session(sessions[0]).log()) if sessions else []
            assert len(commits) in (stands, stands + 1)
            project.reconcile()
            if not sessions:
                project.start(row("a"), "try it")
        with open_project(root, actor="tester") as project:
            if project.active() is None:
                project.sessions.resume()
            project.session().cancel("over")
        with open_project(root, actor="tester") as project:
            assert [found for found in check(project) if found.severity == ERROR] == []
    assert struck > 5


class Writers:
    """Threads with a machine each, that fail and redo a phase of their own until they are stopped."""

    def __init__(self, roots, session):
        self._stop = threading.Event()
        self.acknowledged, self.problems = [], []
        self._threads = [
            threading.Thread(target=self._write, args=(root, session, f"p{number}"))
            for number, root in enumerate(roots)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self, root, session, phase):
        with open_project(root, actor=phase) as project:
            handle = project.session(session)
            for number in count():
                if self._stop.is_set():
                    return
                try:
                    tag = f"{phase}-{number}"
                    handle.fail(tag, phase=phase)
                    self.acknowledged.append(tag)
                    handle.redo(phase)
                except StoreFailed as problem:
                    self.problems.append(problem.message)
                    return

    def wait_for(self, more):
        """Wait until that many further commits are acknowledged."""
        wanted = len(self.acknowledged) + more
        while len(self.acknowledged) < wanted and not self.problems:
            time.sleep(0.01)


def prepared(tmp_path, url, count):
    from tests.support.values import workflow

    project = new_project(url)
    roots = [shared_project(tmp_path / f"machine{n}", url=url, project=project) for n in range(count)]
    phases = [f"p{n}" for n in range(count)]
    with open_project(roots[0], actor="tester") as opened:
        handle = opened.start(workflow(dict.fromkeys(phases, ()) | {"end": tuple(phases)}), "try it")
        for phase in phases[1:]:
            handle.begin(phase)
        return roots, handle.id


def check_stands(root, session, writers):
    """Everything acknowledged stands once, in a journal that replays."""
    with open_project(root, actor="tester") as project:
        commits = list(project.session(session).log())
    assert [commit.version for commit in commits] == list(range(1, len(commits) + 1))
    tags = Counter(event.error for commit in commits for event in commit.events if hasattr(event, "error"))
    assert dict.fromkeys(writers.acknowledged, 1) == {tag: tags[tag] for tag in writers.acknowledged}
    assert max(tags.values()) == 1
    folded = None
    for commit in commits:
        folded = evolve(folded, commit)
        assert fingerprint(folded) == commit.state


def test_a_server_that_is_killed_and_restarted_loses_nothing_that_was_acknowledged(tmp_path, own_server):
    roots, session = prepared(tmp_path, own_server.url(user=ROLE), WRITERS)
    with Writers(roots, session) as writers:
        for _ in range(5 if IS_WHOLE else 2):
            writers.wait_for(20)
            own_server.kill()
            own_server.start()
        writers.wait_for(20)

    assert writers.problems == []
    check_stands(roots[0], session, writers)


def test_writers_wait_for_a_database_that_is_away_and_go_on_by_themselves(tmp_path, own_server):
    roots, session = prepared(tmp_path, own_server.url(user=ROLE), WRITERS)
    with Writers(roots, session) as writers:
        writers.wait_for(5)
        own_server.kill()
        before = len(writers.acknowledged)
        time.sleep(DOWN_S)
        assert len(writers.acknowledged) - before <= WRITERS
        own_server.start()
        writers.wait_for(10)

    assert writers.problems == []
    check_stands(roots[0], session, writers)


@pytest.mark.parametrize("direction", ["requests", "answers"])
def test_a_connection_cut_at_any_message_neither_loses_nor_doubles_a_commit(tmp_path, direction, own_server):
    proxy = LoopbackProxy(own_server.port)
    url = own_server.url(user=ROLE, port=proxy.port)
    store = postgres_store(tmp_path, new_project(own_server.url(user=ROLE)), url=url)
    end = store.create(SESSION, journal(1)[0])
    commits = journal(12)

    for number, commit in enumerate(commits[1:], 1):
        proxy.cut_after(direction, 1 + number % 3)
        end = store.append(SESSION, end, commit)
        store.put(f"{SESSION}/evidence/{number}", b"%d" % number)
        assert store.swap(f"{SESSION}/.chat/{number}", None, b"%d" % number)

    assert proxy.cuts >= 5
    assert store.read(SESSION, START).commits == commits
    assert len(store.names(f"{SESSION}/evidence/")) == len(store.names(f"{SESSION}/.chat/")) == 11
    proxy.close()


@pytest.mark.parametrize("direction", ["requests", "answers"])
def test_a_connection_cut_while_a_session_is_created_creates_it_once(tmp_path, direction, own_server):
    proxy = LoopbackProxy(own_server.port)
    url = own_server.url(user=ROLE, port=proxy.port)
    for chunk in range(1, 9):
        store = postgres_store(tmp_path / str(chunk), new_project(own_server.url(user=ROLE)), url=url)
        assert store.sessions() == []
        proxy.cut_after(direction, chunk)
        first, *rest = journal(3)

        store.create(SESSION, first, rest, beside=[(".active-WFS-trial", b"1")], seen=0)

        assert store.read(SESSION, START).commits == journal(3)
        assert store.names(".active-") == [".active-WFS-trial"]
        with pytest.raises(Conflict):
            store.create(SESSION, first)
    proxy.close()


def test_a_database_that_never_answers_is_an_error_that_says_so(tmp_path, own_server, monkeypatch):
    proxy = LoopbackProxy(own_server.port)
    store = postgres_store(
        tmp_path, new_project(own_server.url(user=ROLE)), url=own_server.url(user=ROLE, port=proxy.port)
    )
    end = store.create(SESSION, journal(1)[0])
    lines = []
    store._pool.tell = lines.append
    monkeypatch.setattr(pools, "WAIT_S", 1.0)
    monkeypatch.setattr(pools, "TELL_S", 0.2)
    proxy.is_refusing = True
    proxy.cut_all()

    with pytest.raises(StoreFailed, match="gave up after 1 s") as failure:
        store.append(SESSION, end, journal(2)[1])

    assert "detent status shows whether a commit stands" in failure.value.way_out
    (line,) = lines
    assert line.startswith("waiting up to 1 s for postgresql://")
    proxy.is_refusing = False
    assert store.append(SESSION, end, journal(2)[1]).version == 2
    proxy.close()
