"""The verbs, and the group that loads the module of one only when it is called."""

from importlib import import_module

import click

from detent import __version__
from detent.cli.request import Request, write_text
from detent.cli.verb import Usage, common_options

#: Verb to the module that has it and the line that says what it does, in the order in which people meet them.
VERBS: dict[str, tuple[str, str]] = {
    "init": ("project", "Make a directory a project."),
    "workflows": ("project", "List the workflows that can be started."),
    "start": ("start", "Open a session with its first phase in progress."),
    "status": ("look", "Show where the session stands and what to type next."),
    "why": ("look", "Tell what holds the session, or one phase."),
    "begin": ("attempt", "Begin a phase, before its work is handed to anybody."),
    "finish": ("attempt", "Finish an attempt with a summary of what was done."),
    "fail": ("attempt", "End an attempt that did not succeed."),
    "redo": ("attempt", "Begin a further attempt of a phase."),
    "run": ("run", "Let agents do the session, from where it stands to its end."),
    "watch": ("watch", "Look on while a session is run, from another terminal."),
    "ask": ("question", "Ask a person something, as an agent, and wait for the answer."),
    "reply": ("question", "Answer what an agent asked."),
    "report": ("report", "Tell as Markdown how the session went."),
    "merge": ("merge", "Bring the work of a phase's worktree back into the project."),
    "task": ("task", "Plan, take, do and look at the tasks of the session."),
    "tasks": ("task_look", "List the tasks of the session, live if you like."),
    "flow": ("flow", "Run the steps of a task."),
    "checkpoint": ("checkpoint", "Take, list, check, clean up, export or import checkpoints."),
    "rollback": ("rollback", "Go back to a checkpoint: files and phases."),
    "undo": ("rollback", "Undo the last rollback."),
    "diff": ("rollback", "Show what separates two checkpoints, or one from now."),
    "gates": ("gate", "Show the verdict on every gate."),
    "gate": ("gate", "Give a gate its evidence."),
    "approve": ("people", "Vote at a gate, or open one by hand."),
    "escalations": ("people", "List what waits for a person's decision."),
    "resolve": ("people", "Decide what the open escalations ask."),
    "review": ("people", "Decide about a finished phase that waits for you."),
    "release": ("people", "Open every closed gate of a phase by hand."),
    "skip": ("change", "Leave phases out, with a reason."),
    "complete": ("change", "Complete the session."),
    "cancel": ("change", "Cancel the session, with a reason."),
    "sessions": ("sessions", "List the sessions: the active one first, then by last activity."),
    "switch": ("sessions", "Make another session the active one."),
    "pause": ("sessions", "Put the active session aside."),
    "resume": ("sessions", "Go on with a paused session."),
    "reopen": ("sessions", "Go on with a session that has ended."),
    "archive": ("sessions", "Put a session that has ended out of sight."),
    "log": ("look", "Show who did what in the session, when."),
    "history": ("look", "Show the sessions that have ended."),
    "graph": ("graph", "Draw the session's phases, or those of a workflow."),
    "adopt": ("change", "Adopt what was edited by hand, now."),
    "export": ("export", "Write a document of the session to a file."),
    "import": ("start", "Make a session that stands where a state document says."),
    "schema": ("schema", "Print the JSON Schema of a document."),
    "doctor": ("doctor", "Check that journals and documents are what they should be."),
    "hook": ("hook", "Answer an event of an agent, or explain the answer."),
    "uninstall": ("hook", "Take hooks and instructions out again."),
    "completion": ("completion", "Print the completion script of a shell."),
}


class Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        command = getattr(import_module(f"detent.cli.{VERBS[cmd_name][0]}"), f"{cmd_name}_verb")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise Usage(f"there is no verb {args[0][:80]}{_close_to(args[0])}", way_out="detent --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl([(name, told) for name, (_, told) in VERBS.items()])


def invoke(arguments: list[str], request: Request) -> int:
    """Carry out one command line; what click finds wrong with it is a `Usage`."""
    try:
        with GROUP.make_context("detent", list(arguments), obj=request) as context:
            result = GROUP.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        raise Usage(_lower(error.format_message()), way_out=_help_of(error)) from error
    return result if isinstance(result, int) else 0


@click.pass_context
def _alone(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        write_text(context.get_help())


def _version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        write_text(f"detent {__version__}")
        context.exit()


GROUP = Verbs(
    name="detent",
    callback=_alone,
    invoke_without_command=True,
    subcommand_metavar="VERB [ARGS]...",
    help="Hold long agent-driven work to a workflow: it moves on only with evidence.",
    epilog='\b\nExample:\n  detent init && detent start feature "Add login" && detent status',
    params=[
        *common_options(),
        click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version."
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _close_to(word: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, VERBS, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _lower(message: str) -> str:
    message = message.strip().rstrip(".")
    return message[:1].lower() + message[1:]


def _help_of(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{context.command_path if context else 'detent'} --help"
