"""Decides between the hooks of a plugin and those in the project's settings, so that no event is answered twice.

The hook in the settings notes every conversation that it sees, with the digest of the settings. A plugin's hook stands
back only where that note is about the present settings: clients skip hooks that no person has approved, without a word,
and then the plugin is all that guards the project. At the start of a conversation the settings alone decide.

Builtins only: every call of a plugin's hook imports it.
"""

import posix

from detent.hooks.files import project_root, project_roots, read_file
from detent.store.state_home import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The note, in the state directory of the repository: a line for each conversation, the newest last.
NOTE = ".own-hooks"
#: The end of the hook's path in every installation; `clients/installing/hook_settings.py` writes it.
HOOK_TAIL = b"/detent/hooks/fast.py"
_MAX_LINES = 50
_MAX_NAME = 200


def stands_back(client: str, kind: str, payload: "Any") -> bool:
    """Whether the hook in the project's settings answers this event."""
    root = _root(payload)
    settings = _own_settings(client, root) if root is not None else None
    if root is None or settings is None:
        return False
    return kind == "session_start" or _line(client, payload, settings) in _noted(root)


def note_own_hook(client: str, payload: "Any") -> None:
    """Note that the hook in the project's settings runs in this conversation."""
    root = _root(payload)
    settings = _own_settings(client, root) if root is not None else None
    if root is None or settings is None:
        return
    line, noted = _line(client, payload, settings), _noted(root)
    if line in noted:
        return
    text = "".join(f"{each}\n" for each in (*noted[1 - _MAX_LINES :], line))
    temporary = f"{root}/.workflow/{NOTE}.{posix.getpid()}"
    try:
        fd = posix.open(temporary, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
        try:
            posix.write(fd, text.encode("utf-8", "replace"))
        finally:
            posix.close(fd)
        posix.rename(temporary, f"{root}/.workflow/{NOTE}")
    except OSError:
        # A sandbox may forbid the note; the runner answers the event outside, and notes it there.
        return


def _root(payload: "Any") -> "str | None":
    cwd = payload.get("cwd")
    return project_root(project_roots(cwd if isinstance(cwd, str) and cwd else posix.getcwd()))


def _own_settings(client: str, root: str) -> "bytes | None":
    """The client's settings in the project, if they have the hook."""
    from detent.clients.registry import CLIENTS

    known = CLIENTS.get(client)
    data = read_file(f"{root}/{known.settings[0]}") if known is not None and known.settings else None
    return data if data is not None and HOOK_TAIL in data else None


def _line(client: str, payload: "Any", settings: bytes) -> str:
    conversation = str(payload.get("session_id"))[:_MAX_NAME].replace("\n", " ")
    return f"{client} {digest(settings)} {conversation}"


def _noted(root: str) -> "list[str]":
    return (read_file(f"{root}/.workflow/{NOTE}") or b"").decode("utf-8", "replace").splitlines()
