"""`mcp`: the MCP server of a project."""

from detent.cli.plain import Parameter
from detent.cli.request import Request

EXAMPLE = "detent mcp"
PARAMETERS: tuple[Parameter, ...] = ()


def mcp(request: Request) -> None:
    """Serve the session to an agent over MCP.

    It uses standard input and output. A client starts it, and it ends when the client closes its end. The tools are
    status, why, begin, finish, fail, gate_run, task_next, task_start, task_done, task_add, ask, checkpoints and diff.
    The actor is always an agent: decisions of people are not offered, and an answer says where a person makes them.
    """
    from detent.mcp.server import main

    main(request.directory, request.project)
