"""Detent holds long agent-driven work to a workflow.

`detent.open(path)` gives the project around a directory; everything else is reached from there.
"""

__version__ = "0.1.0"

# Not from `typing`: the hook path imports this package for every tool call, and `typing` costs more than the decision.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from detent import errors
    from detent.compat.checkpoint_service import CheckpointService
    from detent.engine.project import Project, open_project
    from detent.run.scheduler import Runner

    open = open_project  # noqa: A001 - the name users expect: detent.open(path)

__all__ = ["CheckpointService", "Project", "Runner", "__version__", "errors", "open"]


def __getattr__(name: str) -> object:
    if name == "errors":
        import importlib  # noqa: PLC0415

        return importlib.import_module("detent.errors")
    if name in ("open", "Project"):
        from detent.engine import project  # noqa: PLC0415

        return project.open_project if name == "open" else project.Project
    if name == "CheckpointService":
        from detent.compat import checkpoint_service  # noqa: PLC0415

        return checkpoint_service.CheckpointService
    if name == "Runner":
        from detent.run import scheduler  # noqa: PLC0415

        return scheduler.Runner
    raise AttributeError(f"module 'detent' has no attribute {name!r}")
