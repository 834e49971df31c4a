"""The click side of verbs: their common options, shared arguments, groups of subcommands, and shell completion."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from detent.cli.input import STDIN, read_text
from detent.cli.plain import COMMON, PHASE, SESSION, SIGNING, Parameter
from detent.cli.request import Request, Usage, write_text
from detent.errors import DetentError

if TYPE_CHECKING:
    from detent.engine.project import Project

F = TypeVar("F", bound=Callable[..., Any])


class Verb(click.Command):
    """A command with the options that every verb has; one that decides can be signed."""

    def __init__(
        self, name: str, *, params: list[click.Parameter] | None = None, decides: bool = False, **settings: Any
    ) -> None:
        signing = remembered_options(SIGNING) if decides else []
        super().__init__(name, params=[*(params or []), *signing, *common_options()], **settings)


def verb(
    name: str, *, example: str, cls: type[Verb] = Verb, decides: bool = False
) -> Callable[[Callable[..., Any]], Verb]:
    """A verb, or a subcommand of one; the function gets the request first. `decides`: it makes a person's decision."""
    return lambda function: click.command(name, cls=cls, epilog=_epilog(example), decides=decides)(
        click.pass_obj(function)
    )


def plain_verb(module: ModuleType, name: str) -> Verb:
    """The click command of a verb that declares its parameters as data; see `detent.cli.plain`."""
    function = click.pass_obj(getattr(module, name))
    for parameter in reversed(module.PARAMETERS):
        function = _declared(parameter)(function)
    return click.command(name, cls=Verb, epilog=_epilog(module.EXAMPLE))(function)


class VerbGroup(click.Group):
    """A verb with subcommands, listed in the order of their declaration; alone it prints its help."""

    def __init__(self, name: str, *commands: click.Command, help: str, example: str) -> None:  # noqa: A002 - click's word
        super().__init__(
            name,
            commands={str(command.name): command for command in commands},
            callback=print_help,
            invoke_without_command=True,
            params=common_options(),
            help=help,
            epilog=_epilog(example),
        )

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        check_known(args, self.list_commands(ctx), what=f"verb {self.name}", help_of=f"detent {self.name} --help")
        return super().resolve_command(ctx, args)


def check_known(args: list[str], known: list[str], *, what: str, help_of: str) -> None:
    """Refuse an unknown first word, and name the closest known one."""
    if args and args[0] not in known and not args[0].startswith("-"):
        close = get_close_matches(args[0], known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise Usage(f"there is no {what} {args[0][:80]}{hint}", way_out=help_of)


@click.pass_context
def print_help(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        write_text(context.get_help())


class Text(click.ParamType[str]):
    """Text, or `-` for standard input, which may be longer than an argument can be."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        if value != STDIN:
            return str(value)
        name = param.human_readable_name if param else "the text"
        return read_text(Request(), STDIN, what=f"{name} from standard input")


TEXT = Text()


def _epilog(example: str) -> str:
    return f"\b\nExample:\n  {example}"


def common_options() -> list[click.Parameter]:
    return remembered_options(COMMON)


def remembered_options(options: Iterable[Parameter]) -> list[click.Parameter]:
    """Options whose values are kept in the request instead of being passed to the verb."""
    return [
        click.Option(
            list(option.flags),
            metavar=option.metavar,
            is_flag=option.is_flag,
            is_eager=option.is_flag,
            expose_value=False,
            callback=_remember,
            help=option.help,
        )
        for option in options
    ]


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value and parameter.name:
        setattr(context.obj, parameter.name, value)


def _declared(parameter: Parameter) -> Callable[[F], F]:
    """The click decorator of a parameter that is declared as data."""
    complete = _COMPLETIONS.get(parameter.completes or "")
    if not parameter.flags:
        return click.argument(
            parameter.name, required=parameter.required, metavar=parameter.metavar, shell_complete=complete
        )
    default = 0 if parameter.is_number else parameter.default
    # click takes an explicit None for a default, which a required option must not have.
    settings: dict[str, Any] = {} if default is None else {"default": default}
    kind = TEXT if parameter.is_text else click.IntRange(min=0) if parameter.is_number else None
    return click.option(
        *parameter.flags,
        parameter.name,
        metavar=parameter.metavar,
        required=parameter.required,
        multiple=parameter.multiple,
        is_flag=parameter.is_flag,
        type=kind,
        envvar=parameter.envvar,
        shell_complete=complete,
        help=parameter.help,
        **settings,
    )


Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completing(names: "Callable[[Project, click.Context], list[str]]", *, anywhere: bool = False) -> Complete:
    """Shell completion with names from the project that begin with the typed text, or contain it anywhere."""

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            with (context.find_object(Request) or Request()).reading() as project:
                known = names(project, context)
        except DetentError:
            return []
        if anywhere:
            return [CompletionItem(name) for name in known if incomplete.lower() in name.lower()]
        return [CompletionItem(name) for name in known if name.startswith(incomplete)]

    return complete


def _checkpoints(project: "Project", context: click.Context) -> list[str]:
    return [position.event.name for position in project.session(context.params.get("session")).checkpoints.all()]


_COMPLETIONS: dict[str, Complete | None] = {
    "phases": completing(lambda project, _: list(project.session().state.workflow.order)),
    "sessions": completing(lambda project, _: project.store.sessions()),
}
known_workflows = completing(lambda project, _: project.catalogue.names())
checkpoint_or_now = completing(lambda project, context: [*_checkpoints(project, context), "now"])
session_option = _declared(SESSION)
phase_argument = _declared(PHASE)
phases_argument = click.argument("phases", nargs=-1, metavar="[PHASE]...", shell_complete=_COMPLETIONS["phases"])
checkpoint_argument = click.argument("checkpoint", shell_complete=completing(_checkpoints))
checkpoint_or_none = click.argument(
    "checkpoint", required=False, metavar="[CHECKPOINT]", shell_complete=completing(_checkpoints)
)
count_option = click.option(
    "-n", "count", metavar="N", type=click.IntRange(min=0), default=20, help="The last N; 0 is all."
)
quorum_option = click.option(
    "--quorum", metavar="N", type=click.IntRange(min=1), help="Lower the votes that gates need to N; anyone may vote."
)
part_of_session = completing(lambda project, _: project.store.sessions(), anywhere=True)
named_session_argument = click.argument("name", metavar="NAME", shell_complete=part_of_session)
