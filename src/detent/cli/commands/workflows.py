"""`workflows`: lists the workflows that can be started."""

from detent.cli.request import Request
from detent.cli.verb import verb


@verb("workflows", example="detent workflows")
def workflows_verb(request: Request) -> None:
    """List the workflows that can be started.

    The built-in ones, and those of detent.toml. Of workflows that are alike it says what differs.
    """
    from detent.core.workflow.difference import differences
    from detent.core.workflow.graph import Workflow
    from detent.errors import DetentError
    from detent.render.terminal.workflows import workflows_text

    with request.reading_all() as projects:
        # All packages of a monorepo have the same settings.
        catalogue = next(iter(projects.values())).catalogue
        titles = {name: catalogue.title(name) for name in catalogue.names()}
        workflows: dict[str, Workflow | str] = {}
        for name in titles:
            try:
                workflows[name] = catalogue.workflow(name)
            except DetentError as error:
                workflows[name] = error.message
        usable = {name: workflow for name, workflow in workflows.items() if isinstance(workflow, Workflow)}
        differs = differences(usable, catalogue.variants)
    records = [
        {"name": name, "title": titles[name], "problem": workflow}
        if isinstance(workflow, str)
        else {
            "name": name,
            "title": titles[name],
            "differs": differs.get(name, ""),
            "phases": workflow.order,
            "sizes": workflow.sizes,
        }
        for name, workflow in workflows.items()
    ]
    request.answer(lambda canvas: workflows_text(titles, workflows, differs, canvas=canvas), {"workflows": records})
