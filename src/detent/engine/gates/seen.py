"""Records the test runs that hooks noted. Every change of the session does that first, so none of them is lost."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from detent.core.actor import Actor, ActorKind, Channel
from detent.core.gate.evidence import RanBy
from detent.core.testrun.seen import MAX_OUTPUT, SEEN
from detent.engine.projections.publish import UNREADABLE
from detent.engine.redact_command import redact_text
from detent.errors import DetentError

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

#: Notes that one command records. The others wait for the next one.
MAX_AT_ONCE = 100


class SeenRun(msgspec.Struct, frozen=True, kw_only=True):
    """A note; `detent.hooks.seen` writes it."""

    #: Seconds since 1970.
    at: float
    client: str
    command: str
    output: str
    exit_code: int | None
    #: Set before the run is recorded. After a kill the journal says whether it was.
    taken: bool = False


def record_seen(project: "Project", session: str) -> tuple[str, ...]:
    """Record the noted runs; returns the phases whose gates they are about. The caller holds PROJECT."""
    phases: dict[str, None] = {}
    for name in project.store.names(f"{session}/{SEEN}")[:MAX_AT_ONCE]:
        try:
            run = msgspec.json.decode(project.store.get(name) or b"", type=SeenRun)
        except UNREADABLE:
            project.notices.append("a note about a test run could not be read, and was removed")
        else:
            if not run.taken:
                project.store.put(name, msgspec.json.encode(msgspec.structs.replace(run, taken=True)))
            author = Actor(name=run.client, kind=ActorKind.AGENT, channel=Channel.HOOK)
            try:
                phases.update(dict.fromkeys(_record(project.session(session, actor=author), run)))
            except DetentError as error:
                # The command that found the note has another purpose.
                project.notices.append(f"the test run `{run.command[:80]}` was not recorded: {error.message}")
        project.store.delete(name)
    return tuple(phases)


def _record(handle: "SessionHandle", run: SeenRun) -> list[str]:
    """The phases with a gate that the run is evidence for."""
    at, phases = datetime.fromtimestamp(run.at, UTC), []
    for phase in handle.state.in_progress:
        if run.taken and _is_recorded(handle, phase, run):
            continue
        if handle.gates.observe(phase, run.command, run.output[-MAX_OUTPUT:], run.exit_code, noted_at=at) is not None:
            phases.append(phase)
    return phases


def _is_recorded(handle: "SessionHandle", phase: str, run: SeenRun) -> bool:
    """Whether the journal has the run: the process that noted it as taken was ended right behind the commit."""
    for state in handle.state.phases[phase].gates.values():
        receipt, at = state.receipt, state.checked_at
        if receipt is None or receipt.by is not RanBy.SEEN or at is None or at.timestamp() < run.at:
            continue
        if receipt.command == redact_text(run.command) and receipt.exit_code == run.exit_code:
            return True
    return False
