"""`task`: the group of all that is done with tasks."""

import click

from detent.cli.commands.task_edit import edit_task
from detent.cli.commands.task_exchange import export_tasks, import_tasks
from detent.cli.commands.task_look import list_tasks, show_task, validate_tasks
from detent.cli.commands.task_plan import add_task, remove_task, replan_task, set_complexity, split_task
from detent.cli.commands.task_work import (
    beat_task,
    block_task,
    done_task,
    fail_task,
    next_task,
    release_task,
    reopen_task,
    resume_task,
    retry_task,
    start_task,
    unblock_task,
)
from detent.cli.request import write_text
from detent.cli.verb import Usage, common_options

_COMMANDS: tuple[click.Command, ...] = (
    *(add_task, split_task, list_tasks, show_task, next_task, start_task, done_task, fail_task, block_task),
    *(unblock_task, resume_task, retry_task, reopen_task, release_task, beat_task, replan_task, edit_task, remove_task),
    *(validate_tasks, import_tasks, export_tasks, set_complexity),
)


class _Words(click.Group):
    """In the order in which people meet them; a word that is not known is answered with the nearest one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.commands, n=1)
            mean = f"; did you mean {close[0]}?" if close else ""
            raise Usage(f"there is no task {args[0][:80]}{mean}", way_out="detent task --help")
        return super().resolve_command(ctx, args)


@click.pass_context
def _alone(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        write_text(context.get_help())


task_verb = _Words(
    "task",
    callback=_alone,
    invoke_without_command=True,
    params=common_options(),
    commands={str(command.name): command for command in _COMMANDS},
    short_help="Plan, start, finish and show the tasks of the session.",
    help="""Plan, start, finish and show the tasks of the session.

    A task is a document in .task with an id such as IMPL-3, or IMPL-3.1 for a part of it. It is ready when all that it
    depends on is done; whoever starts it holds it until it is done, failed, blocked or given back.""",
    epilog='\b\nExample:\n  detent task add "Validate the form" && detent task start',
)
