"""Looking on while a session is run: at a terminal, in a pipe, as JSON."""

import signal
import subprocess
from contextlib import contextmanager
from datetime import timedelta

import msgspec
import pytest

from detent.core.run.agent_event import Said, ToolUsed
from detent.core.run.run_event import AgentDid, End, Need, PersonNeeded, RunEnded, RunStarted, TurnStarted
from detent.engine.project import open_project, utc_now
from detent.run.feed import Feed
from detent.run.lease import Lease
from tests.support.command import DETENT, RUN_S_MAX
from tests.support.terminal import Terminal

PHASE = "02-impact-analysis"


class Running:
    """A session that this process runs, as far as anybody can tell."""

    def __init__(self, project, lease: Lease) -> None:
        self.id, self._lease = project.active(), lease
        self.feed = Feed(project.store.feed_writer(self.id))
        self.feed.tell(RunStarted(at=utc_now(), run=lease.run, session=self.id))
        self.feed.tell(TurnStarted(at=utc_now(), phase=PHASE, attempt=1, turn=1, agent="claude", role="analyst"))

    def did(self, did) -> None:
        self.feed.tell(AgentDid(at=utc_now(), phase=PHASE, did=did))

    def needs(self, text: str, at=None) -> None:
        way_out = f"detent approve {PHASE} -m WHY"
        self.feed.tell(
            PersonNeeded(at=at or utc_now(), need=Need.APPROVAL, phase=PHASE, text=text, way_out=way_out, about="x")
        )

    def end(self) -> None:
        self.feed.tell(RunEnded(at=utc_now(), end=End.WAITING, said="a person is needed"))

    def die(self) -> None:
        self._lease.give_back()


@pytest.fixture
def running(session):
    with open_project(session.directory, actor="ada") as project:
        lease = Lease(project, project.session().id)
        yield Running(project, lease)
        lease.give_back()


@contextmanager
def watching(tool, *arguments: str, columns: int = 80, lines: int = 24, **environment: str):
    settings = {key: value for key, value in tool.environment.items() if key != "COLUMNS"} | {"TERM": "xterm"}
    argv = [DETENT, "watch", *arguments]
    terminal = Terminal(argv, cwd=tool.directory, env=settings | environment, columns=columns, lines=lines)
    try:
        yield terminal
    finally:
        if terminal.process.poll() is None:
            terminal.process.kill()


def test_without_a_run_it_says_so_and_shows_where_the_session_stands(session):
    ran = session("watch").ok()
    assert ran.out.startswith("no run of WFS-add-login-with-passkeys is active")
    assert "▸ 2 Impact analysis  02-impact-analysis" in ran.out

    answer = session("watch", "--json").json()
    assert (answer["running"], answer["session"]) == (False, "WFS-add-login-with-passkeys")


def test_the_hint_without_a_run_is_a_command_that_starts_one(session):
    first = session("watch").ok().out.partition("\n")[0]
    assert first == "no run of WFS-add-login-with-passkeys is active; detent run starts one"
    session("pause").ok()
    first = session("watch", "--session", "passkeys").ok().out.partition("\n")[0]
    assert first == "no run of WFS-add-login-with-passkeys is active", "a run of it is refused until it is resumed"
    session("resume", "passkeys").ok()
    session("cancel", "-m", "no longer needed").ok()
    first = session("watch", "--session", "passkeys").ok().out.partition("\n")[0]
    assert first == "no run of WFS-add-login-with-passkeys is active"


def test_without_a_session_it_is_refused(project):
    assert "no session is active" in project("watch").error()[1]


def test_the_picture_is_drawn_over_and_the_last_one_stays(session, running):
    with watching(session) as terminal:
        terminal.until("claude (analyst)")
        for number in range(30):
            running.did(ToolUsed(tool="Bash", input=f"make step-{number}"))
        terminal.until("make step-29")
        running.end()
        assert terminal.wait() == 0

    shown = terminal.grid.shown
    assert shown[0].startswith("WFS-add-login-with-passkeys · feature · waiting after ")
    assert sum("02-impact-analysis" in line for line in shown) == 1
    assert not any("make step-1" in line for line in shown)
    assert shown[-2:] == ["a person is needed", ""]


