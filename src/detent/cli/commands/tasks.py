"""`tasks`: lists the tasks of the session."""

from typing import Unpack

import click

from detent.cli.commands.task.list import ListOptions, list_options, show_list
from detent.cli.request import Request, session_of
from detent.cli.verb import verb


@verb("tasks", example="detent tasks --watch")
@click.option("--watch", is_flag=True, help="Show every change, until Ctrl-C.")
@list_options
def tasks_verb(request: Request, *, watch: bool, **options: Unpack[ListOptions]) -> None:
    """List the tasks of the session, live with --watch.

    The same as task list. --watch redraws the list at a terminal after every change; elsewhere it prints a line per
    change, or with --json an object per line.
    """
    with request.reading() as project:
        handle = session_of(project, options["session"])
        if not watch:
            show_list(request, project, handle, options)
            return
        from detent.cli.commands.task.watch import watch_tasks

        watch_tasks(request, project, handle, options)
