"""One request from the command line: its common options, the project it opens, and its answer. Needs no click."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from detent.errors import DetentError, NoPackage, NotFound

if TYPE_CHECKING:
    from detent.cli.progress import Progress
    from detent.core.actor import Actor
    from detent.engine.policy import Decision
    from detent.engine.project import Project
    from detent.engine.proofs import Signer
    from detent.engine.session import SessionHandle
    from detent.engine.workspace import Workspace
    from detent.render.terminal.canvas import Canvas

_WIDTH, _WIDEST = 80, 200


class Usage(DetentError):
    """The command line cannot be understood."""

    kind = "usage"
    exit_code = 2


class Request:
    def __init__(self) -> None:
        self.directory = "."
        self.project: str | None = None
        self.json = False
        #: Whether the person has seen the decision, and has chosen it at the terminal.
        self.is_confirmed = False
        #: Whether a decision is signed, and with which key.
        self.sign = False
        self.key: str | None = None
        #: Whether settings that cannot be used are left out instead of refused.
        self.is_tolerant = False
        #: Remarks for the person, printed beside the answer.
        self.notices: list[str] = []
        self._printed: set[str] = set()
        self._progress: Progress | None = None

    @cached_property
    def workspace(self) -> "Workspace":
        from detent.engine.stores import tell_waiting
        from detent.engine.workspace import Workspace

        tell_waiting(print_error)
        return Workspace(self.directory, project=self.project, notices=self.notices, tolerant=self.is_tolerant)

    @contextmanager
    def reading(self) -> Iterator["Project"]:
        """The project, for reading only; works in a read-only checkout."""
        with self.workspace.read(self.actor) as project:
            try:
                yield project
            finally:
                self.clear_progress()

    def notice_unrecorded(self, project: "Project", session: str) -> None:
        """Say that the answer lacks a test run: reading takes no lock, so it cannot record what a hook has noted."""
        from detent.core.testrun.seen import SEEN

        if project.store.names(f"{session}/{SEEN}"):
            self.notices.append("a hook saw a test run that is not recorded yet, so it is not shown; ask again")

    @contextmanager
    def reading_all(self) -> Iterator[dict[str, "Project"]]:
        """The project under an empty name; at the root of a monorepo every package under its own."""
        from detent.engine.workspace import Workspace

        with ExitStack() as opened:
            try:
                projects = {"": opened.enter_context(self.reading())}
            except NoPackage as error:
                spaces = {
                    name: Workspace(self.directory, project=name, notices=self.notices) for name in error.packages
                }
                projects = {name: opened.enter_context(space.read(self.actor)) for name, space in spaces.items()}
            yield projects

    @contextmanager
    def changing(self, *, adopt: bool = True) -> Iterator["Project"]:
        """The project to change."""
        with self.workspace.change(self._actor(changes=True), adopt=adopt, inspect=self.watch) as project:
            project.signer = self.signer(project)
            if self.is_confirmed:
                from detent.engine.confirm import is_confirmed

                project.confirm = is_confirmed
            try:
                yield project
            finally:
                self.clear_progress()

    def signer(self, project: "Project") -> "Signer | None":
        """Signs the decisions of this request; None if they are not to be signed."""
        if not self.sign:
            if self.key is not None:
                raise Usage("--key names the key to sign with, and --sign is missing", way_out="add --sign")
            return None
        from detent.engine.ssh_signatures import SshSigner, own_signer

        if self.key is not None:
            return SshSigner(os.path.join(self.directory, os.path.expanduser(self.key)))
        return own_signer(project.approvers.read(), os.path.expanduser("~/.ssh"))

    def authorize(self, decision: "Decision") -> None:
        """Check a decision that leaves no event in a journal."""
        from detent.engine.policy import authorize

        authorize(self.actor, decision)

    def authorize_early(self, decision: "Decision") -> None:
        """Check a decision before work is done for it. The commit checks it again, and its signature."""
        from detent.engine.policy import authorize_or_sign

        authorize_or_sign(self.actor, decision, is_signed=self.sign)

    @cached_property
    def actor(self) -> "Actor":
        return self._actor()

    @property
    def author(self) -> "Actor":
        """The actor by all ancestors of this process, for a request that judges who asks and changes nothing."""
        return self._actor(changes=True)

    def _actor(self, *, changes: bool = False) -> "Actor":
        from detent.core.actor import Channel

        return self.workspace.actor(Channel.TERMINAL, changes=changes)

    def watch(self, project: "Project") -> None:
        """Show progress while the project captures files or waits for a check."""
        progress = self.progress("working on files")
        project.checkpoints.progress = progress
        project.checking = progress.running if progress is not None else None

    def progress(self, doing: str) -> "Progress | None":
        """A progress line for `doing`; None with --json, unless standard error is a terminal."""
        from detent.cli.progress import Progress

        self.clear_progress()
        self._progress = Progress(doing) if not self.json or sys.stderr.isatty() else None
        return self._progress

    def clear_progress(self) -> None:
        if self._progress is not None:
            self._progress.clear()

    def answer(self, text: "Callable[[Canvas], str]", record: "dict[str, Any] | Callable[[], dict[str, Any]]") -> None:
        """Print the answer, as text or as JSON. Only the one that is asked for is made, if both are functions."""
        if self.json:
            write_json({**(record() if callable(record) else record), "notices": list(dict.fromkeys(self.notices))})
        else:
            self.print_notices()
            write_text(text(canvas()))

    def print_notices(self) -> None:
        """Print the notices that were not printed yet."""
        for notice in self.notices:
            if notice not in self._printed:
                print_error(notice)
            self._printed.add(notice)
        self.notices.clear()


def session_of(project: "Project", name: str | None) -> "SessionHandle":
    """The named session, or the active one; in the shell of an agent that a runner started, the agent's own."""
    if name is None and project.binding is None and project.active() is None and project.store.sessions():
        raise NotFound("no session is active", way_out="name one with --session; detent history lists those that ended")
    return project.session(name)