def test_it_is_drawn_at_most_eight_times_a_second(session, running):
    with watching(session) as terminal:
        terminal.until("claude (analyst)")
        for number in range(2_000):
            running.did(Said(text=f"thought {number}"))
        terminal.until("thought 1999")
        running.end()
        assert terminal.wait() == 0

    assert terminal.text.count("WFS-add-login-with-passkeys") < 60


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (40, 10), (60, 6), (20, 12)])
def test_nothing_above_it_is_drawn_over_in_a_terminal_of_any_size(session, running, columns, lines):
    with watching(session, columns=columns, lines=lines) as terminal:
        for number in range(5):
            running.did(ToolUsed(tool="Bash", input=f"step-{number} " + "把" * 100))
            terminal.until(f"step-{number}")
        running.end()
        assert terminal.wait() == 0

    shown = terminal.grid.shown
    assert len(shown) <= lines
    assert sum(line.startswith("WFS-add-login") for line in shown) == 1


def test_a_terminal_that_is_made_narrower_is_drawn_anew_without_loss(session, running):
    with watching(session, columns=100) as terminal:
        terminal.until("claude (analyst)")
        terminal.resize(60, 24)
        running.did(Said(text="narrow now"))
        terminal.until("narrow now")
        running.end()
        assert terminal.wait() == 0

    last = terminal.text.rpartition("\x1b[2K\x1b[1mWFS")[2]
    assert "narrow now" not in last.split("\n")[0]
    assert "waiting after" in last


def test_the_bell_rings_once_for_each_need_and_not_for_old_ones(session, running):
    running.needs("an old one", at=utc_now() - timedelta(minutes=1))
    with watching(session) as terminal:
        terminal.until("an old one")
        running.needs("look at the plan")
        terminal.until("look at the plan")
        running.needs("look at the plan")
        running.needs("and at this")
        terminal.until("and at this")
        running.end()
        assert terminal.wait() == 0

    assert terminal.grid.bells == 2
    assert any("detent approve 02-impact-analysis -m WHY" in line for line in terminal.grid.shown)


def test_an_interrupt_ends_the_watching_and_not_the_run(session, running):
    with watching(session) as terminal:
        terminal.until("claude (analyst)")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.wait() == 0

    assert "interrupted" not in terminal.text
    assert "running for" in terminal.grid.shown[0]


def test_it_ends_when_whoever_ran_the_session_is_gone(session, running):
    with watching(session) as terminal:
        terminal.until("claude (analyst)")
        running.die()
        assert terminal.wait() == 0


def piped(tool, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [DETENT, "watch", *arguments], cwd=tool.directory, env=tool.environment, stdout=subprocess.PIPE
    )


def test_in_a_pipe_there_are_lines(session, running):
    process = piped(session)
    running.did(ToolUsed(tool="Bash", input="make"))
    running.end()

    out = process.communicate(timeout=RUN_S_MAX)[0].decode()
    assert process.returncode == 0
    assert "\x1b" not in out
    margin = [line[10:28].strip() for line in out.splitlines()]
    assert list(dict.fromkeys(margin)) == ["", "2 Impact analysis"]
    assert f"{PHASE}, attempt 1, turn 1: " in out
    assert "Bash  make" in out


def test_as_json_each_line_is_an_event(session, running):
    process = piped(session, "--json")
    running.end()

    out = process.communicate(timeout=RUN_S_MAX)[0]
    events = [msgspec.json.decode(line) for line in out.splitlines()]
    assert [event["type"] for event in events] == ["run_started", "turn_started", "run_ended"]
    assert events[-1]["end"] == "waiting"


def test_a_reader_that_has_enough_is_no_error(session, running):
    process = piped(session)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    for number in range(200):
        running.did(Said(text=f"thought {number}"))
    running.end()

    assert process.wait(RUN_S_MAX) == 0


def test_a_dumb_terminal_gets_lines(session, running):
    with watching(session, TERM="dumb") as terminal:
        terminal.until("turn 1: claude")
        running.end()
        assert terminal.wait() == 0

    assert "\x1b" not in terminal.text
