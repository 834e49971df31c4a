"""The resources: the session, its journal by pages, its report, and the contexts of tasks."""

from typing import TYPE_CHECKING, Any

import msgspec

from detent.core.limits import cut
from detent.errors import DetentError
from detent.mcp.answers import MAX_ANSWER, actor_of, workspace_of
from detent.mcp.listed import JOURNAL, JSON, MARKDOWN, REPORT, SESSION, TASK
from detent.mcp.wire import Code, Fault

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.mcp.server import Context

#: Commits of one page of the journal, and bytes: a page has at least one commit.
PAGE, PAGE_BYTES = 50, MAX_ANSWER


def read_resource(uri: object, context: "Context") -> dict[str, Any]:
    """The contents of a resource. Raises `Fault` if there is none."""
    if not isinstance(uri, str):
        raise Fault(Code.PARAMS, "uri is needed, a text")
    workspace = workspace_of(context)
    try:
        with workspace.read(actor_of(workspace, context)) as project:
            handle = _session(project)
            kind, text = _content(uri, handle, project)
    except DetentError as error:
        raise Fault(Code.NO_RESOURCE, f"{uri[:200]} cannot be read: {error.message}", {"uri": uri[:200]}) from error
    return {"contents": [{"uri": uri, "mimeType": kind, "text": text}]}


def _session(project: "Project") -> "SessionHandle":
    """The session of the agent, or the active one; the last one if none is active."""
    is_idle = project.binding is None and project.active() is None
    return project.session(project.sessions.last() if is_idle else None)


def _content(uri: str, handle: "SessionHandle", project: "Project") -> tuple[str, str]:
    head, _, rest = uri.removeprefix("detent://").partition("/")
    match f"detent://{head}", rest:
        case (kind, "") if kind == SESSION:
            from detent.engine.decisions import view_now  # noqa: PLC0415
            from detent.render.json.record import session_record  # noqa: PLC0415

            state = handle.state
            return JSON, _json(session_record(state, view_now(project, state)))
        case (kind, after) if kind == JOURNAL and (not after or (after.isascii() and after.isdigit())):
            return JSON, _json(_page(handle, int(after or 0)))
        case (kind, "") if kind == REPORT:
            from detent.engine.checkpoints.changes import changes_of  # noqa: PLC0415
            from detent.render.markdown.report import report_text  # noqa: PLC0415

            return MARKDOWN, cut(report_text(handle.state, list(handle.log()), changes_of(handle)), MAX_ANSWER)
        case (kind, task) if kind == TASK and task:
            return JSON, _json(handle.tasks.context(task))
    raise Fault(Code.NO_RESOURCE, f"there is no resource {uri[:200]}", {"uri": uri[:200]})


def _page(handle: "SessionHandle", after: int) -> dict[str, Any]:
    """The commits behind a version, and the resource that has those behind them."""
    from detent.render.terminal.log import commit_record  # noqa: PLC0415

    commits: list[msgspec.Raw] = []
    size, last, more = 0, after, False
    for commit in handle.log():
        if commit.version <= after:
            continue
        data = msgspec.json.encode(commit_record(commit))
        if len(commits) == PAGE or (commits and size + len(data) > PAGE_BYTES):
            more = True
            break
        commits.append(msgspec.Raw(data))
        size, last = size + len(data), commit.version
    return {"session": handle.id, "commits": commits, "next": f"{JOURNAL}/{last}" if more else None}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
