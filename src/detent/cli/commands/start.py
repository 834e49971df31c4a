"""`start` and `import`: the two ways in which a session comes to be."""

import os
from typing import TYPE_CHECKING

import click

from detent.cli.request import Request, local_now
from detent.cli.verb import MAX_STDIN, TEXT, decoded, known_workflows, verb

if TYPE_CHECKING:
    from detent.core.session.events import Discovery
    from detent.core.workflow.graph import Workflow
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.render.terminal.canvas import Canvas

ADHOC = "adhoc"


@verb("start", example='detent start feature "Add login" --size light')
@click.argument("workflow", shell_complete=known_workflows)
@click.argument("task", type=TEXT)
@click.option("--name", help="The session's name; made from the task if not given.")
@click.option("--size", help="A size of the workflow, such as light, which leaves phases out.")
@click.option("--branch", metavar="NAME", help="The git branch that the work is on.")
@click.option("--discovery", metavar="FILE", help="What was found out about the code, for the phases that ask for it.")
@click.option(
    "--phase", "phases", metavar="TITLE:AGENT", multiple=True, help="A phase of an adhoc workflow; repeat it."
)
@click.pass_obj
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
) -> None:
    """Start a session: choose a workflow and describe the task.

    WORKFLOW is one of `detent workflows`, or adhoc with a --phase for each step. TASK - reads the task from standard
    input. The new session becomes the active one; one that was active before is paused.
    """
    chosen = _chosen(workflow, phases)
    found = _discovery(os.path.join(request.directory, discovery)) if discovery else None
    with request.changing() as project:
        handle = project.start(chosen, task, name=name, size=size, branch=branch, discovery=found)
        request.notices += project.left_out
        made = _Made(project, handle)
    _answer_new(request, made)


@verb("import", example="detent import old/state.json")
@click.argument("file", metavar="FILE")
@click.pass_obj
def import_verb(request: Request, file: str) -> None:
    """Create a session from a state document.

    FILE is a state document that Detent or another tool wrote; - reads it from standard input. The session becomes the
    active one.
    """
    import msgspec

    from detent.errors import Invalid

    text = TEXT.convert("-", None, None) if file == "-" else _read(os.path.join(request.directory, file))
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Invalid(f"{file} is not JSON: {error}", way_out="detent schema state shows what is expected") from error
    with request.changing() as project:
        handle = project.import_state(document, source=os.path.basename(file))
        made = _Made(project, handle)
    _answer_new(request, made)


class _Made:
    """A new session, and what its first phase is given."""

    def __init__(self, project: "Project", handle: "SessionHandle") -> None:
        from detent.core.session.status import Status

        self.state = handle.state
        self.now = local_now(project)
        live = self.state.with_status(Status.IN_PROGRESS)
        self.given = handle.handover(live[0]) if live else None
        self.token = self.state.token(live[0]) if live else None


def _answer_new(request: Request, made: _Made) -> None:
    from detent.render.json.record import session_record
    from detent.render.terminal.header import header_lines
    from detent.render.terminal.outcome import begun_text
    from detent.render.terminal.status import status_text

    def text(canvas: "Canvas") -> str:
        if made.token is None or made.given is None:
            return status_text(made.state, now=made.now, canvas=canvas)
        begun = begun_text(made.token, made.given, canvas=canvas)
        return "\n".join([*header_lines(made.state, made.now, canvas), "", begun])

    token = str(made.token) if made.token else None
    request.answer(text, {"session": session_record(made.state), "token": token, "handover": made.given})


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


def _discovery(path: str) -> "Discovery":
    from datetime import UTC, datetime

    from detent.core.session.events import Discovery

    return Discovery(text=_read(path), at=datetime.fromtimestamp(int(os.path.getmtime(path)), UTC))


def _read(path: str) -> str:
    from detent.errors import NotFound

    try:
        with open(path, "rb") as file:
            return decoded(file.read(MAX_STDIN + 1), path)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
