"""Behind a pooler that works by transaction, nothing relies on the connection that a statement was sent on."""

import threading

import pytest

from detent.engine.project import open_project
from detent.errors import StoreFailed
from detent.store.port import START, all_commits
from detent.store.postgres.pool import Pool
from tests.support.pooler import pooler, program
from tests.support.postgres import ROLE, new_project, postgres_store, server, shared_project
from tests.support.values import journal, row
from tests.support.waiting import until

CLIENTS, TIMES = 8, 30

pytestmark = pytest.mark.skipif(program() is None, reason="skipped: no PgBouncer is installed")


@pytest.fixture(scope="module")
def url():
    with pooler(server(), ROLE) as address:
        yield address


def test_statements_of_clients_that_share_servers_do_not_meet(url):
    """Each client has statements of its own; one that was prepared by another would answer something else."""
    wrong: list[object] = []

    def ask(client):
        pool = Pool(url)
        for number in range(TIMES):
            asked = f"SELECT {client}, %(number)s::integer"
            answer: object
            try:
                answer = pool.run(lambda c, text=asked, n=number: c.execute(text, {"number": n}).fetchone())
            except StoreFailed as error:
                answer = error
            if answer != (client, number):
                wrong.append(answer)
        pool.close()

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


def test_statements_are_prepared_without_a_pooler_and_not_with_one(url):
    prepared = []
    for address in (server().url(user=ROLE), url):
        pool = Pool(address)
        connection = pool.connect()
        prepared.append(connection.prepare_threshold is not None)
        connection.close()

    assert prepared == [True, False]


def test_a_store_behind_a_pooler_hears_of_commits_by_looking(tmp_path, url):
    project = new_project(url)
    here, there = (postgres_store(tmp_path / name, project, url=url) for name in ("here", "there"))
    first, *rest = journal(4)
    cursor = here.create("WFS-trial", first)
    seen = there.read("WFS-trial", START).end
    assert until(lambda: not there.may_have_news("WFS-trial", seen.version))
    for commit in rest:
        cursor = here.append("WFS-trial", cursor, commit)

    # Messages do not come through. It is looked for all the same.
    assert until(lambda: there.may_have_news("WFS-trial", seen.version))

    assert list(all_commits(there, "WFS-trial")) == journal(4)
    here.close()
    there.close()


def test_a_session_is_worked_on_through_a_pooler(tmp_path, url):
    root = shared_project(tmp_path / "shop", url=url)
    with open_project(root, actor="tester") as project:
        handle = project.start(row("a", "b"), "try it")
        handle.finish("done")
        handle.begin("b")
        handle.finish("done")
        assert handle.state.status == "completed"
