"""`graph`: draws the phase graph."""

import click

from detent.cli.request import Request
from detent.cli.verb import known_workflows, session_option, verb


@verb("graph", example="detent graph feature --mermaid")
@click.argument("workflow", required=False, metavar="[WORKFLOW]", shell_complete=known_workflows)
@click.option("--mermaid", "as_mermaid", is_flag=True, help="A Mermaid flowchart, for Markdown.")
@session_option
def graph_verb(request: Request, workflow: str | None, *, as_mermaid: bool, session: str | None) -> None:
    """Draw the phase graph of the session or of a workflow.

    Without WORKFLOW the phases of the active session, each with its status.
    """
    from detent.render.terminal.graph import graph_text, mermaid, statuses

    with request.reading() as project:
        if workflow is not None:
            graph, by_phase = project.catalogue.workflow(workflow), {}
        else:
            state = project.session(session).state
            graph, by_phase = state.workflow, statuses(state)
    request.answer(
        lambda canvas: mermaid(graph, by_phase) if as_mermaid else graph_text(graph, by_phase, canvas=canvas),
        {
            "workflow": graph.name,
            "phases": [
                {"phase": key, "status": by_phase.get(key), "needs": graph.by_key[key].needs} for key in graph.order
            ],
            "mermaid": mermaid(graph, by_phase),
        },
    )
