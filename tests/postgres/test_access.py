"""Who may talk to the database, and how: TLS, and the run-time role with the least privileges."""

import pytest

from detent.engine.project import open_project
from detent.errors import StoreFailed
from detent.store.postgres.pool import Pool
from tests.support.command import Tool
from tests.support.page import make_certificate
from tests.support.postgres import ROLE, prepare, server, server_url, shared_project
from tests.support.postgres_server import PostgresServer
from tests.support.values import row


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate of the server, which signs itself, and that of another one."""
    made = [make_certificate(tmp_path_factory.mktemp(name)) for name in ("own", "other")]
    return made[0], made[1][0]


@pytest.fixture(scope="module")
def tls_server(certificates):
    running = PostgresServer()
    running.use_tls(*certificates[0])
    running.start()
    prepare(running)
    yield running
    running.stop()


def url(running, host, authority):
    return f"postgresql://{ROLE}@{host}:{running.port}/postgres?sslmode=verify-full&sslrootcert={authority}"


def test_a_server_is_verified_by_its_certificate_and_its_name(tls_server, certificates, tmp_path, nobody):
    (authority, _), other = certificates
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "detent.toml").write_text('gates = "off"\n')
    tool = Tool(tmp_path / "shop")

    tool("init", "--store", url(tls_server, "localhost", authority)).ok()
    tool("start", "feature", "Add login").ok()

    assert "Add login" in tool("status").ok().out
    pool = Pool(url(tls_server, "localhost", authority))
    used = pool.run(lambda c: c.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone())
    pool.close()
    assert used == (True,)
    for wrong in (url(tls_server, "localhost", other), url(tls_server, "127.0.0.1", authority)):
        text = (tool.directory / "detent.toml").read_text()
        code, message, way_out = tool("init", "--store", wrong).error()
        assert (code, "certificate" in message) == (1, True)
        assert "gave up" not in message
        assert (
            way_out == "correct sslmode, sslrootcert, sslcert and sslkey of the URL, or the certificate of the server"
        )
        assert (tool.directory / "detent.toml").read_text() == text


def test_a_connection_with_tls_that_breaks_is_made_again(tls_server, certificates):
    (authority, _), _ = certificates
    pool = Pool(url(tls_server, "localhost", authority))
    pool.run(lambda connection: connection.execute("SELECT 1"))

    tls_server.kill()
    tls_server.start()
    answer = pool.run(lambda connection: connection.execute("SELECT 2").fetchone())

    pool.close()
    assert answer == (2,)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE detent.commit SET line = line",
        "DELETE FROM detent.commit",
        "TRUNCATE detent.commit",
        "UPDATE detent.session SET name = name",
        "DELETE FROM detent.session",
        "DELETE FROM detent.project",
        "DELETE FROM detent.migration",
        "UPDATE detent.feed SET lines = lines",
        "DROP TABLE detent.commit",
        "ALTER TABLE detent.commit DISABLE TRIGGER ALL",
        "CREATE TABLE detent.mine (id integer)",
    ],
)
def test_the_run_time_role_neither_changes_nor_removes_what_is_committed(statement):
    with pytest.raises(StoreFailed, match=r"permission denied|must be owner"):
        Pool(server_url()).run(lambda connection: connection.execute(statement))


def test_the_doctor_warns_of_a_role_that_may_change_commits(tmp_path, nobody):
    root = shared_project(tmp_path / "shop", url=server().url())
    with open_project(root, actor="tester") as project:
        project.start(row("a"), "try it")

    found = Tool(root)("doctor", "--json").ok().json()["findings"]

    assert [(each["severity"], "may change and remove commits" in each["message"]) for each in found] == [
        ("warning", True)
    ]
    assert found[0]["way_out"] == "connect with a role that has only what detent store roles gives"


def test_the_doctor_finds_nothing_with_the_run_time_role(tmp_path, nobody):
    root = shared_project(tmp_path / "shop")
    with open_project(root, actor="tester") as project:
        project.start(row("a"), "try it")

    assert Tool(root)("doctor", "--json").ok().json()["findings"] == []
