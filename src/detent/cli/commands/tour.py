"""`tour`: walks through a session in a temporary project."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import click

from detent.cli.request import Request, Usage, write_text
from detent.cli.verb import verb
from detent.errors import Refused

_INTERRUPTED = 130


@verb("tour", example="detent tour")
@click.option("--no-wait", is_flag=True, help="Do not wait for Enter before each command.")
@click.option("--keep", is_flag=True, help="Keep the project of the tour.")
@click.option("--ui", is_flag=True, help="Show the project in a browser at the end; needs detent[ui].")
def tour_verb(request: Request, *, no_wait: bool, keep: bool, ui: bool) -> None:
    """Walk through a session in a temporary project.

    The agent is a script, and each command is real. It needs no account and changes nothing outside of the temporary
    directory. Ctrl-C ends it.
    """
    from detent.topics.walkthrough import Prose, WrittenFile, parts

    if request.json:
        raise Usage("the tour is for people and has no JSON", way_out="detent tour")
    if not no_wait and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("the tour waits for Enter, and this is no terminal", way_out="detent tour --no-wait")
    with _project(keep=keep):
        for part in parts(_page()):
            if isinstance(part, Prose):
                write_text(f"{part.text.removeprefix('# ')}\n")
            elif isinstance(part, WrittenFile):
                lines = "".join(f"    {line}\n" if line else "\n" for line in part.text.splitlines())
                write_text(f"{part.path}\n\n{lines}")
                with open(part.path, "w", encoding="utf-8") as file:
                    file.write(part.text)
            else:
                _run(part.command, expected=part.exit_code, waits=not no_wait)
        if ui:
            _run("detent ui", expected=_INTERRUPTED, waits=not no_wait)


def _page() -> str:
    from importlib.resources import files

    return files("detent.topics").joinpath("tour.md").read_text("utf-8")


def _run(command: str, *, expected: int, waits: bool) -> None:
    """Run a command of Detent in this process: a decision must be made by the process that the person started."""
    from detent.cli.main import run

    write_text(f"$ {command}")
    if waits:
        sys.stdout.write("  Enter runs it ")
        sys.stdout.flush()
        if not sys.stdin.readline():
            raise KeyboardInterrupt
    sys.stdout.flush()
    code = run(shlex.split(command)[1:])
    write_text("")
    if code == _INTERRUPTED != expected:
        raise KeyboardInterrupt
    if code != expected:
        raise Refused(f"{command} ended with exit code {code} and not {expected}; the tour stops here")


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
