"""A test run is noted before the client goes on, and recorded behind it: nothing is lost, doubled or counted wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from detent.hooks.seen import take_told, write_told
from tests.support.hooked_project import FAST, KEPT, PASSES, Place
from tests.support.waiting import wait_until

PHASE = "06-implementation"
SETTINGS = f'[workflows.row]\nphases = [{{ key = "{PHASE}", gates = [{{ kind = "tests" }}] }}, "08-code-review"]\n'
GREEN = "collected 3 items\n\ntest_a.py ...\n\n============ 3 passed in 0.02s ============\n"
RED = "FAILED test_a.py::test_b - ValueError: no\n========= 1 failed, 2 passed in 0.03s =========\n"


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path, settings=SETTINGS)
    made.write("test_it.py", PASSES)
    made.detent("start", "row", "Add search")
    return made


def notes(place):
    return place.root / ".workflow" / place.session() / ".process" / "seen"


def note(place, *, at=None, output=GREEN, **fields):
    """A note as the hook leaves it, whose process was ended before it recorded anything."""
    notes(place).mkdir(parents=True, exist_ok=True)
    seen = {"at": at or time.time(), "client": "claude-code", "command": "pytest", "output": output, "exit_code": 0}
    (notes(place) / f"{time.time_ns()}-1").write_text(json.dumps(seen | fields))


def receipts(place):
    return [event["receipt"] for event in place.events() if event["type"] == "gate_checked"]


def call(place, conversation="s-1", command="true", event="PostToolUse"):
    inputs = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": {"stdout": GREEN}}
    payload = {"session_id": conversation, "cwd": str(place.root), "hook_event_name": event, **inputs}
    return place.raw(json.dumps(payload).encode())


def test_the_next_command_records_a_run_whose_recorder_was_ended(place):
    note(place)

    place.detent("finish", "-m", "done")

    assert [(receipt["result"], receipt["by"]) for receipt in receipts(place)] == [("passed", "seen")]
    assert list(notes(place).iterdir()) == []
    authors = [commit["actor"] for commit in place.disk.journal(place.session())]
    assert {"name": "claude-code", "kind": "agent", "channel": "hook"} in authors


def test_a_kill_behind_the_answer_loses_nothing(place):
    called = {"tool_name": "Bash", "tool_input": {"command": "pytest"}, "tool_response": {"stdout": GREEN}}
    payload = {"session_id": "s-1", "cwd": str(place.root), "hook_event_name": "PostToolUse", **called}
    with nothing_is_recorded(place):
        subprocess.run(
            [sys.executable, "-I", "-S", str(FAST), "claude-code"],
            cwd=place.root,
            env={**KEPT, "NOTED_BY": str(os.getpid())},
            input=json.dumps(payload).encode(),
            check=True,
            timeout=60,
        )
        for process in recorders():
            os.kill(process, signal.SIGKILL)
    assert len(list(notes(place).iterdir())) == 1

    place.detent("adopt")

    assert len(receipts(place)) == 1


@pytest.mark.parametrize("verb", ["status", "why", "gates"])
def test_a_reader_says_that_a_run_is_not_recorded_yet(place, verb):
    note(place, output=RED, exit_code=1)

    assert "a hook saw a test run that is not recorded yet" in place.run(verb).stderr

    place.detent("adopt")
    assert place.run(verb).stderr == ""


def recorders():
    """The processes that the hook of this test left behind, by a variable that it was given."""
    mark, own = f"NOTED_BY={os.getpid()}".encode(), os.getpid()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if mark in environment.split(b"\0") and int(name) != own:
            yield int(name)


def test_a_run_that_was_recorded_right_before_a_kill_is_not_recorded_again(place):
    note(place, output=RED, exit_code=1)
    place.detent("adopt")
    at = time.time() - 60

    note(place, at=at, output=RED, exit_code=1, taken=True)
    place.detent("adopt")
    assert len(receipts(place)) == 1

    note(place, at=at, output=RED, exit_code=1, command="pytest -q", taken=True)
    note(place, at=at, output=RED, exit_code=1)
    place.detent("adopt")
    assert len(receipts(place)) == 3


def test_a_run_is_no_evidence_about_a_file_that_changed_before_it_was_recorded(place):
    note(place, at=time.time() - 1)
    place.write("test_it.py", PASSES + "\n")

    place.refused("finish", "-m", "done")

    [receipt] = receipts(place)
    assert receipt["aside"] == "files changed before it was recorded; run the tests again"


def test_a_failed_run_counts_whatever_changed(place):
    note(place, at=time.time() - 1, output=RED, exit_code=1)
    place.write("test_it.py", PASSES + "\n")

    place.detent("adopt")

    [receipt] = receipts(place)
    assert (receipt["result"], receipt.get("aside")) == ("failed", None)


def test_a_note_that_cannot_be_read_is_removed_with_a_word(place):
    notes(place).mkdir(parents=True)
    (notes(place) / "1-1").write_text("{")

    done = place.run("adopt")

    assert "a note about a test run could not be read" in done.stderr
    assert (list(notes(place).iterdir()), receipts(place)) == ([], [])


def test_its_own_conversation_hears_of_it_once(place):
    assert call(place, command="pytest") == ""
    assert place.has_words()

    assert call(place, "another", event="PreToolUse") == ""
    said = json.loads(call(place, event="PreToolUse"))["hookSpecificOutput"]
    assert said["hookEventName"] == "PreToolUse"
    assert f"tests of {PHASE} is PASS" in said["additionalContext"]
    assert call(place) == ""


def hook(place, conversation, command, output=GREEN):
    """The hook after a test run; the process that records the run may still be there."""
    called = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": {"stdout": output}}
    payload = {"session_id": conversation, "cwd": str(place.root), "hook_event_name": "PostToolUse", **called}
    argv = [sys.executable, "-I", "-S", str(FAST), "claude-code"]
    done = subprocess.run(
        argv, cwd=place.root, env=KEPT, input=json.dumps(payload).encode(), capture_output=True, check=True, timeout=60
    )
    assert done.stdout == b""


@contextmanager
def nothing_is_recorded(place):
    """The recorders wait for the lock of the project until the end of the block."""
    lock = f"exec 9<{place.root}/.workflow/.lock; flock 9; echo held; cat"
    with subprocess.Popen(["bash", "-c", lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.stdin.close()


@pytest.mark.parametrize("conversations", [("s-1", "s-2"), ("s-1", "s-1")], ids=["two conversations", "one"])
def test_whichever_process_records_two_runs_both_are_told(place, conversations):
    with nothing_is_recorded(place):
        for conversation, command in zip(conversations, ("pytest", "pytest -x"), strict=True):
            hook(place, conversation, command)
    wait_until(lambda: len(list(place.root.glob(".workflow/.told/*"))) == 2)
    assert len(receipts(place)) == 2

    for conversation in dict.fromkeys(conversations):
        assert "tests of" in call(place, conversation, event="PreToolUse")
    assert not place.has_words()


def test_words_that_came_one_after_the_other_are_told_in_their_order(place):
    state = str(place.root / ".workflow")
    write_told(state, "s-1", "the first")
    write_told(state, "s-1", "the second")

    words = json.loads(call(place))["hookSpecificOutput"]["additionalContext"]

    assert words == "the first\nthe second"
    assert not place.has_words()


def test_the_words_for_one_conversation_do_not_replace_those_for_another(place):
    call(place, "s-1", command="pytest")
    call(place, "s-2", command="pytest -x")

    assert "is PASS" in call(place, "s-1")
    assert "tests of" in call(place, "s-2")
    assert not place.has_words()


def test_of_many_words_the_last_ones_wait(place):
    state = str(place.root / ".workflow")
    for number in range(30):
        write_told(state, "s-1", f"run {number}")

    assert take_told(state, "s-1").splitlines() == [f"run {number}" for number in range(10, 30)]


def test_a_denial_comes_before_the_words_and_does_not_drop_them(place):
    call(place, command="pytest")

    assert '"deny"' in call(place, command="rm -rf .workflow", event="PreToolUse")
    assert "is PASS" in call(place)


def test_where_it_cannot_be_noted_the_client_waits(place):
    notes(place).parent.mkdir(exist_ok=True)
    notes(place).write_text("")

    assert f"tests of {PHASE} is PASS" in call(place, command="pytest")
    assert len(receipts(place)) == 1
