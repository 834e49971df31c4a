"""The screen of a run, in a process of its own at a terminal or a pipe."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.support.terminal import Terminal

ROOT = str(Path(__file__).parents[2])
HEAD = """
import sys, time
from detent.cli.run_screen import Screen, Style
from detent.errors import StoreFailed
from tests.support.values import session_at
from tests.support.run_story import *
from detent.core.session.status import Status
session = session_at({"a": Status.IN_PROGRESS})
def screen(style=None, **settings):
    settings = {"now": lambda: at(30), "style": style or Style.fitting(json=False), **settings}
    return Screen(lambda: session, **settings)
"""


def environment(**more: str) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH",)}
    return {**kept, "TERM": "xterm", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONPATH": ROOT, **more}


def at_terminal(script: str, *, limit_s: float = 60) -> Terminal:
    terminal = Terminal([sys.executable, "-c", HEAD + script], cwd=ROOT, env=environment())
    assert terminal.wait(limit_s) == 0, terminal.text
    return terminal


def in_a_pipe(script: str) -> bytes:
    return subprocess.run(
        [sys.executable, "-c", HEAD + script], env=environment(), stdout=subprocess.PIPE, check=True, timeout=60
    ).stdout


def test_nothing_is_drawn_while_something_is_asked_and_the_question_stays():
    terminal = at_terminal("""
shown = screen()
shown.tell(started())
shown.tell(turn(1, "a"))
with shown.aside():
    print("which colour? blue", flush=True)
    shown.tell(did(2, "a", ToolUsed(tool="Bash", input="unseen")))
    time.sleep(0.3)
    shown.tick()
    print("still asked", flush=True)
shown.tell(did(3, "a", ToolUsed(tool="Bash", input="seen")))
shown.close()
print("below")
""")
    before, asked, behind = terminal.text.partition("which colour? blue")

    assert "claude" in before
    assert asked
    assert "unseen" not in behind.partition("still asked")[0]
    shown = terminal.grid.shown
    first = shown.index("which colour? blue")
    assert shown[first + 1] == "still asked"
    assert any("Bash  seen" in line for line in shown[first:])
    assert shown[-2] == "below"


def test_what_was_told_meanwhile_is_written_afterwards():
    out = in_a_pipe("""
shown = screen(Style.LINES)
with shown.aside():
    shown.tell(turn(1, "a"))
    sys.stdout.write("asked\\n")
shown.tell(turn(2, "b"))
""").decode()

    assert [line.split()[-1] if "asked" in line else line.split()[2] for line in out.splitlines()] == [
        "asked",
        "a",
        "b",
    ]


def test_a_question_that_is_open_at_the_end_does_not_hide_how_it_ended():
    terminal = at_terminal("""
shown = screen()
shown.tell(started())
with shown.aside():
    print("which colour? ", end="", flush=True)
    shown.tell(RunEnded(at=at(9), end=End.PAUSED))
    shown.close()
""")
    shown = terminal.grid.shown

    assert "which colour?" in shown
    assert "WFS-trial · trial · paused after 9s" in shown


def test_as_json_every_event_is_a_line():
    out = in_a_pipe("""
shown = screen(Style.JSON)
for event in whole_run():
    shown.tell(event)
shown.close()
""")
    from detent.core.run.run_event import RunEvent
    from tests.support.run_story import whole_run

    assert [msgspec.json.decode(line, type=RunEvent) for line in out.splitlines()] == whole_run()


def test_the_clock_moves_without_anything_being_told():
    terminal = at_terminal("""
from datetime import UTC, datetime, timedelta
begun = time.monotonic()
shown = screen(now=lambda: at(min(time.monotonic() - begun, 2)))  # however late the last tick is
shown.tell(started())
passed = 0.0
while passed < 3.5:
    passed = time.monotonic() - begun
    shown.tick()
    time.sleep(0.05)
shown.close()
""")

    assert "running for 2s" in terminal.text
    assert terminal.text.count("WFS-trial") < 8


def test_a_journal_that_cannot_be_read_for_a_moment_leaves_the_picture():
    terminal = at_terminal("""
states = iter([session])
def state():
    for one in states:
        return one
    raise StoreFailed("the disk is full")
shown = Screen(state, style=Style.LIVE, now=lambda: at(30))
shown.tell(started())
time.sleep(0.2)
shown.tell(turn(1, "a"))
shown.close()
""")

    assert any("claude" in line for line in terminal.grid.shown)


@pytest.mark.parametrize("style", ["LINES", "JSON"])
def test_a_program_is_called_once_for_each_need(tmp_path, style):
    called = tmp_path / "called"
    notify = ["sh", "-c", f'printf "%s\\n" "$1" >> {called}', "notify"]
    in_a_pipe(f"""
import threading
shown = Screen(lambda: session, style=Style.{style}, now=lambda: at(0), notify={notify!r})
shown.tell(started())
shown.tell(needed(1, "a", text="look\\nat it"))
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
shown.tell(needed(2, "a", text="look\\nat it"))
shown.tell(needed(3, "b"))
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
""")

    assert called.read_text().splitlines() == [
        "WFS-add-login a: look at it",
        "WFS-add-login b: gate approval is PENDING: 0 of 1 approvals",
    ]


def test_a_program_that_hangs_or_is_missing_holds_nothing_up():
    in_a_pipe("""
for notify in (["sleep", "3600"], ["/nowhere/at/all"]):
    shown = Screen(lambda: session, style=Style.LINES, now=lambda: at(0), notify=notify)
    shown.tell(needed(1, "a"))
    shown.close()
""")


def test_telling_and_ticking_from_two_threads_draws_whole_pictures():
    terminal = at_terminal("""
import threading
shown = screen()
shown.tell(started())
over = threading.Event()
def tick():
    while not over.is_set():
        shown.tick()
ticker = threading.Thread(target=tick)
ticker.start()
for number in range(3000):
    shown.tell(did(number / 100, "a", ToolUsed(tool="Bash", input=f"step-{number}")))
over.set()
ticker.join()
shown.close()
""")
    shown = terminal.grid.shown

    assert sum(line.startswith("WFS-trial") for line in shown) == 1
    assert any("step-2999" in line for line in shown)


def test_a_run_goes_on_when_nobody_reads_what_it_tells():
    script = """
shown = screen(Style.LINES)
sys.stdin.readline()
for number in range(500):
    shown.tell(turn(number, "a"))
shown.close()
print("went on", file=sys.stderr)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + script],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None

    errors = process.communicate(b"go\n", timeout=60)[1]
    assert (process.returncode, errors) == (0, b"went on\n")
