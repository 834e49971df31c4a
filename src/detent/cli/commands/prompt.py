"""`prompt`: shows the prompt that a run would give to the agent of a phase."""

from detent.cli.request import Request
from detent.cli.verb import phase_argument, session_option, verb


@verb("prompt", example="detent prompt 06-implementation")
@phase_argument
@session_option
def prompt_verb(request: Request, phase: str | None, session: str | None) -> None:
    """Show the prompt that a run gives to the agent of a phase.

    Without PHASE it is the phase in progress, or the next one. The prompt has the role of the agent, the instructions
    of the phase, what the gates ask for, what earlier phases left, and what failed before.
    """
    from detent.core.session.decide_phase import known_phase
    from detent.core.session.status import Status
    from detent.errors import NotFound
    from detent.run.phase_run import turn_count, what_failed
    from detent.run.prompt import prompt_of

    with request.reading() as project:
        handle = project.session(session)
        state = handle.state
        live = (*state.in_progress, *state.unfinished)
        if phase is None and not live:
            raise NotFound(f"all phases of {state.id} are done", way_out="detent prompt PHASE")
        key = known_phase(state, phase) if phase else live[0]
        at = state.phases[key]
        failed = what_failed(at) if at.status is Status.FAILED else ""
        turn = turn_count(state, key) + 1 if at.status is Status.IN_PROGRESS else 1
        text = prompt_of(handle, state, key, turn=turn, failed=failed)
    request.answer(
        lambda canvas: "\n".join(map(canvas.clean, text.splitlines())),
        {"session": state.id, "phase": key, "prompt": text},
    )
