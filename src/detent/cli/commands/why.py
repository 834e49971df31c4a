"""`why`: explains what blocks the session."""

from detent.cli.request import Request, last_session
from detent.cli.verb import phase_argument, session_option, verb

#: How many of the last decisions are shown.
_MOST_DECISIONS = 3


@verb("why", example="detent why 08-code-review")
@phase_argument
@session_option
def why_verb(request: Request, phase: str | None, session: str | None) -> None:
    """Explain what blocks the session, or one phase.

    If no session is active, it is about the one in which something happened last. It also shows the last decisions of
    people: who, and at which terminal.
    """
    from detent.core.session.decide_phase import known_phase
    from detent.engine.decisions import view_now
    from detent.render.terminal.log import commit_record
    from detent.render.terminal.why import why_text

    with request.reading() as project:
        handle = last_session(project, session)
        state, everything = handle.state, handle.why()
        view = view_now(project, state)
        labels: dict[str, tuple[str, ...]] = {}
        on = ""
        if view.running:
            from detent.engine.run_lease import live_lease
            from detent.worker.queues import needed_labels

            lease = live_lease(project.store, handle.id, now=project.clock())
            on = lease.on if lease is not None else ""
            labels = needed_labels(project.settings, state) if on else {}
        request.notice_unrecorded(project, handle.id)
        decided = [commit for commit in handle.log() if commit.actor.proof is not None][-_MOST_DECISIONS:]
    key = known_phase(state, phase) if phase else None
    obstacles = tuple(obstacle for obstacle in everything if key is None or obstacle.phase in (key, None))
    request.answer(
        lambda canvas: why_text(
            state, obstacles, phase=key, canvas=canvas, view=view, decided=decided, labels=labels, on=on
        ),
        {
            "session": state.id,
            "phase": key,
            "obstacles": obstacles,
            "decided": [commit_record(commit) for commit in decided],
        },
    )
