"""`task`: plans, starts, finishes and shows tasks."""

from detent.cli.commands.task.edit import edit_task
from detent.cli.commands.task.exchange import export_tasks, import_tasks
from detent.cli.commands.task.list import list_tasks, show_task
from detent.cli.commands.task.plan import add_task, remove_task, replan_task, set_complexity, split_task
from detent.cli.commands.task.validate import validate_tasks
from detent.cli.commands.task.work import (
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
from detent.cli.verb import VerbGroup

task_verb = VerbGroup(
    "task",
    *(add_task, split_task, list_tasks, show_task, next_task, start_task, done_task, fail_task, block_task),
    *(unblock_task, resume_task, retry_task, reopen_task, release_task, beat_task, replan_task, edit_task, remove_task),
    *(validate_tasks, import_tasks, export_tasks, set_complexity),
    help="""Plan, start, finish and show the tasks of the session.

    A task is a document in .task with an id such as IMPL-3, or IMPL-3.1 for a part of it. It is ready when all its
    dependencies are completed. A started task has a claim until it is done, failed, blocked or released.""",
    example='detent task add "Validate the form" && detent task start',
)
