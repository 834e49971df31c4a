"""A test run that an agent made: notes it, and lets another process record it, so that the client need not wait.

Words that come too late for the answer wait for the next event of the conversation.

The note is on the disk before the client has its answer. Builtins only.
"""

import posix

from detent.clients.dialect import TOLD
from detent.core.testrun.seen import MAX_OUTPUT, SEEN
from detent.hooks.files import read_file, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from detent.clients.dialect import Dialect

#: Words that wait, and tries to write them while others are told.
_MAX_TOLD, _TRIES = 20, 100


def typed_in(base: str, call: "dict[str, Any]") -> str:
    """The command of a shell call as it is typed in the directory `base`. In another directory other tests run."""
    place = resolve(call["cwd"])
    if place == resolve(base):
        command: str = call["command"]
        return command
    quoted = place.replace("'", "'\\''")
    return f"cd '{quoted}' && {call['command']}"


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
    """Keep words for the next event of the conversation: a file, with the conversation in the first line."""
    from time import time_ns

    directory = f"{state}/{TOLD}"
    name = f"{time_ns()}-{posix.getpid()}"
    temporary = f"{directory}-{name}.tmp"
    fd = posix.open(temporary, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600)
    try:
        posix.write(fd, f"{_line(conversation)}\n{text}".encode("utf-8", "replace"))
    finally:
        posix.close(fd)
    for _ in range(_TRIES):
        _make(directory)
        try:
            posix.rename(temporary, f"{directory}/{name}")
        except FileNotFoundError:
            # An event told all words in between, and removed the directory.
            continue
        break
    for old in sorted(posix.listdir(directory))[:-_MAX_TOLD]:
        posix.unlink(f"{directory}/{old}")


def take_told(state: str, conversation: str) -> str:
    """The words for this conversation, the oldest first; they are told once."""
    directory, texts = f"{state}/{TOLD}", []
    try:
        names = sorted(posix.listdir(directory))
    except OSError:
        return ""
    for name in names:
        whose, _, text = (read_file(f"{directory}/{name}") or b"").decode("utf-8", "replace").partition("\n")
        if whose != _line(conversation):
            continue
        try:
            posix.unlink(f"{directory}/{name}")
        except OSError:
            # Another event of the conversation was faster, or the directory is read-only: else it is told for ever.
            continue
        texts.append(text)
    if len(texts) == len(names):
        _remove(directory)
    return "\n".join(dict.fromkeys(texts))


def _remove(directory: str) -> None:
    try:
        posix.rmdir(directory)
    except OSError:
        # Other words have come.
        return


def _line(conversation: str) -> str:
    return conversation.replace("\n", " ")


def _make(directory: str) -> None:
    for each in (directory.rpartition("/")[0], directory):
        try:
            posix.mkdir(each, 0o700)
        except FileExistsError:
            continue
