"""Starts a program as a person would: at a terminal of its own, and below no process of an agent.

    python -m tests.support.attended PROGRAM [ARGUMENT]...

Tests decide as people do, so they need a terminal, wherever they are started: at a terminal, in CI, or by an agent.
A process is started whose parent has ended, so that the system adopts it, with an environment without marks and with a
pseudo terminal as its controlling terminal. Input and output stay those of the caller. Whoever holds the terminal types
yes when Detent asks there whether a decision is the person's.

Detent cannot tell such a process from a person's; docs/decisions.md says so.
"""

import fcntl
import os
import pty
import select
import signal
import sys
import termios
from contextlib import suppress
from types import FrameType

from detent.clients.registry import client_programs
from detent.core.actor import chain_text, sign_of_agent
from detent.engine.actor import agent_marks, own_lineage
from detent.engine.agents.ancestry import terminal
from detent.engine.confirm import QUESTION

#: Tells the adopted process where to report. It is no mark that the product knows.
_REPORT = "--report-to"
#: Set once it was tried, so that it is not tried for ever.
_TRIED = "TESTS_ATTENDED"
_CHUNK = 65536


def is_attended() -> bool:
    """Whether the process has a terminal that was made here, at which questions are answered."""
    has_terminal = _TRIED in os.environ and terminal() is not None
    return has_terminal and sign_of_agent(own_lineage(), agent_marks(), client_programs()) is None


def run_attended(command: list[str]) -> int:
    """Run the command and return its exit code."""
    if _TRIED in os.environ:
        sys.exit(f"a terminal below no agent cannot be had here: {chain_text(own_lineage())}")
    reads, writes = os.pipe()
    clean = {name: value for name, value in os.environ.items() if name not in agent_marks()} | {_TRIED: "1"}
    if os.fork() == 0:
        # The parent of the adopted process ends at once.
        if os.fork() == 0:
            os.close(reads)
            os.set_inheritable(writes, True)
            module = [sys.executable, "-m", "tests.support.attended", _REPORT, str(writes)]
            os.execve(sys.executable, [*module, *command], clean)
        os._exit(0)
    os.wait()
    os.close(writes)
    with os.fdopen(reads) as report:
        child = int(report.readline() or 0)

        def pass_on(kind: int, _frame: FrameType | None) -> None:
            with suppress(ProcessLookupError):
                os.killpg(child, kind)

        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(kind, pass_on)
        return int(report.readline() or 1)


def answered(terminal: int, shown: bytes) -> bytes:
    """Type yes for every question in what was shown; returns the rest, which may be the beginning of one."""
    question = QUESTION.encode()
    for _ in range(shown.count(question)):
        os.write(terminal, b"y\n")
    return shown.rpartition(question)[2][-len(question) :]


def _supervise(report: int, command: list[str]) -> int:
    """Run the command at a new terminal, read what it writes there, and report its exit code."""
    ours, theirs = pty.openpty()
    os.set_inheritable(report, False)
    child = os.fork()
    if child == 0:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        os.close(ours)
        os.close(theirs)
        os.execvp(command[0], command)
    # Our own copy of the terminal stays open: a terminal without a holder is at its end, and reading it never waits.
    os.write(report, b"%d\n" % child)
    ended, status, shown = 0, 0, b""
    while not ended:
        # An error at the report means that its reader is gone: no process waits for the program any more.
        poll = select.poll()
        poll.register(report, 0)
        poll.register(ours, select.POLLIN)
        for descriptor, _ in poll.poll(100):
            if descriptor == report:
                with suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
            else:
                with suppress(OSError):
                    shown = answered(ours, shown + os.read(ours, _CHUNK))
        ended, status = os.waitpid(child, os.WNOHANG)
    code = os.waitstatus_to_exitcode(status)
    with suppress(OSError):
        os.write(report, b"%d\n" % (code if code >= 0 else 128 - code))
    return code


def main(arguments: list[str]) -> int:
    if arguments[:1] == [_REPORT]:
        return _supervise(int(arguments[1]), arguments[2:])
    if is_attended():
        os.execvp(arguments[0], arguments)
    return run_attended(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
