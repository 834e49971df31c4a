"""The verbs by group. The module of a verb is imported only when the verb is called."""

from importlib import import_module
from keyword import iskeyword

import click

from detent import __version__
from detent.cli.plain import PLAIN_VERBS
from detent.cli.request import Request, Usage, write_text
from detent.cli.verb import check_known, common_options, plain_verb, print_help
from detent.topics import TOPICS

#: Verbs by group, in the order of `detent --help`: the verb and its one-line help. The module has the verb's name.
GROUPS: dict[str, list[tuple[str, str]]] = {
    "Common": [
        ("init", "Make a directory a project, and install hooks in agents."),
        ("start", "Start a session: choose a workflow and describe the task."),
        ("run", "Run the session with agents until it ends or needs a person."),
        ("status", "Show where the session stands and the next command."),
        ("decide", "Decide what waits for a person, one decision at a time."),
        ("why", "Explain what blocks the session, or one phase."),
        ("ui", "Show sessions in a browser, and decide there."),
        ("approve", "Vote at a gate, or open one by hand."),
        ("rollback", "Restore files and phases from a checkpoint."),
    ],
    "Start and run": [
        ("watch", "Follow a run from another terminal."),
        ("ask", "Ask a person a question, as an agent, and wait for the answer."),
        ("reply", "Answer an agent's question."),
        ("report", "Write a report of the session in Markdown, HTML or JSON."),
        ("prompt", "Show the prompt that a run gives to the agent of a phase."),
        ("merge", "Merge a phase's worktree into the branch of the session."),
    ],
    "Look": [
        ("next", "Show what waits for you, and the next commands."),
        ("log", "Show the commits of the session: who did what, when."),
        ("history", "List the sessions that have ended."),
        ("graph", "Draw the phase graph of the session or of a workflow."),
        ("diff", "Compare two checkpoints, or a checkpoint with the present."),
        ("workflows", "List the workflows that can be started."),
    ],
    "Gates and decisions": [
        ("gates", "Show the verdict of every gate."),
        ("gate", "Run a gate's check, or record evidence for it."),
        ("review", "Decide about a finished phase under review."),
        ("escalations", "List the escalations that wait for a person."),
        ("resolve", "Resolve the open escalations: retry, skip or cancel."),
        ("release", "Open every closed gate of a phase by hand."),
        ("publish", "Bring the bundle of the session where CI finds it."),
        ("policy", "Try another detent.toml on the sessions that are recorded."),
        ("verify", "Check that the record of a session holds."),
        ("attest", "Write what a record shows as signed in-toto statements."),
        ("ci", "Check a commit, or the record of a branch in CI."),
        ("approver", "Add, list or remove the people whose keys sign decisions."),
    ],
    "Phases by hand": [
        ("begin", "Begin a phase, before its work is delegated."),
        ("finish", "Finish an attempt with a summary of the work."),
        ("fail", "End an attempt that did not succeed."),
        ("redo", "Begin another attempt of a phase."),
        ("skip", "Skip phases, with a reason."),
    ],
    "Tasks": [
        ("task", "Plan, start, finish and show the tasks of the session."),
        ("tasks", "List the tasks of the session, live with --watch."),
        ("flow", "Run the flow-control steps of a task."),
        ("note", "Keep an analysis, a talk or ideas with the session."),
    ],
    "Checkpoints": [
        ("checkpoint", "Take, list, verify or clean up checkpoints."),
        ("undo", "Undo the last rollback."),
    ],
    "Sessions": [
        ("sessions", "List the sessions: the active one first, then by last activity."),
        ("switch", "Make another session the active one."),
        ("pause", "Pause the active session."),
        ("resume", "Resume a paused session."),
        ("complete", "Complete the session."),
        ("cancel", "Cancel the session, with a reason."),
        ("reopen", "Reopen a session that has ended."),
        ("archive", "Archive a session that has ended."),
        ("export", "Write a document of the session, or all of it as a bundle."),
        ("import", "Create a session from a bundle or from a state document."),
    ],
    "Setup": [
        ("tour", "Walk through a session in a temporary project."),
        ("doctor", "Check journals, documents and hooks; repair with --fix."),
        ("uninstall", "Remove hooks and instructions from the agents."),
        ("store", "Copy journals to another store, or prepare a database."),
        ("worker", "Take work of other machines, scheduled by Temporal."),
        ("workers", "List the machines that take work of this project."),
        ("files", "List, get or remove files that all machines reach."),
        ("forget", "Remove the second copies of the project's journals."),
    ],
    "Plumbing": [
        ("adopt", "Adopt edits made by hand, now."),
        ("mcp", "Serve the session to an agent over MCP."),
        ("hook", "Answer a hook event of an agent, or explain the answer."),
        ("schema", "Print the JSON Schema of a document."),
        ("help", "Show the help of a verb, or explain a topic."),
        ("completion", "Print the completion script of a shell."),
    ],
}
VERBS = {verb: text for verbs in GROUPS.values() for verb, text in verbs}


class Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module = import_module(f"detent.cli.commands.{cmd_name}{'_' if iskeyword(cmd_name) else ''}")
        command = plain_verb(module, cmd_name) if cmd_name in PLAIN_VERBS else getattr(module, f"{cmd_name}_verb")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        check_known(args, list(VERBS), what="verb", help_of="detent --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, VERBS))
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(verb.ljust(width), text) for verb, text in verbs])
        with formatter.section("Topics of detent help"):
            formatter.write_text(", ".join(TOPICS))


def invoke(arguments: list[str], request: Request) -> int:
    """Run one command line; an error that click reports becomes a `Usage`."""
    try:
        with GROUP.make_context("detent", list(arguments), obj=request) as context:
            result = GROUP.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        raise Usage(_lower(error.format_message()), way_out=_help_of(error)) from error
    return result if isinstance(result, int) else 0


def _version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        write_text(f"detent {__version__}")
        context.exit()


GROUP = Verbs(
    name="detent",
    callback=print_help,
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


def _lower(message: str) -> str:
    # click breaks a list of choices into lines.
    message = " ".join(message.split()).rstrip(".")
    return message[:1].lower() + message[1:]


def _help_of(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{context.command_path if context else 'detent'} --help"
