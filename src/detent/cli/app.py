"""The verbs by group. The module of a verb is imported only when the verb is called."""

from importlib import import_module

import click

from detent import __version__
from detent.cli.request import Request, write_text
from detent.cli.verb import Usage, common_options

#: Verbs by group, in the order of `detent --help`: the verb, the module that has it, and its one-line help.
GROUPS: dict[str, list[tuple[str, str, str]]] = {
    "Common": [
        ("start", "start", "Start a session: choose a workflow and describe the task."),
        ("run", "run", "Run the session with agents until it ends or needs a person."),
        ("status", "look", "Show where the session stands and the next command."),
        ("why", "look", "Explain what blocks the session, or one phase."),
        ("approve", "people", "Vote at a gate, or open one by hand."),
        ("rollback", "rollback", "Restore files and phases from a checkpoint."),
    ],
    "Start and run": [
        ("watch", "watch", "Follow a run from another terminal."),
        ("ask", "question", "Ask a person a question, as an agent, and wait for the answer."),
        ("reply", "question", "Answer an agent's question."),
        ("report", "report", "Write a report of the session in Markdown."),
        ("merge", "merge", "Merge the work of a phase's worktree into the project."),
    ],
    "Look": [
        ("log", "look", "Show the commits of the session: who did what, when."),
        ("history", "look", "List the sessions that have ended."),
        ("graph", "graph", "Draw the phase graph of the session or of a workflow."),
        ("diff", "rollback", "Compare two checkpoints, or a checkpoint with the present."),
        ("workflows", "project", "List the workflows that can be started."),
    ],
    "Gates and decisions": [
        ("gates", "gate", "Show the verdict of every gate."),
        ("gate", "gate", "Run a gate's check, or record evidence for it."),
        ("review", "people", "Decide about a finished phase under review."),
        ("escalations", "people", "List the escalations that wait for a person."),
        ("resolve", "people", "Resolve the open escalations: retry, skip or cancel."),
        ("release", "people", "Open every closed gate of a phase by hand."),
    ],
    "Phases by hand": [
        ("begin", "attempt", "Begin a phase, before its work is delegated."),
        ("finish", "attempt", "Finish an attempt with a summary of the work."),
        ("fail", "attempt", "End an attempt that did not succeed."),
        ("redo", "attempt", "Begin another attempt of a phase."),
        ("skip", "change", "Skip phases, with a reason."),
    ],
    "Tasks": [
        ("task", "task", "Plan, start, finish and show the tasks of the session."),
        ("tasks", "task_look", "List the tasks of the session, live with --watch."),
        ("flow", "flow", "Run the flow-control steps of a task."),
    ],
    "Checkpoints": [
        ("checkpoint", "checkpoint", "Take, list, verify, clean up, export or import checkpoints."),
        ("undo", "rollback", "Undo the last rollback."),
    ],
    "Sessions": [
        ("sessions", "sessions", "List the sessions: the active one first, then by last activity."),
        ("switch", "sessions", "Make another session the active one."),
        ("pause", "sessions", "Pause the active session."),
        ("resume", "sessions", "Resume a paused session."),
        ("complete", "change", "Complete the session."),
        ("cancel", "change", "Cancel the session, with a reason."),
        ("reopen", "sessions", "Reopen a session that has ended."),
        ("archive", "sessions", "Archive a session that has ended."),
        ("export", "export", "Write a document of the session to a file."),
        ("import", "start", "Create a session from a state document."),
    ],
    "Setup": [
        ("init", "project", "Make a directory a project, and install hooks in agents."),
        ("doctor", "doctor", "Check journals, documents and hooks; repair with --fix."),
        ("uninstall", "hook", "Remove hooks and instructions from the agents."),
    ],
    "Plumbing": [
        ("adopt", "change", "Adopt edits made by hand, now."),
        ("hook", "hook", "Answer a hook event of an agent, or explain the answer."),
        ("schema", "schema", "Print the JSON Schema of a document."),
        ("completion", "completion", "Print the completion script of a shell."),
    ],
}
VERBS = {verb: (module, text) for verbs in GROUPS.values() for verb, module, text in verbs}


class Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        command = getattr(import_module(f"detent.cli.commands.{VERBS[cmd_name][0]}"), f"{cmd_name}_verb")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise Usage(f"there is no verb {args[0][:80]}{_close_to(args[0])}", way_out="detent --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, VERBS))
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(verb.ljust(width), text) for verb, _, text in verbs])


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
