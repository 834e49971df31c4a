"""`tour`: walks through a session in a temporary project."""

import os
import select
import shlex
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

import click

from detent.cli.person import is_at_terminal
from detent.cli.request import Request, Usage, write_text
from detent.cli.verb import verb
from detent.errors import DetentError, Refused

if TYPE_CHECKING:
    from detent.topics.walkthrough import WrittenFile
    from detent.web.server import Attendance, Opened
    from detent.web.tokens import Tokens
    from detent.web.tour import Tour

_INTERRUPTED = 130
#: The server of the page opens its port within this time, and ends within it.
_SERVER_S = 20.0


@verb("tour", example="detent tour")
@click.option("--no-wait", is_flag=True, help="Do not wait for Enter before each command.")
@click.option("--keep", is_flag=True, help="Keep the project of the tour.")
@click.option("--ui", is_flag=True, help="Walk in the browser too: the page shows each step; needs detent[ui].")
def tour_verb(request: Request, *, no_wait: bool, keep: bool, ui: bool) -> None:
    """Walk through a session in a temporary project.

    The agent is a script, and each command is real. It needs no account and changes nothing outside of the temporary
    directory. With --ui the page shows the same step as the terminal, and its effect; press Enter or the button
    to go on. Ctrl-C ends it.
    """
    if request.json:
        raise Usage("the tour is for people and has no JSON", way_out="detent tour")
    if not no_wait and not is_at_terminal():
        raise Refused("the tour waits for Enter, and this is no terminal", way_out="detent tour --no-wait")
    if ui:
        from detent.cli.commands.ui import check_extra

        check_extra()
    with _project(keep=keep):
        _Walk(request, waits=not no_wait, ui=ui).go()


class _Step(NamedTuple):
    """A command, with the text and the files before it. The last step has only text."""

    number: int
    #: The text, in parts; the tour waits between two of them.
    screens: tuple[str, ...]
    files: tuple["WrittenFile", ...] = ()
    command: str = ""
    expected: int = 0

    @property
    def text(self) -> str:
        return "\n\n".join(self.screens)


class _Walk:
    def __init__(self, request: Request, *, waits: bool, ui: bool) -> None:
        self._request, self._waits, self._ui = request, waits, ui
        self._steps = _steps()
        self._tour: Tour | None = None

    def go(self) -> None:
        # The page needs a project, which the first command makes.
        first, *others, last = self._steps
        self._run(first)
        with _page_beside(self._request) if self._ui else nullcontext() as self._tour:
            for step in others:
                self._run(step)
            write_text(last.text)
            if self._tour is not None:
                self._await(last, "Press Enter to end the tour")

    def _run(self, step: _Step) -> None:
        """Run a command of Detent in this process: a decision must be made by the process that the person started."""
        from detent.cli.main import run

        for number, screen in enumerate(step.screens, 1):
            write_text(f"{screen}\n")
            if self._waits and number < len(step.screens):
                self._await(step, "Press Enter to go on")
                write_text("")
        for file in step.files:
            with open(file.path, "w", encoding="utf-8") as target:
                target.write(file.text)
        write_text(f"$ {step.command}")
        if self._waits:
            self._await(step, "Press Enter to run it")
        self._show(step, is_running=True)
        sys.stdout.flush()
        code = run(shlex.split(step.command)[1:])
        write_text("")
        if code == _INTERRUPTED != step.expected:
            raise KeyboardInterrupt
        if code != step.expected:
            raise Refused(f"{step.command} ended with exit code {code} and not {step.expected}; the tour stops here")

    def _await(self, step: _Step, prompt: str) -> None:
        """Wait for Enter, or for the button of the page."""
        self._show(step, is_running=False)
        sys.stdout.write(f"  {prompt}{', here or in the page' if self._tour is not None else ''} ")
        sys.stdout.flush()
        ready, _, _ = select.select([sys.stdin, *([self._tour] if self._tour is not None else [])], [], [])
        if self._tour is not None and self._tour in ready:
            self._tour.take()
            write_text("")
        elif not sys.stdin.readline():
            raise KeyboardInterrupt

    def _show(self, step: _Step, *, is_running: bool) -> None:
        if self._tour is not None:
            from detent.web.tour import TourStep

            whole = len(self._steps)
            self._tour.show(
                TourStep(number=step.number, of=whole, text=step.text, command=step.command, is_running=is_running)
            )


def _steps() -> list[_Step]:
    """The commands of the tour, each with the text and the files before it; at the end the text after them.

    A paragraph after a file begins a new screen.
    """
    from importlib.resources import files

    from detent.topics.walkthrough import Prose, WrittenFile, parts

    steps: list[_Step] = []
    screens: list[str] = []
    written: list[WrittenFile] = []
    is_new = True
    for part in parts(files("detent.topics").joinpath("tour.md").read_text("utf-8")):
        if isinstance(part, Prose):
            text = part.text.removeprefix("# ")
            screens = [*screens, text] if is_new else [*screens[:-1], f"{screens[-1]}\n\n{text}"]
            is_new = False
        elif isinstance(part, WrittenFile):
            lines = "".join(f"    {line}\n" if line else "\n" for line in part.text.splitlines())
            screens[-1] += f"\n\n{part.path}\n\n{lines.rstrip()}"
            written.append(part)
            is_new = True
        else:
            number = len(steps) + 1
            steps.append(_Step(number, tuple(screens), tuple(written), part.command, part.exit_code))
            screens, written, is_new = [], [], True
    return [*steps, _Step(len(steps) + 1, tuple(screens))]


@contextmanager
def _page_beside(request: Request) -> Iterator["Tour"]:
    """The page of the project here, served by a thread of this process, as long as the tour lasts."""
    from detent.cli.commands.ui import show_page
    from detent.web import server
    from detent.web.tour import Tour

    tour, opened, failures = Tour(), threading.Event(), list[DetentError]()

    def ready(at: "Opened", tokens: "Tokens", present: "Attendance") -> None:
        show_page(request, at, server.new_link(tokens, present), no_open=False)
        write_text("")
        opened.set()

    def serve() -> None:
        try:
            server.serve(server.Settings(port=0), started_in=os.getcwd(), ready=ready, tour=tour)
        except DetentError as error:
            failures.append(error)
            opened.set()

    thread = threading.Thread(target=serve, name="page", daemon=True)
    thread.start()
    opened.wait(_SERVER_S)
    if failures:
        raise failures[0]
    try:
        yield tour
    finally:
        tour.end()
        thread.join(_SERVER_S)


@contextmanager
def _project(*, keep: bool) -> Iterator[None]:
    """Work in a directory for the tour. Second copies of journals are there too; `python` is the one that runs this."""
    home, here = tempfile.mkdtemp(prefix="detent-tour-"), os.getcwd()
    before = dict(os.environ)
    os.environ["XDG_STATE_HOME"] = os.path.join(home, "state")
    os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
    directory = os.path.join(home, "shop")
    os.mkdir(directory)
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)
        if keep:
            write_text(f"the project is in {directory}")
        else:
            shutil.rmtree(home, ignore_errors=True)
