"""`watch`: a run, seen from another terminal."""

import time
from typing import TYPE_CHECKING

import click

from detent.cli.request import Request, is_active, local_now, session_of
from detent.cli.verb import session_option, verb

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

#: How often is looked whether the run is still alive, and how long it may be gone before its end is told.
_LOOK_S, _GRACE_S = 1.0, 3.0


@verb("watch", example="detent watch")
@session_option
@click.pass_obj
def watch_verb(request: Request, session: str | None) -> None:
    """Follow a run from another terminal.

    Until the run ends, or Ctrl-C, which does not touch it.
    """
    watch(request, session)


def watch(request: Request, session: str | None) -> None:
    from detent.engine.run_lease import live_lease

    with request.reading() as project:
        handle = session_of(project, session)
        found = live_lease(project.store, handle.id, now=project.clock())
        if found is None:
            _say_where_it_stands(request, project, handle)
            return
        request.say_notices()
        _look_on(request, project, handle, found.run)


def _look_on(request: Request, project: "Project", handle: "SessionHandle", run: str) -> None:
    from detent.cli.run_screen import Screen, Style
    from detent.core.run.estimate import usual_minutes
    from detent.run.feed import feed_path, follow

    screen = Screen(
        lambda: handle.state,
        style=Style.fitting(json=request.json),
        now=lambda: local_now(project),
        usual=usual_minutes(project.history(), handle.state.workflow.name),
    )
    path, life = feed_path(project.store, handle.id), _Life(project, handle.id, run)
    try:
        for event in follow(path, from_start=True, stopping=life.is_over, run=run):
            if event is None:
                screen.tick()
            else:
                screen.tell(event)
    except KeyboardInterrupt:
        # The way it ends; the run goes on.
        pass
    finally:
        screen.close()


class _Life:
    """Whether a run is over although it did not say so: whoever ran it died."""

    def __init__(self, project: "Project", session: str, run: str) -> None:
        self._project, self._session, self._run = project, session, run
        self._looked_s = self._seen_s = time.monotonic()

    def is_over(self) -> bool:
        from detent.engine.run_lease import live_lease

        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            found = live_lease(self._project.store, self._session, now=self._project.clock())
            self._seen_s = now_s if found is not None and found.run == self._run else self._seen_s
        return now_s - self._seen_s >= _GRACE_S


def _say_where_it_stands(request: Request, project: "Project", handle: "SessionHandle") -> None:
    from detent.render.json.record import session_record
    from detent.render.terminal.status import status_text

    state, active, now = handle.state, is_active(project, handle), local_now(project)
    request.answer(
        lambda canvas: "\n".join(
            [
                canvas.cut(f"nobody runs {state.id} now; detent run does", canvas.width),
                "",
                status_text(state, now=now, canvas=canvas, active=active),
            ]
        ),
        {"running": False, **session_record(state, active=active)},
    )