def last_session(project: "Project", name: str | None) -> "SessionHandle":
    """The named session, or the active one; if none is active, the one in which something happened last."""
    if name is None and project.binding is None and project.active() is None:
        name = project.sessions.last()
    return session_of(project, name)


def is_active(project: "Project", handle: "SessionHandle") -> bool:
    return project.active() == handle.id


def local_now(project: "Project") -> datetime:
    return project.clock().astimezone()


def canvas() -> "Canvas":
    from detent.render.terminal.canvas import LEAST_WIDTH, Canvas

    terminal = sys.stdout.isatty()
    coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = max(LEAST_WIDTH, min(_columns(sys.stdout), _WIDEST))
    return Canvas(width=width, colour=coloured, encoding=_encoding())


def write_text(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def write_json(value: object) -> None:
    import msgspec

    write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def write_bytes(data: bytes) -> None:
    """Write bytes unchanged: JSON is UTF-8, whatever the terminal's encoding is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    # A pipe is read while a run or a worker goes on.
    sys.stdout.flush()


def write_file(request: Request, file: str, data: bytes) -> str:
    """Replace a file, named relative to the request's directory; returns its path."""
    from detent.store import disk

    path = os.path.normpath(os.path.join(request.directory, file))
    with disk.failing_as("write", path):
        disk.replace(path, data, mode=0o666)
    return path


def print_error(message: str, way_out: str | None = None) -> None:
    """Print a message on standard error; a terminal gets it without broken words, and a pipe as one line."""
    lines = [visible(line) for line in f"detent: {message}".split("\n")]
    ways = [visible(line) for line in f"  try: {way_out}".split("\n")] if way_out else []
    columns = _columns(sys.stderr) if sys.stderr.isatty() else 0
    if columns and any(len(line) > columns for line in (*lines, *ways)):
        from detent.render.terminal.canvas import LEAST_WIDTH, Canvas

        canvas = Canvas(width=max(LEAST_WIDTH, columns))
        lines = [part for line in lines for part in _fitted(canvas, line)]
        ways = [part for line in ways for part in canvas.command(line.strip())]
    sys.stderr.write("".join(f"{line}\n" for line in (*lines, *ways)))


def _fitted(canvas: "Canvas", line: str) -> list[str]:
    """The line on as many as it needs, the others below its text."""
    text = line.lstrip(" -")
    start = line[: len(line) - len(text)]
    return canvas.hanging(text, " " * len(start) or "  ", start)


def visible(line: str) -> str:
    """The line with control characters made visible, so that a terminal does not obey them."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)


def last(entries: Iterable[Any], count: int) -> tuple[list[Any], int]:
    """The last `count` entries, all if it is 0, and how many there were before them."""
    everything = list(entries)
    shown = everything[-count:] if count else everything
    return shown, len(everything) - len(shown)


def _columns(stream: TextIO) -> int:
    stated = os.environ.get("COLUMNS", "")
    if stated.isascii() and stated.isdigit() and int(stated):
        return int(stated)
    try:
        return (stream.isatty() and os.get_terminal_size(stream.fileno()).columns) or _WIDTH
    except OSError:
        return _WIDTH


def _encoding() -> str:
    name = (sys.stdout.encoding or "ascii").lower()
    return "utf-8" if name in ("utf-8", "utf8") else name
