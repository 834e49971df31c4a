"""`detent status`. It does without click, so that it can be answered before click would be loaded."""

from typing import TYPE_CHECKING, Any

from detent.cli.request import Request, is_active, local_now

if TYPE_CHECKING:
    from detent.core.session import Session
    from detent.engine.runner_note import Holder


def show_status(request: Request, session: str | None = None) -> None:
    from detent.core.session import SessionStatus
    from detent.engine.runner_note import holder
    from detent.views.footer import idle_text
    from detent.views.record import session_record
    from detent.views.status import status_text
    from detent.views.step import START

    with request.reading() as project:
        if session is None and project.binding is None and project.active() is None:
            where = project.place.base
            record = {"session": None, "active": False, "next": [START]}
            request.answer(lambda paper: idle_text(where, paper=paper), record)
            return
        handle = project.session(session)
        state, active, now = handle.state, is_active(project, handle), local_now(project)
        runner = holder(project.store, handle.id, now=project.clock())
    if active and state.status is not SessionStatus.ACTIVE:
        request.notices.append("the last command was interrupted; the next one, or detent adopt, tidies up after it")
    request.answer(
        lambda paper: status_text(state, now=now, paper=paper, active=active, runner=str(runner or "")),
        {**session_record(state, active=active), "tasks": _task_counts(state), "runner": _runner_record(runner)},
    )


def _runner_record(runner: "Holder | None") -> dict[str, Any] | None:
    if runner is None:
        return None
    return {name: getattr(runner, name) for name in ("run", "owner", "host", "pid", "since")}


def _task_counts(state: "Session") -> dict[str, int] | None:
    if not len(state.tasks):
        return None
    from detent.views.tasks import tally

    return tally(state.tasks)
