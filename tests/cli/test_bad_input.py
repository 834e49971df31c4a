"""Whatever is wrong with the input: a clear error with a way out, and nothing has changed."""

import os
import resource
import subprocess

import pytest

from tests.support.command import Ran, Tool
from tests.support.privilege import without_privilege
from tests.support.sandboxed import OFF_NOTICE

JOURNAL = "WFS-add-login-with-passkeys/journal.jsonl"


def refused(tool: Tool, *arguments: str | bytes, stdin: bytes = b"", **settings) -> tuple[int, str, str]:
    before = tool.digest()
    error = Ran(tool.run(*arguments, stdin=stdin, **settings)).error()
    assert tool.digest() == before
    assert "Traceback" not in error[1]
    return error


def test_an_unknown_workflow(session):
    code, message, way_out = refused(session, "start", "faeture", "x")
    assert code == 1
    assert "there is no workflow faeture; did you mean feature?" in message
    assert way_out == "detent workflows"


def test_a_cyclic_graph_is_printed_in_full(session):
    (session.directory / "detent.toml").write_text(
        """
        [workflows.loop]
        phases = [
            { key = "plan", needs = ["review"] },
            { key = "build", needs = ["plan"] },
            { key = "review", needs = ["build"] },
            { key = "ship", needs = ["review"] },
        ]
        """
    )
    # That the settings were changed is recorded first.
    session("adopt").ok()
    code, message, way_out = refused(session, "start", "loop", "x")
    assert code == 1
    assert "phases need each other in a circle: plan -> build -> review -> plan" in message
    assert "detent.toml" in way_out
    session("status").ok()


def test_a_torn_journal_is_cut_at_the_next_append_and_reported(session):
    journal = session.state / JOURNAL
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"version":4,"at":"20')
    assert "02-impact-analysis" in session("status").ok().out
    assert journal.read_bytes() != whole
    finished = session("finish", "-m", "Done").ok()
    assert "dropped an unfinished write of 21 bytes" in finished.err
    assert journal.read_bytes().startswith(whole)
    assert "dropped an unfinished write of 21 bytes" in session("log").ok().out
    assert session("doctor").ok().out == "all is well\n"


def test_a_damaged_journal_names_the_line(session):
    journal = session.state / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"12 requirements", b"99 requirements")
    journal.write_bytes(b"".join(lines))
    for arguments in (["status"], ["finish", "-m", "Done"], ["why"], ["log"]):
        code, message, way_out = refused(session, *arguments)
        assert code == 5
        assert "line 2 of the journal" in message
        assert way_out.startswith("detent doctor shows what is damaged")
    checked = session("doctor")
    assert checked.code == 1
    assert "is damaged behind commit 1" in checked.out


