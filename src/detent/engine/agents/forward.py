"""Passes a command of an agent in a sandbox on to the runner, which carries it out outside and answers its exit code.

The state is read-only in the sandbox. The process outside gets the standard streams of this one, so that nothing is
copied. A request is a length, the directory and the arguments; the descriptors come with it. Builtins only: hooks
import it.
"""

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The variable that names the socket.
SOCKET = b"DETENT_SOCKET"
#: Verbs that change the session and are open to agents. All others run in the sandbox, where they can only read.
VERBS = frozenset(
    ("ask", "note", "task", "begin", "finish", "fail", "redo", "gate", "flow", "checkpoint", "hook", "mcp")
)
#: The option that opens a file; its content is passed on as standard input.
_FILE = "--file"
HEAD_BYTES = 8
MAX_BYTES = 16 * 1024 * 1024
#: The exit code if the runner is gone.
LOST = 70


def words_of(arguments: "Any") -> "list[str]":
    """The command line without the option that may stand anywhere."""
    return [argument for argument in arguments if argument != "--json"]


def is_forwarded(arguments: "list[str]") -> bool:
    """Whether the runner carries out this command line."""
    return SOCKET in posix.environ and next(iter(words_of(arguments)), "") in VERBS


def forward_command(arguments: "list[str]") -> int:
    """Have the runner carry out a command line, with the file that it names as its standard input."""
    words, given = list(arguments), 0
    if _FILE in words[:-1] and words[words.index(_FILE) + 1] != "-":
        at = words.index(_FILE) + 1
        given, words[at] = posix.open(words[at], posix.O_RDONLY), "-"
    return forward(words, (given, 1, 2))


def forward(arguments: "list[str]", streams: "tuple[int, int, int]" = (0, 1, 2)) -> int:
    """Have the runner carry out the command line; returns its exit code. Raises `OSError` if it cannot be reached."""
    from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket  # noqa: PLC0415 - only in a sandbox

    fields = [posix.getcwd().encode("utf-8", "surrogateescape")]
    fields += [argument.encode("utf-8", "surrogateescape") for argument in arguments]
    body = b"\0".join(fields)
    if len(body) > MAX_BYTES:
        raise OSError(7, "the arguments are too long")
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.connect(posix.environ[SOCKET])
        given = b"".join(number.to_bytes(4, sys.byteorder) for number in streams)
        connection.sendmsg([len(body).to_bytes(HEAD_BYTES, "big")], [(SOL_SOCKET, SCM_RIGHTS, given)])
        connection.sendall(body)
        answer = connection.recv(1)
        return answer[0] if answer else LOST
    finally:
        connection.close()


def forward_hook(client: str, data: bytes, by_plugin: bool) -> "None":  # noqa: FBT001 - as a hook says it
    """Have the runner answer a hook event, and end this process with its answer. Raises `OSError` if it cannot."""
    event = posix.memfd_create("event")
    sent = 0
    while sent < len(data):
        sent += posix.write(event, data[sent:])
    posix.lseek(event, 0, 0)
    code = forward(["hook", client, *(["--plugin"] if by_plugin else [])], (event, 1, 2))
    posix._exit(code)  # noqa: SLF001 - the answer has been written
