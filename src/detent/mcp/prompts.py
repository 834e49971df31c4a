"""The prompt `go_on`: the phase in progress, what earlier phases left, what its gates ask for, which tools end it."""

from typing import TYPE_CHECKING, Any

from detent.core.session.decide_phase import known_phase
from detent.core.session.status import Status
from detent.errors import DetentError, NotFound
from detent.mcp.answers import actor_of, workspace_of
from detent.mcp.listed import GO_ON, PROMPTS
from detent.mcp.wire import Code, Fault
from detent.render.prompt.briefing import assignment

if TYPE_CHECKING:
    from detent.engine.session import SessionHandle
    from detent.mcp.server import Context


def get_prompt(name: object, arguments: object, context: "Context") -> dict[str, Any]:
    """The messages of a prompt. Raises `Fault` if there is none, or if no phase is left."""
    given = {} if arguments is None else arguments
    phase = given.get("phase", "") if isinstance(given, dict) else None
    if name != GO_ON or not isinstance(phase, str):
        raise Fault(Code.PARAMS, f"the prompt is {GO_ON}, and its argument phase is a text")
    workspace = workspace_of(context)
    try:
        with workspace.read(actor_of(workspace, context)) as project:
            text = _go_on(project.session(), phase)
    except DetentError as error:
        raise Fault(Code.PARAMS, error.message, {"way_out": error.way_out} if error.way_out else None) from error
    return {
        "description": PROMPTS[0]["title"],
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }


def _go_on(handle: "SessionHandle", phase: str) -> str:
    state = handle.state
    live = (*state.with_status(Status.IN_PROGRESS), *state.ready)
    if not phase and not live:
        raise NotFound(f"no phase of {state.id} is in progress or ready", way_out="the tool why says what holds it")
    key = known_phase(state, phase) if phase else live[0]
    if state.phases[key].status is not Status.IN_PROGRESS:
        return (
            f"The next phase of this task is {key}: {state.task}\nCall the tool begin with the phase {key}, and work "
            "on the handover that it returns. Call finish when the work is done."
        )
    assigned = assignment(state, handle.handover(key), handle.gates.judgements(key)[key])
    return (
        f"{assigned}\n\nWhen the work is done, call the tool finish with the phase, its token, a summary and the files "
        "made. If it is refused, call why, fix the cause and call finish again. If it answers pending, tell the person "
        "what it waits for, and stop."
    )
