"""`start`: starts a session."""

import os
from typing import TYPE_CHECKING

import click

from detent.cli.answers import answer_started
from detent.cli.input import read_text
from detent.cli.request import Request
from detent.cli.verb import TEXT, known_workflows, quorum_option, verb

if TYPE_CHECKING:
    from detent.core.session.events import Discovery
    from detent.core.workflow.graph import Workflow

ADHOC = "adhoc"


@verb("start", example='detent start feature "Add login" --size light')
@click.argument("workflow", shell_complete=known_workflows)
@click.argument("task", type=TEXT)
@click.option("--name", help="The session's name; made from the task if not given.")
@click.option("--size", help="A size of the workflow, such as light, which leaves phases out.")
@click.option("--branch", metavar="NAME", help="The git branch of the work.")
@click.option("--discovery", metavar="FILE", help="Findings about the code, for the phases that ask for them.")
@click.option(
    "--phase", "phases", metavar="TITLE:AGENT", multiple=True, help="A phase of an adhoc workflow; repeat it."
)
@quorum_option
def start_verb(
    request: Request,
    workflow: str,
    task: str,
    *,
    name: str | None,
    size: str | None,
    branch: str | None,
    discovery: str | None,
    phases: tuple[str, ...],
    quorum: int | None,
) -> None:
    """Start a session: choose a workflow and describe the task.

    WORKFLOW is one of `detent workflows`, or adhoc with a --phase for each step. TASK - reads the task from standard
    input. The new session becomes the active one; the session that was active is paused.
    """
    chosen = _chosen(workflow, phases)
    findings = _discovery(request, discovery) if discovery else None
    with request.changing() as project:
        handle = project.start(chosen, task, name=name, size=size, branch=branch, discovery=findings, quorum=quorum)
        request.notices += project.left_out
        answer = answer_started(request, project, handle)
    answer()


def _chosen(workflow: str, phases: tuple[str, ...]) -> "str | Workflow":
    from detent.core.workflow.graph import chain

    if workflow == ADHOC:
        if not phases:
            raise click.UsageError('an adhoc workflow needs phases: --phase "Write it:developer" --phase "Check it"')
        split = (phase.rpartition(":") if ":" in phase else (phase, "", "") for phase in phases)
        return chain(ADHOC, [(title.strip(), agent.strip()) for title, _, agent in split], title="Phases as given")
    if phases:
        raise click.UsageError(f"--phase makes an {ADHOC} workflow; {workflow} has its own phases")
    return workflow


def _discovery(request: Request, file: str) -> "Discovery":
    from datetime import UTC, datetime

    from detent.core.session.events import Discovery

    text = read_text(request, file)
    modified_s = int(os.path.getmtime(os.path.join(request.directory, file)))
    return Discovery(text=text, at=datetime.fromtimestamp(modified_s, UTC))
