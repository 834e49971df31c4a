"""A process that is talked to: whatever it does, its lines come, and nothing of it is left."""

import os
import signal
import sys
from contextlib import closing

import pytest

from detent.process import conversation as talk
from detent.process.conversation import ERROR_BYTES, Exited, Input, converse
from tests.support.waiting import is_running, until

BIG = 3 * 1024 * 1024


def talked(script, *, cwd="/", given=b"", timeout_s=60.0, stopping=lambda: False, env=None):
    argv = ["bash", "-c", script]
    return list(
        converse(argv, cwd=str(cwd), env=env or os.environ, given=given, timeout_s=timeout_s, stopping=stopping)
    )


def stopped(script):
    """What a process says that is stopped once it has said something."""
    items = []
    argv = ["bash", "-c", script]
    items.extend(converse(argv, cwd="/", env=os.environ, timeout_s=60.0, stopping=lambda: bool(lines(items))))
    return items


def lines(items):
    return [line for item in items if isinstance(item, list) for line in item]


# What it says


def test_lines_come_in_order_and_the_end_last():
    items = talked("echo one; echo two >&2; echo; printf three; exit 3")

    assert lines(items) == [b"one", b"", b"three"]
    assert items[-1] == Exited(3, "two")
    assert [item for item in items[:-1] if isinstance(item, Exited)] == []


def test_a_line_comes_as_soon_as_it_is_whole():
    script = "echo $$; sleep 60"
    with closing(converse(["bash", "-c", script], cwd="/", env={}, timeout_s=60, stopping=bool)) as items:
        [pid] = next(item for item in items if item is not None)
        assert is_running(int(pid))  # it has more to do


def test_silence_is_told_so_that_whoever_listens_can_do_something_else():
    assert talked("sleep 0.3").count(None) >= 2


def test_a_line_that_never_ends_is_cut_and_how_much_is_told(monkeypatch):
    monkeypatch.setattr(talk, "MAX_LINE_BYTES", 1000)

    items = talked("head -c 300000 /dev/zero | tr '\\0' x; echo; echo short; head -c 1005 /dev/zero | tr '\\0' y")

    assert lines(items) == [b"x" * 1000, b"short", b"y" * 1000]
    assert items[-1].dropped == 299_000 + 5


def test_of_what_it_complains_about_the_last_is_kept():
    items = talked(f"head -c {ERROR_BYTES * 2} /dev/zero | tr '\\0' x >&2; echo end >&2")

    assert items[-1].errors.endswith("xend")
    assert len(items[-1].errors) == ERROR_BYTES - 1


def test_bytes_that_are_no_text_do_no_harm():
    items = talked("printf 'a\\xff\\n'; printf '\\xfe' >&2")

    assert (lines(items), items[-1].errors) == ([b"a\xff"], "\ufffd")


# What it is told


def test_it_is_given_its_input_whole_however_much_it_says_meanwhile():
    given = b"x" * BIG

    items = talked("tee >(wc -c >&2) | fold -w 1000", given=given)

    assert sum(map(len, lines(items))) == BIG
    assert items[-1].errors == str(BIG)


@pytest.mark.parametrize("script", ["exit 4", "exec <&-; sleep 0.2; exit 4"])
def test_input_that_nobody_reads_is_no_failure(script):
    assert talked(script, given=b"x" * BIG)[-1] == Exited(4)


def test_an_answer_to_a_line_is_sent_before_the_next_line_is_looked_at():
    given, waiting = Input(), []
    argv = ["bash", "-c", "printf 'one\\ntwo\\n'; read -r answer; echo $answer"]
    for item in converse(argv, cwd="/", env=os.environ, given=given, timeout_s=60.0, stopping=lambda: False):
        for line in lines([item]):
            waiting.append((line, bytes(given.pending)))
            given.write(b"hello\n" if line == b"one" else b"")

    assert waiting == [(b"one", b""), (b"two", b""), (b"hello", b"")]


def test_an_answer_that_nobody_reads_is_no_failure():
    given = Input()
    argv = ["bash", "-c", "exec <&-; printf 'one\\ntwo\\n'; sleep 0.2"]
    items = []
    for item in converse(argv, cwd="/", env=os.environ, given=given, timeout_s=60.0, stopping=lambda: False):
        items.append(item)
        given.write(b"hello\n" if lines([item]) else b"")

    assert items[-1] == Exited(0)


def test_without_input_it_reads_an_end():
    assert lines(talked("wc -c")) == [b"0"]


def test_its_environment_and_directory_are_those_that_it_is_given(tmp_path):
    items = talked(
        'pwd; env | sort | grep -E "^(ONE|HOME)="', cwd=tmp_path, env={"ONE": "1", "PATH": os.environ["PATH"]}
    )

    assert lines(items) == [str(tmp_path).encode(), b"ONE=1"]


# How it ends


def test_what_cannot_be_started_says_why(tmp_path):
    [end] = converse([str(tmp_path / "missing")], cwd="/", env={}, timeout_s=1, stopping=bool)

    assert end == Exited(None, problem=f"could not start {tmp_path}/missing: No such file or directory")


def test_one_that_takes_too_long_is_ended_and_what_it_said_stays():
    items = talked("echo begun; sleep 60", timeout_s=0.5)

    assert lines(items) == [b"begun"]
    assert items[-1] == Exited(None, problem="ended after 0.5 s", timed_out=True)


def test_one_that_is_stopped_is_ended_kindly_first(tmp_path):
    script = f"trap 'echo bye > {tmp_path}/said; exit 0' TERM; echo begun; while :; do sleep 0.05; done"

    items = stopped(script)

    assert items[-1].problem == "stopped"
    assert items[-1].exit_code is None
    assert (tmp_path / "said").read_text() == "bye\n"


def test_one_that_does_not_listen_is_ended_all_the_same():
    items = stopped("trap '' TERM; echo $$; while :; do sleep 0.05; done")

    assert not is_running(int(lines(items)[0]))


def test_closing_the_conversation_ends_the_process_and_its_children():
    argv = ["bash", "-c", "sleep 60 & echo $! $$; wait"]
    items = converse(argv, cwd="/", env=os.environ, timeout_s=60, stopping=bool)
    pids = [int(pid) for pid in next(item for item in items if item)[0].split()]
    assert all(map(is_running, pids))

    items.close()

    assert until(lambda: not any(map(is_running, pids)))


def test_what_it_left_in_its_group_ends_with_it():
    [line] = lines(talked("sleep 60 >/dev/null 2>&1 & echo $!"))

    assert until(lambda: not is_running(int(line)))


def test_a_daemon_that_holds_the_pipe_keeps_nobody_waiting():
    daemon = "import os, sys, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(60)"

    items = talked(f'{sys.executable} -c "{daemon}" & sleep 0.5; echo done')
    pid = int(lines(items)[0])
    try:
        assert is_running(pid)  # and the call did not wait for it
        assert (lines(items)[-1], items[-1].exit_code) == (b"done", 0)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_nothing_is_left_open():
    before = len(os.listdir("/proc/self/fd"))

    talked("echo one; echo two >&2; cat", given=b"three")
    talked("sleep 60", timeout_s=0.1)

    assert len(os.listdir("/proc/self/fd")) == before
