"""The hook after a shell call, which its launcher leaves out unless a call under way expects it.

Starting an interpreter takes nearly all of a hook's time, and after most calls little is left to do: the hook before
the next call, or at the end of the turn, can look for changes that other programs made. So the hook before a call says
whether the one after it has more to do, in a directory that a launcher in `/bin/sh` reads:

    .workflow/.expected/            while it is there and empty, the launcher starts no interpreter after a shell call
    .workflow/.expected/<call>      a call under way that expects its hook, until that hook has run

A call that expects its hook is noted before it is allowed, so that other calls of the conversation and of its agents
cannot hide it. Where nothing can be noted there is no directory, and every hook runs. An agent that writes here gains
little: what it changed is found before its next call all the same.

Builtins only: every call imports it. `clients/installing/hook_settings.py` has the launcher.
"""

import posix

from detent.clients.dialect import EXPECTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from detent.clients.dialect import Dialect

_MAX_NAME = 200


def client_project(dialect: "Dialect") -> str:
    """The project whose directory the launcher reads; empty where no hook is left out.

    In a sandbox the state is read-only, and the runner answers.
    """
    return "" if b"DETENT_SOCKET" in posix.environ else dialect.own_project()


def is_look_due(project: str) -> bool:
    """Whether hooks of this project may have been left out.

    That is noted: the launcher compares the time of the directory with the times of the client's settings.
    """
    if not project:
        return False
    try:
        posix.utime(f"{project}/.workflow/{EXPECTED}")
    except (OSError, ValueError):
        return False
    return True


def leave_out(project: str) -> None:
    """Let the launcher leave out the hook after this call."""
    _make(f"{project}/.workflow/{EXPECTED}")


def expect(project: str, payload: "Any") -> None:
    """Have the launcher start the hook after this call."""
    directory = f"{project}/.workflow/{EXPECTED}"
    _make(directory)
    try:
        fd = posix.open(f"{directory}/{_name(payload)}", posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
        try:
            posix.write(fd, _whose(payload))
        finally:
            posix.close(fd)
    except (OSError, ValueError):
        _remove(directory)


def has_run(project: str, payload: "Any") -> None:
    """The hook after this call has run."""
    if not project:
        return
    try:
        posix.unlink(f"{project}/.workflow/{EXPECTED}/{_name(payload)}")
    except (OSError, ValueError):
        return


def end_turn(project: str, payload: "Any") -> None:
    """Let every later hook run, and forget calls of this agent whose hook never came, as a person denied them."""
    if not project:
        return
    directory = f"{project}/.workflow/{EXPECTED}"
    try:
        for name in posix.listdir(directory):
            fd = posix.open(f"{directory}/{name}", posix.O_RDONLY | posix.O_NONBLOCK)
            try:
                whose = posix.read(fd, 1 << 12)
            finally:
                posix.close(fd)
            if whose == _whose(payload):
                posix.unlink(f"{directory}/{name}")
    except (OSError, ValueError):
        pass
    _remove(directory)


def _make(directory: str) -> None:
    try:
        posix.mkdir(directory, 0o700)
    except (OSError, ValueError):
        return


def _remove(directory: str) -> None:
    """Remove the directory, unless another call expects its hook."""
    try:
        posix.rmdir(directory)
    except (OSError, ValueError):
        return


def _name(payload: "Any") -> str:
    call = str(payload.get("tool_use_id"))[:_MAX_NAME]
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in call)


def _whose(payload: "Any") -> bytes:
    """The conversation and, below it, the agent."""
    return f"{payload.get('session_id')}\n{payload.get('agent_id') or ''}".encode("utf-8", "replace")[: 1 << 12]
