"""`status`: shows the state of the session."""

from typing import TYPE_CHECKING, Any

from detent.cli.plain import SESSION
from detent.cli.request import Request, local_now

if TYPE_CHECKING:
    from detent.core.session.open_decision import View
    from detent.core.session.session import Session

EXAMPLE = "detent status"
PARAMETERS = (SESSION,)


def status(request: Request, session: str | None = None) -> None:
    """Show where the session stands and the next command."""
    from detent.core.session.open_decision import open_decisions
    from detent.core.session.sandboxing import sandbox_text
    from detent.engine.decisions import verdicts_now, view_now
    from detent.engine.run_lease import live_lease
    from detent.render.next_commands import START, next_commands
    from detent.render.terminal.status import idle_text, status_text

    with request.reading() as project:
        if session is None and project.binding is None and project.active() is None:
            where, paused = project.place.base, project.sessions.paused()
            commands = [*([f"detent resume {paused}"] if paused else []), START]
            record = {"session": None, "active": False, "needs": [], "next": commands}
            request.answer(lambda canvas: idle_text(where, paused=paused, canvas=canvas), record)
            return
        name = project.session_id(session)
        state, active, now = project.journal(name).session(), project.active() == name, local_now(project)
        lease = live_lease(project.store, name, now=project.clock())
        view, judged = view_now(project, state, running=lease is not None), verdicts_now(project, state)
        request.notice_unrecorded(project, name)
        runner_text = str(lease or "")
        if lease is not None and lease.on:
            from detent.worker.queues import needed_labels

            labels = needed_labels(project.settings, state).items()
            runner_text += f" on workers of {lease.on}"
            runner_text += "".join(f"; {key} needs a worker with {', '.join(needed)}" for key, needed in labels)
    decisions = open_decisions(state, judged, view)
    commands = next_commands(state, view, judged=judged, decisions=decisions)
    if active and state.has_ended:
        request.notices.append("the last command was interrupted; the next command, or detent adopt, completes it")
    launched = ((agent.agent_id, agent.sandboxed) for phase in state.phases.values() for agent in phase.delegations)
    sandbox = lease.sandbox if lease else sandbox_text(launched)
    runner = {name: getattr(lease, name) for name in ("run", "owner", "host", "pid", "since", "on")} if lease else None
    request.answer(
        lambda canvas: status_text(
            state,
            now=now,
            canvas=canvas,
            view=view,
            decisions=decisions,
            commands=commands,
            runner=runner_text,
            sandbox=sandbox,
        ),
        lambda: {
            **_session_record(state, view),
            "needs": decisions,
            "next": commands,
            "tasks": _task_counts(state),
            "runner": runner,
            "sandbox": sandbox,
        },
    )


def _session_record(state: "Session", view: "View") -> dict[str, Any]:
    from detent.render.json.record import session_record

    return session_record(state, view)


def _task_counts(state: "Session") -> dict[str, int] | None:
    if not len(state.tasks):
        return None
    from detent.render.terminal.tasks import tally

    return tally(state.tasks)
