"""A test run that an agent made: notes it, and lets another process record it, so that the client need not wait.

The note is on the disk before the client has its answer. Builtins only.
"""

import posix

from detent.core.testrun.seen import MAX_OUTPUT, SEEN
from detent.hooks.files import TOLD, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from detent.clients.dialect import Dialect


def note_run(folder: str, client: str, dialect: "Dialect", payload: "Any", command: str) -> None:
    """Note a test run in the folder of the session. Raises `OSError` where that is not possible."""
    from _json import encode_basestring_ascii as quote
    from time import time, time_ns

    output, code = dialect.shell_result(payload)
    text = (
        f'{{"at":{time()!r},"client":{quote(client)},"command":{quote(command)},'
        f'"output":{quote(output[-MAX_OUTPUT:])},"exit_code":{"null" if code is None else code}}}'
    )
    name = f"{folder}/{SEEN}{time_ns()}-{posix.getpid()}"
    _make(f"{folder}/{SEEN}"[:-1])
    # Written beside its name, as the store does it: a reader never sees half of it.
    fd = posix.open(f"{name}.tmp", posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600)
    try:
        posix.write(fd, text.encode("utf-8", "replace"))
        posix.fdatasync(fd)
    finally:
        posix.close(fd)
    posix.rename(f"{name}.tmp", name)


def behind_the_client(work: "Callable[[], object]") -> None:
    """Do the work in a process that the client neither waits for nor ends."""
    if posix.fork():
        return
    try:
        posix.setsid()
        null = posix.open("/dev/null", posix.O_RDWR)
        for fd in (0, 1, 2):
            posix.dup2(null, fd)
        work()
    finally:
        posix._exit(0)  # noqa: SLF001 - the parent goes on with everything else


def write_told(state: str, conversation: str, text: str) -> None:
    """Keep the words about a run for the next event of the conversation."""
    name = f"{state}/{TOLD}"
    fd = posix.open(f"{name}.tmp", posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
    try:
        posix.write(fd, f"{_line(conversation)}\n{text}".encode("utf-8", "replace"))
    finally:
        posix.close(fd)
    posix.rename(f"{name}.tmp", name)


def take_told(state: str, conversation: str) -> str:
    """The words about runs of this conversation that were recorded since its last event; they are told once."""
    data = read_file(f"{state}/{TOLD}")
    if data is None:
        return ""
    whose, _, text = data.decode("utf-8", "replace").partition("\n")
    if whose != _line(conversation):
        return ""
    try:
        posix.unlink(f"{state}/{TOLD}")
    except OSError:
        # Another event of the conversation was faster, or the directory is read-only: then it would be told for ever.
        return ""
    return text


def _line(conversation: str) -> str:
    return conversation.replace("\n", " ")


def _make(directory: str) -> None:
    for each in (directory.rpartition("/")[0], directory):
        try:
            posix.mkdir(each, 0o700)
        except FileExistsError:
            continue
