"""The verbs that choose, prepare and copy stores, and the others against a database."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from detent.config.place import at_root
from detent.engine.project import open_project
from detent.engine.stores import file_store
from detent.errors import Invalid, StoreFailed
from detent.store.port import START, all_commits
from detent.store.postgres.migrating import check_schema, migrate
from detent.store.postgres.pool import Pool, driver, pool_of
from detent.store.postgres.queries import migrations, queries
from tests.support.command import Tool
from tests.support.postgres import ROLE, prepare, server, server_url
from tests.support.values import row


@pytest.fixture
def tool(tmp_path, nobody):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "detent.toml").write_text('gates = "off"\n\n[run]\nparallel = 2\n')
    return Tool(tmp_path / "shop")


@pytest.fixture
def database():
    """An empty database of its own; its URL as its owner."""
    names = (f"trial{number}" for number in range(1_000))
    taken = {name for (name,) in server().execute("SELECT datname FROM pg_database")}
    return server().create_database(next(name for name in names if name not in taken))


def settings(tool):
    return (tool.directory / "detent.toml").read_text()


def test_init_records_the_store_and_every_machine_finds_the_session(tool, tmp_path):
    tool("init", "--store", server_url()).ok()

    text = settings(tool)
    assert text.startswith('gates = "off"\n\n[run]\nparallel = 2\n')
    assert f'[store]\nurl = "{server_url()}"\nproject = "shop-' in text
    tool("start", "feature", "Add login").ok()
    other = Tool(tmp_path / "clone")
    other.directory.mkdir()
    (other.directory / "detent.toml").write_text(text)
    assert "Add login" in other("status").ok().out
    subprocess.run(["git", "init", "-q", str(other.directory)], check=True)
    other("finish", "-m", "done elsewhere").ok()
    assert tool("log", "--json").ok().json()["commits"][-1]["version"] == 2
    assert [each["severity"] for each in tool("doctor", "--json").ok().json()["findings"]] in ([], ["warning"])
    changed = subprocess.run(["git", "-C", str(other.directory), "status", "--short"], capture_output=True, check=True)
    assert changed.stdout == b"?? detent.toml\n"


def test_init_again_changes_nothing(tool):
    tool("init", "--store", server_url()).ok()
    text = settings(tool)

    tool("init", "--store", server_url()).ok()

    assert settings(tool) == text


@pytest.mark.parametrize(
    "url", ["postgresql://ada:hunter2@db/detent", "postgresql://db/detent?password=hunter2&sslmode=require"]
)
def test_a_password_in_the_url_is_refused_with_the_way_out(tool, url):
    code, message, way_out = tool("init", "--store", url).error()

    assert (code, "holds a password" in message) == (1, True)
    assert "hunter2" not in message + way_out
    assert "~/.pgpass" in way_out
    (tool.directory / "detent.toml").write_text(f'[store]\nurl = "{url}"\nproject = "x"\n')
    assert "holds a password" in tool("status").error()[1]
    assert not (tool.directory / ".workflow").exists()


@pytest.mark.parametrize(
    ("url", "reason", "expected"),
    [
        ("mysql://db/detent", "is no store", "give files or postgresql://"),
        ("postgresql://nobody@127.0.0.1:1/detent", "Connection refused (gave up after 5 s)", "start the database"),
        ("postgresql://db.invalid/detent", "db.invalid", "correct the host"),
        ("{server}/nowhere", 'failed: database "nowhere" does not exist', "make the role or the database"),
    ],
)
def test_a_database_that_cannot_be_reached_is_refused_and_nothing_is_written(tool, url, reason, expected):
    before = settings(tool)

    url = url.format(server=server().url().rpartition("/")[0])
    code, message, way_out = tool("init", "--store", url).error()

    assert (code, settings(tool)) == (1, before)
    assert reason in message
    assert expected in way_out


@pytest.mark.parametrize(
    ("said", "shown", "expected"),
    [
        ('FATAL:  password authentication failed for user "ada"', "password authentication failed", "~/.pgpass"),
        ("fe_sendauth: no password supplied", "fe_sendauth", "PGPASSWORD"),
        ('FATAL:  no pg_hba.conf entry for host "h", user "u", no encryption', "no pg_hba.conf", "sslmode=verify-full"),
        (
            'FATAL:  pg_hba.conf rejects connection for host "h", no encryption',
            "pg_hba.conf rejects",
            "pg_hba.conf of the server",
        ),
        ("server does not support SSL, but SSL was required", "server does not support SSL", "correct sslmode"),
    ],
)
def test_a_refusal_of_the_server_is_final_and_names_its_own_way_out(monkeypatch, said, shown, expected):
    pool = Pool("postgresql://ada@db/detent")
    text = f'connection failed: connection to server at "10.0.0.1", port 5432 failed: {said}'

    def refuse(*_: object, **__: object) -> None:
        raise driver().OperationalError(text)

    monkeypatch.setattr(driver(), "connect", refuse)
    with pytest.raises(StoreFailed) as failure:
        pool.run(lambda _: None)
    assert failure.value.message.startswith(f"postgresql://ada@db/detent failed: {shown}")
    assert "gave up" not in failure.value.message
    assert expected in failure.value.way_out


def test_sessions_are_copied_to_a_database_and_back_and_nothing_is_left_behind(tool):
    tool("init").ok()
    tool("start", "feature", "Add login").ok()
    tool("note", "Tokens expire", "--kind", "analysis").ok()
    tool("finish", "-m", "done").ok()
    place = at_root(str(tool.directory))
    before = list(all_commits(file_store(place), "WFS-add-login"))
    code, message, way_out = tool("init", "--store", server_url()).error()
    assert (code, "1 session is not in the new store" in message) == (1, True)
    assert way_out == f"detent store copy files {server_url()}, and then this again"

    copied = tool("store", "copy", "files", server_url(), "--json").ok().json()
    # As the refusal said: the project has the same name in the database each time.
    tool("init", "--store", server_url()).ok()
    assert f'project = "{copied["project"]}"' in settings(tool)

    assert (copied["sessions"], copied["commits"]) == (1, len(before))
    with open_project(tool.directory) as project:
        assert list(project.session().log()) == before
        note = project.store.names("WFS-add-login/.chat/")
        assert project.store.get(note[0]) == b"Tokens expire\n"
    tool("begin").ok()
    tool("finish", "-m", "in the database").ok()
    again = tool("store", "copy", server_url(), "files", "--json").ok().json()
    tool("init", "--store", "files").ok()
    assert again["sessions"] == 1
    assert "[store]" not in settings(tool)
    assert settings(tool).startswith('gates = "off"')
    after = list(all_commits(file_store(place), "WFS-add-login"))
    assert after[: len(before)] == before
    # The changes of detent.toml are commits too.
    assert len(after) > len(before) + 2
    assert "finding" not in tool("doctor").ok().out
    tool("begin").ok()


def test_a_session_that_differs_is_not_copied(tool, tmp_path):
    tool("init").ok()
    tool("start", "feature", "Add login").ok()
    name = tool("store", "copy", "files", server_url(), "--json").ok().json()["project"]
    other = Tool(tmp_path / "other")
    other.directory.mkdir()
    (other.directory / "detent.toml").write_text('gates = "off"\n')
    other("init").ok()
    other("start", "feature", "Add login").ok()

    code, message, _ = other("store", "copy", "files", server_url(), "--name", name).error()

    assert code == 4
    assert "is another session" in message


def test_a_session_that_went_on_in_the_target_is_not_called_another_one(tool):
    tool("init").ok()
    tool("start", "feature", "Add login").ok()
    tool("store", "copy", "files", server_url()).ok()
    tool("finish", "-m", "done in the files").ok()

    code, message, way_out = tool("store", "copy", server_url(), "files").error()
    assert (code, message) == (4, "WFS-add-login has more commits in TO than in FROM")
    assert way_out == "copy it the other way: exchange both"
    assert "copied: 1 commit and 0 documents" in tool("store", "copy", "files", server_url()).ok().out


@pytest.mark.parametrize("which", ["files", "database"])
def test_a_store_is_not_copied_to_itself(tool, which):
    tool("init").ok()
    store = "files" if which == "files" else server_url()
    code, message, _ = tool("store", "copy", store, store).error()
    assert (code, message) == (2, "FROM and TO are the same store")


def test_an_agent_may_not_move_the_journals(tool):
    tool("init").ok()
    tool("start", "feature", "Add login").ok()

    code, message, _ = tool("store", "copy", "files", server_url(), CLAUDECODE="1").error()

    assert code != 0
    assert "moving the journals to another store" in message


def test_tables_are_made_once_and_a_version_that_differs_is_refused(database):
    pool = Pool(database)
    with pytest.raises(Invalid, match="no tables of Detent") as refusal:
        check_schema(pool)
    # The run-time role may not migrate.
    assert "with the role that owns the tables" in refusal.value.way_out

    assert migrate(pool) == [name for _, name, _ in migrations()]
    assert migrate(pool) == []
    check_schema(pool)

    name = database.rpartition("/")[2]
    server().execute("INSERT INTO detent.migration (version, name) VALUES (99, 'of the future')", name)
    with pytest.raises(Invalid, match="this Detent knows") as newer:
        check_schema(pool)
    assert newer.value.way_out == "upgrade this Detent"
    with pytest.raises(Invalid, match="this Detent knows"):
        migrate(pool)
    server().execute("DELETE FROM detent.migration WHERE version > 1", name)
    server().execute("DROP TABLE detent.feed", name)
    with pytest.raises(Invalid, match="needs"):
        check_schema(pool)
    assert migrate(pool) == [each for number, each, _ in migrations() if number > 1]
    check_schema(pool)
    pool.close()


def test_migrations_that_run_at_once_are_applied_once(database):
    pools, applied = [Pool(database) for _ in range(4)], []
    threads = [threading.Thread(target=lambda pool=pool: applied.append(migrate(pool))) for pool in pools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pool in pools:
        pool.close()

    assert sorted(map(len, applied)) == [0, 0, 0, len(migrations())]


def test_the_run_time_role_can_neither_change_nor_remove_a_commit(database):
    import psycopg

    url = prepare(server(), database.rpartition("/")[2])
    for statement in (
        "UPDATE detent.commit SET line = ''",
        "DELETE FROM detent.commit",
        "TRUNCATE detent.commit",
        "DELETE FROM detent.session",
        "DELETE FROM detent.project",
        "DROP TABLE detent.commit",
        "CREATE TABLE detent.other ()",
        "UPDATE detent.migration SET version = 0",
    ):
        with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)


def test_the_doctor_warns_of_a_role_that_may_change_commits(tool, database):
    migrate(pool_of(database))
    tool("init", "--store", database).ok()
    tool("start", "feature", "Add login").ok()

    findings = tool("doctor", "--json").json()["findings"]

    assert ["may change and remove commits" in each["message"] for each in findings] == [True]


def test_a_role_without_privileges_is_told_how_to_get_them(tool, database):
    migrate(pool_of(database))
    url = database.replace(database.partition("://")[2].partition("@")[0], ROLE)

    code, message, way_out = tool("init", "--store", url).error()

    assert (code, "permission denied" in message) == (1, True)
    assert "detent store roles" in way_out


def test_a_missing_driver_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(Invalid, match="the driver is not installed") as refusal:
        driver()

    assert refusal.value.way_out == "pip install 'detent[postgres]'"


def test_every_statement_of_the_store_is_used():
    source = "".join(path.read_text() for path in Path("src/detent/store/postgres").glob("*.py"))

    assert [name for name in queries() if f'"{name}"' not in source] == []


def test_packages_of_a_monorepo_have_journals_of_their_own(tmp_path):
    from tests.support.postgres import new_project, with_table

    name = new_project(server_url())
    text = with_table(
        'gates = "off"\n\n[projects.api]\npath = "api"\n\n[projects.web]\npath = "web"\n', server_url(), name
    )
    (tmp_path / "detent.toml").write_text(text)
    for package in ("api", "web"):
        (tmp_path / package).mkdir()
        with open_project(tmp_path, project=package, actor="ada") as project:
            project.start(row("a"), f"work on {package}")

    with open_project(tmp_path, project="api", actor="ada") as project:
        assert project.store.sessions() == ["WFS-work-on-api"]
        assert project.store.read("WFS-work-on-api", START).end.version == 1
