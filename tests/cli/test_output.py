"""The form of answers: colour, encodings, pipes, JSON, interrupts, and what is loaded."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import termios

import msgspec
import pytest

from detent.render.terminal.canvas import columns_of
from tests.support.command import DETENT, RUN_S_MAX, loaded, normalised, on_a_terminal
from tests.support.waiting import wait_until

CHANGING = ["begin", "finish -m x", "fail -m x", "redo a", "skip a --reason x", "complete", "cancel --reason x"]


def test_colour_is_for_terminals_only(session):
    coloured = normalised(on_a_terminal(session, "status", TERM="xterm"))
    assert "\x1b[" in coloured
    piped = normalised(session("status").ok().out)
    assert "\x1b" not in piped
    assert re.sub(r"\x1b\[\d+m", "", coloured) == piped
    assert normalised(on_a_terminal(session, "status", TERM="xterm", NO_COLOR="1")) == piped
    assert normalised(on_a_terminal(session, "status", TERM="dumb")) == piped


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_it_fits_the_terminal(session, columns):
    for arguments in (["status"], ["log"], ["why"], ["graph"], ["history"], ["workflows"]):
        text = on_a_terminal(session, *arguments, columns=columns, TERM="dumb")
        assert max(columns_of(line) for line in text.splitlines()) <= columns


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_an_error_breaks_no_word_at_a_terminal(session, columns):
    piped = session("start", "fixx", "Try it").err

    shown = on_a_terminal(session, "start", "fixx", "Try it", columns=columns, code=1, TERM="dumb")

    lines = shown.splitlines()
    assert max(map(columns_of, lines)) <= columns < max(map(columns_of, piped.splitlines()))
    assert shown.split() == piped.split()


def test_an_encoding_without_the_glyphs(session):
    session("finish", "-m", "Größe 登录").ok()
    shown = subprocess.run(
        [DETENT, "status"],
        cwd=session.directory,
        env=session.environment | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    ).stdout
    text = shown.decode("ascii")
    assert "Gr??e ??" in text
    assert "+ 2 Impact analysis  02-impact-analysis" in text
    as_json = session("status", "--json", PYTHONIOENCODING="ascii").json()
    assert as_json["phases"][1]["summary"] == "Größe 登录"


def test_the_options_of_all_verbs_may_stand_before_or_after(session):
    elsewhere = type(session)(session.directory.parent)
    name = session.directory.name
    before, after = elsewhere("--json", "-C", name, "status").json(), elsewhere("status", "-C", name, "--json").json()
    assert before == after
    assert before["session"] == "WFS-add-login-with-passkeys"


def test_a_package_of_a_monorepo(detent):
    (detent.directory / "detent.toml").write_text('[projects.web]\npath = "web"\n[projects.api]\npath = "api"\n')
    (detent.directory / "web").mkdir()
    detent("start", "fix", "On the page", "--project", "web").ok()
    assert "On the page" in detent("status", DETENT_PROJECT="web").ok().out
    assert "On the page" in detent("-C", "web", "status").ok().out
    assert "No session is active" in detent("status", "--project", "api", DETENT_PROJECT="web").ok().out
    assert "name one with --project" in detent("status").error()[2]


@pytest.mark.parametrize(
    "verb", ["status", "why", "log", "graph", "workflows", "history", "adopt", "doctor", *CHANGING]
)
def test_with_json_every_answer_and_every_error_is_json(session, verb):
    ran = session(*verb.split(), "--json")
    answer = ran.json()
    assert ran.err == ""
    assert answer["notices"] == []
    if ran.code:
        assert set(answer["error"]) == {"kind", "message", "way_out"}


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        ("begin 99 --json", 1, "not_found"),
        ("begin 08-code-review --json", 1, "refused"),
        ("finish --json", 2, "usage"),
        ("--json nonsense", 2, "usage"),
        ("status --nonsense --json", 2, "usage"),
        ("finish -m x --tokens-in -1 --json", 2, "usage"),
    ],
)
def test_errors_as_json(session, arguments, code, kind):
    ran = session(*arguments.split())
    assert (ran.code, ran.json()["error"]["kind"]) == (code, kind)


def test_another_process_holds_the_lock(session):
    import fcntl

    with (session.state / ".lock").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, message, way_out = session("finish", "-m", "x").error()
    assert code == 4
    assert f"process {os.getpid()}" in message
    assert "try again" in way_out


@pytest.mark.parametrize(
    "arguments", ["status", "log", "export log", "status --json", "begin 99 --json", "finish -m x"]
)
def test_nobody_reads_the_answer(session, arguments):
    ours, theirs = os.pipe()
    os.close(ours)
    ran = subprocess.run(
        [DETENT, *arguments.split()],
        cwd=session.directory,
        env=session.environment,
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(theirs)
    assert (ran.returncode, ran.stderr) == (int("99" in arguments), b"")


def unread(pipe):
    """How many bytes in the pipe wait for their reader."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_an_interrupt(session):
    """While it waits for the task on standard input."""
    process = subprocess.Popen(
        [DETENT, "start", "fix", "-"],
        cwd=session.directory,
        env=session.environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    before = session.digest()
    assert process.stdin is not None
    process.stdin.write(b"Add login")
    process.stdin.flush()
    wait_until(lambda: unread(process.stdin) == 0, during=process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=RUN_S_MAX)
    assert (process.returncode, errors) == (130, b"detent: interrupted\n")
    assert session.digest() == before


def test_a_bug_is_called_one(session):
    script = (
        "import sys, detent.engine.project as project\n"
        "def broken(*_, **__): raise ZeroDivisionError('by design')\n"
        "project.open_project = broken\n"
        "from detent.cli.main import run\n"
        "sys.exit(run(['status']))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=session.directory, capture_output=True, check=False)
    assert ran.returncode == 70
    assert b"this is a bug in Detent" in ran.stderr
    assert b"ZeroDivisionError: by design" in ran.stderr


def test_help_loads_no_engine(session):
    modules = loaded(session, "--help")
    assert not {name for name in modules if name.startswith(("detent.engine", "detent.core", "detent.store"))}
    assert "msgspec" not in modules


def test_status_loads_only_what_it_needs(session):
    (session.directory / "detent.toml").unlink()
    modules = loaded(session, "status")
    assert not modules & {"click", "tomllib", "json", "dataclasses", "difflib", "importlib.resources", "shutil"}
    assert not modules & {"importlib.metadata", "subprocess", "rich"}


def test_an_edit_by_hand_is_told_by_who_looks_and_adopted_by_who_changes(session):
    document = session.state / "state.json"
    edited = msgspec.json.decode(document.read_bytes())
    edited["phases"]["02-impact-analysis"]["summary"] = "half of it"
    document.write_bytes(msgspec.json.encode(edited))
    before = session.digest()
    looked = session("status").ok()
    assert "state.json was edited by hand" in looked.err
    assert "edited by hand" not in looked.out
    assert session("status", "--json").json()["notices"] == [looked.err.removeprefix("detent: ").strip()]
    assert session.digest() == before
    changed = session("finish", "-m", "Done", "--json").ok().json()
    assert len(changed["notices"]) == 1
    assert "state.json" in changed["notices"][0]


def test_adopt_says_what_became_of_an_edit(session):
    document = session.state / "state.json"
    document.write_text("{ broken")
    adopted = session("adopt").ok()
    assert "was not adopted and is kept as state.json.rejected-1" in adopted.out
    assert "it is not JSON" in adopted.out
    assert (session.state / "state.json.rejected-1").read_text() == "{ broken"
    assert session("adopt", "--json").json()["adoptions"] == []


def test_a_notice_is_not_lost_when_the_command_fails(session):
    (session.state / "state.json").write_text("{ broken")
    failed = session("begin", "99")
    assert failed.code == 1
    assert "was not adopted" in failed.err
    (session.state / "state.json").write_text("{ broken")
    assert "was not adopted" in session("begin", "99", "--json").json()["notices"][0]


def test_an_interrupted_end_is_shown_truly_and_tidied_up(session):
    marker = session.state / ".active-WFS-add-login-with-passkeys"
    session("cancel", "--reason", "enough").ok()
    marker.touch()
    shown = session("status").ok()
    assert "cancelled after" in shown.out
    assert "interrupted" in shown.err
    assert marker.exists()
    session("adopt").ok()
    assert not marker.exists()
    assert "No session is active" in session("status").ok().out
