"""`watch`: follows a run from another terminal."""

import time
from typing import TYPE_CHECKING

from detent.cli.request import Request, last_session, local_now
from detent.cli.verb import session_option, verb

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.run_lease import RunLease
    from detent.engine.session import SessionHandle

#: Seconds between checks of the run's lease, and seconds without a lease after which the run is over.
_CHECK_S, _GRACE_S = 1.0, 3.0


@verb("watch", example="detent watch")
@session_option
def watch_verb(request: Request, session: str | None) -> None:
    """Follow a run from another terminal.

    It ends with the run, or with Ctrl-C, which does not affect the run.
    """
    watch(request, session)


def watch(request: Request, session: str | None) -> None:
    from detent.engine.run_lease import live_lease

    with request.reading() as project:
        handle = last_session(project, session)
        lease = live_lease(project.store, handle.id, now=project.clock())
        if lease is None:
            _answer_idle(request, project, handle)
            return
        request.print_notices()
        _follow(request, project, handle, lease)


def _follow(request: Request, project: "Project", handle: "SessionHandle", lease: "RunLease") -> None:
    from detent.cli.run_screen import Screen, Style
    from detent.core.run.estimate import usual_minutes
    from detent.run.feed import follow

    screen = Screen(
        lambda: handle.state,
        style=Style.fitting(json=request.json),
        now=lambda: local_now(project),
        usual=usual_minutes(project.history(), handle.state.workflow.name),
    )
    liveness = _Liveness(project, handle.id, lease)
    try:
        reader = project.store.feed_reader(handle.id)
        for event in follow(reader, stopping=liveness.is_over, belongs=liveness.belongs):
            if event is None:
                screen.tick()
            else:
                screen.tell(event)
    except KeyboardInterrupt:
        # The usual way to stop watching. The run continues.
        pass
    finally:
        screen.close()


class _Liveness:
    """Detects the end of a run whose process died before it could write its last event."""

    def __init__(self, project: "Project", session: str, lease: "RunLease") -> None:
        self._project, self._session, self._lease = project, session, lease
        self._checked_s = self._seen_s = time.monotonic()

    def belongs(self, run: str) -> bool:
        """Whether a run is the one that is followed. On workers a later loop continues a run, with a later term."""
        if not self._lease.on:
            return run == self._lease.run
        return run.rpartition("-")[0] == self._lease.run.rpartition("-")[0]

    def is_over(self) -> bool:
        from detent.engine.run_lease import live_lease

        now_s = time.monotonic()
        if now_s - self._checked_s >= _CHECK_S:
            self._checked_s = now_s
            lease = live_lease(self._project.store, self._session, now=self._project.clock())
            self._seen_s = now_s if lease is not None and self.belongs(lease.run) else self._seen_s
        return now_s - self._seen_s >= _GRACE_S


def _answer_idle(request: Request, project: "Project", handle: "SessionHandle") -> None:
    from detent.core.session.open_decision import open_decisions
    from detent.engine.decisions import verdicts_now, view_now
    from detent.render.json.record import session_record
    from detent.render.next_commands import go_on
    from detent.render.terminal.status import status_text

    state, now = handle.state, local_now(project)
    view, judged = view_now(project, state), verdicts_now(project, state)
    decisions = open_decisions(state, judged, view)
    # Of an ended or inactive session, no run can begin.
    hint = f"; {go_on(state)} starts one" if view.active and not state.has_ended else ""
    request.answer(
        lambda canvas: "\n".join(
            [
                canvas.cut(f"no run of {state.id} is active{hint}", canvas.width),
                "",
                status_text(state, now=now, canvas=canvas, view=view, decisions=decisions),
            ]
        ),
        {"running": False, **session_record(state, view), "needs": decisions},
    )