@pytest.fixture
def read_only(session):
    paths = [session.directory, session.state, *session.state.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield session
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_read_only_directory(read_only):
    for arguments in (
        ["begin"],
        ["finish", "-m", "Done"],
        ["start", "fix", "x"],
        ["cancel", "--reason", "x"],
        ["adopt"],
    ):
        code, message, way_out = refused(read_only, *arguments, preexec_fn=without_privilege)
        assert code == 1
        assert "permission denied" in message
        assert "retry" in way_out


@pytest.mark.parametrize(
    "arguments",
    ["status", "status --json", "-C . status", "why", "log", "history", "graph", "export state", "workflows", "doctor"],
)
def test_looking_needs_no_right_to_write(read_only, arguments):
    before = read_only.digest()
    looked = Ran(read_only.run(*arguments.split(), preexec_fn=without_privilege))
    assert (looked.code, looked.err.replace(OFF_NOTICE, "")) == (0, "")
    assert read_only.digest() == before


def test_a_file_that_may_not_grow(session):
    size = (session.state / JOURNAL).stat().st_size
    limit = (size + 10, size + 10)
    code, message, way_out = refused(
        session, "finish", "-m", "Done", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    )
    assert code == 1
    assert "File too large" in message
    assert "nothing was committed" in way_out
    session("finish", "-m", "Done").ok()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
def test_a_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        tool = Tool(disk)
        (disk / "detent.toml").write_text('gates = "off"\n')
        tool("init").ok()
        tool("start", "feature", "Add login with passkeys").ok()
        free = os.statvfs(disk)
        (disk / "filler").write_bytes(b"x" * (free.f_bavail * free.f_bsize))
        for arguments in (["finish", "-m", "D" * 149], ["start", "fix", "another"]):
            while True:
                before = tool.digest()
                tried = tool(*arguments)
                if tried.code:
                    break
                # The last page had room for one more line.
                tool("redo", "01-requirements")
            code, message, way_out = tried.error()
            assert (code, tool.digest()) == (1, before)
            assert "the disk is full" in message
            assert "fix the problem and retry" in way_out
            assert "Exception" not in tried.err
        (disk / "filler").unlink()
        tool("adopt").ok()
        assert tool("doctor").ok().out == "all is well\n"
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_missing_project(detent):
    for arguments in (["status"], ["start", "feature", "x"], ["begin"]):
        code, message, way_out = detent(*arguments).error()
        assert (code, way_out) == (1, "detent init")
        assert "no Detent project in" in message
    assert list(detent.directory.iterdir()) == []


def test_a_missing_directory(project):
    code, message, _ = refused(project, "-C", "nowhere", "status")
    assert (code, message) == (1, "nowhere is not a directory\n")


def test_a_package_that_is_not_there(project):
    (project.directory / "detent.toml").write_text('[projects.web]\npath = "web"\n')
    assert refused(project, "status", "--project", "api")[:2] == (
        1,
        "there is no project api; detent.toml has web\n",
    )


def test_a_stale_token(session):
    old = session("status", "--json").json()["phases"][1]["token"]
    session("redo", "02-impact-analysis").ok()
    for verb in ("finish", "fail"):
        code, message, way_out = refused(session, verb, "--token", old, "-m", "Done")
        assert code == 1
        assert "the token is of attempt 1" in message
        assert "attempt 2" in way_out
    assert refused(session, "finish", "-m", "Done", DETENT_TOKEN=old)[0] == 1


def test_a_token_of_another_phase_than_the_one_named(session):
    token = session("status", "--json").json()["phases"][1]["token"]
    code, message, _ = refused(session, "finish", "03-architecture", "-m", "Done", DETENT_TOKEN=token)
    assert code == 2
    assert "is not of phase 03-architecture" in message


def test_something_that_is_not_a_token(session):
    code, message, way_out = refused(session, "finish", "-m", "Done", "--token", "abc")
    assert (code, "'abc' is not a token" in message, "status --json" in way_out) == (1, True, True)


def test_two_sessions_with_one_name(project):
    project("start", "fix", "x", "--name", "login").ok()
    code, message, way_out = refused(project, "start", "fix", "y", "--name", "login")
    assert code == 1
    assert "there is already a session WFS-login" in message
    assert way_out == "use --name login-002"
    project("start", "fix", "y", "--name", "login-002").ok()


def test_arguments_that_are_not_utf8(session):
    for arguments in (
        [b"start", b"fix", b"caf\xe9"],
        [b"start", b"f\xffx", b"x"],
        [b"finish", b"-m", b"\xfe"],
        [b"finish", b"-m", b"x", b"--artifact", b"\xfe.md"],
        [b"\xff"],
        [b"status", b"--session", b"\xff"],
    ):
        code, message, way_out = refused(session, *arguments)
        assert code == 1
        assert "is not UTF-8 text" in message
        assert "iconv" in way_out
    error = session(b"start", b"fix", b"caf\xe9", "--json")
    assert error.code == 1


def test_standard_input_that_is_not_utf8(session):
    code, message, way_out = refused(session, "start", "fix", "-", stdin=b"ok so far\xe9")
    assert code == 1
    assert "at byte 10" in message
    assert "iconv" in way_out


def test_a_task_of_a_megabyte(session):
    code, message, way_out = refused(session, "start", "fix", "-", stdin=b"x" * (1 << 20))
    assert code == 1
    assert "a task may have 16384 characters and this one has 1048576" in message
    assert "file" in way_out
    assert refused(session, "start", "fix", "x" * 100_000)[0] == 1


def test_a_task_that_tries_to_drive_the_terminal(project):
    project("start", "fix", "\x1b]0;owned\x07\x1b[2J\u202egnorw").ok()
    for arguments in (["status"], ["log"], ["why"], ["begin"], ["graph"]):
        ran = project(*arguments)
        assert not {"\x1b", "\x07", "\u202e"} & set(ran.out + ran.err)
    assert r"\x1b]0;owned" in project("status").out


@pytest.mark.parametrize(
    "verb", ["begin", "finish -m x", "fail -m x", "redo a", "skip a --reason x", "complete", "why"]
)
def test_no_session(project, verb):
    code, message, way_out = refused(project, *verb.split())
    assert (code, message, way_out) == (1, "no session is active", 'detent start WORKFLOW "TASK"')


def test_a_setting_that_does_not_exist(session):
    (session.directory / "detent.toml").write_text("[workflow.x]\n")
    code, message, way_out = refused(session, "begin")
    assert (code, "unknown field" in message) == (1, True)
    assert way_out.endswith("detent schema detent.toml shows the settings")


def test_import_of_something_else(session):
    (session.directory / "x.json").write_text("{")
    assert refused(session, "import", "x.json")[0] == 1
    assert refused(session, "import", "y.json")[0] == 1
    assert refused(session, "import", "-", stdin=b"[]")[0] == 1
