"""Writes the man page from the verbs: `python -m book.man`. An install puts it where `man detent` finds it."""

import inspect
import re
import sys
from pathlib import Path

import click

from book.reference import commands, flags_of, usage_of
from detent import __version__
from detent.cli.app import GROUP, GROUPS

PAGE = Path(__file__).parents[1] / "man" / "detent.1"


def page() -> str:
    """The man page of `detent`, with all verbs."""
    context = click.Context(GROUP, info_name="detent")
    lines = [
        f'.TH DETENT 1 "" "Detent {__version__}" "User commands"',
        ".SH NAME",
        r"detent \- hold long agent-driven work to a workflow",
        ".SH SYNOPSIS",
        ".B detent",
        r"[\fIOPTION\fR]... \fIVERB\fR [\fIARGUMENT\fR]...",
        ".SH DESCRIPTION",
        "Detent moves work from phase to phase only when a gate has evidence. It never slips back unnoticed, and every",
        r"position it has held can be returned to. \fBdetent help\fR \fITOPIC\fR shows the concepts.",
    ]
    for heading, verbs in GROUPS.items():
        lines += [f".SH {heading.upper()}"]
        for name, _ in verbs:
            command = GROUP.get_command(context, name)
            assert command is not None
            for path, each in commands(command, f"detent {name}"):
                lines += _described(path, each)
    return "\n".join(lines) + "\n"


def _described(path: str, command: click.Command) -> list[str]:
    text = inspect.cleandoc(command.help or "").replace("\b\n", "").strip()
    lines = [f".SS {_escaped(usage_of(path, command))}"]
    for number, paragraph in enumerate(text.split("\n\n")):
        lines += [".PP"] if number else []
        lines += [_escaped(" ".join(paragraph.split()))]
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            lines += [".TP", rf"\fB{_escaped(flags_of(option))}\fR", _escaped(option.help or "")]
    return lines


def _escaped(text: str) -> str:
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped)


def main() -> int:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), "utf-8")
    print(f"wrote man/{PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
