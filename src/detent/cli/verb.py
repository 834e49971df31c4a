"""What all verbs share: their form, the options that stand before or after them, and text from standard input."""

import sys
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from detent.cli.request import Request
from detent.errors import DetentError, Invalid

MAX_STDIN = 16 * 1024 * 1024


class Usage(DetentError):
    """The command line itself cannot be understood."""

    kind = "usage"
    exit_code = 2


class Verb(click.Command):
    """A command with the options that every verb has."""

    def __init__(self, name: str, *, params: list[click.Parameter] | None = None, **settings: Any) -> None:
        super().__init__(name, params=[*(params or []), *common_options()], **settings)


def verb(name: str, *, example: str) -> Callable[[Callable[..., Any]], Verb]:
    return click.command(name, cls=Verb, epilog=f"\b\nExample:\n  {example}")


def common_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["-C", "--directory"],
            metavar="DIR",
            expose_value=False,
            callback=_remember,
            help="Work in DIR instead of the current directory.",
        ),
        click.Option(
            ["--project"],
            metavar="ID",
            expose_value=False,
            callback=_remember,
            help="A package of a monorepo; DETENT_PROJECT does the same.",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_remember,
            help="Answer in JSON, errors too.",
        ),
    ]


class Text(click.ParamType[str]):
    """Text, or - for standard input, which may be longer than an argument can be."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        if value != "-":
            return str(value)
        what = param.human_readable_name if param else "the text"
        return decoded(sys.stdin.buffer.read(MAX_STDIN + 1), f"{what} from standard input")


def decoded(data: bytes, what: str) -> str:
    if len(data) > MAX_STDIN:
        raise Invalid(f"{what} is longer than {MAX_STDIN} bytes", way_out="put the details in a file and name it")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Invalid(
            f"{what} is not UTF-8: {error.reason} at byte {error.start + 1}",
            way_out="convert it, for instance with iconv -f latin1 -t utf-8",
        ) from error


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value and parameter.name:
        setattr(context.obj, parameter.name, value)


def _known_phases(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offer(context, incomplete, lambda project: list(project.session().state.workflow.order))


def _known_sessions(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offer(context, incomplete, lambda project: project.store.sessions())


def known_workflows(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offer(context, incomplete, lambda project: project.catalogue.names())


def _known_checkpoints(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    session = context.params.get("session")
    return _offer(
        context, incomplete, lambda project: [one.event.name for one in project.session(session).checkpoints.all()]
    )


def checkpoint_or_now(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The checkpoints, and the word that stands for the present."""
    present = [CompletionItem("now")] if "now".startswith(incomplete) else []
    return [*_known_checkpoints(context, parameter, incomplete), *present]


def _offer(context: click.Context, incomplete: str, names: Callable[[Any], list[str]]) -> list[CompletionItem]:
    try:
        with (context.find_object(Request) or Request()).reading() as project:
            return [CompletionItem(name) for name in names(project) if name.startswith(incomplete)]
    except DetentError:
        return []


session_option = click.option(
    "--session", metavar="ID", shell_complete=_known_sessions, help="A session other than the active one."
)
phase_argument = click.argument("phase", required=False, metavar="[PHASE]", shell_complete=_known_phases)
one_phase_argument = click.argument("phase", shell_complete=_known_phases)
phases_argument = click.argument("phases", nargs=-1, metavar="[PHASE]...", shell_complete=_known_phases)
checkpoint_argument = click.argument("checkpoint", shell_complete=_known_checkpoints)
TEXT = Text()
