"""Decides commands about checkpoints, and lists the checkpoints that events cause.

| cause | checkpoint |
|---|---|
| a phase is begun or redone | PRE (started) |
| a phase is finished | POST (success), or POST (approved) if it has a gate with a quorum |
| a phase fails | POST (failed) |
| `detent checkpoint create` | PRE (note) |
| a rollback | PRE (safety) of the present, then PRE (rollback) of the next attempt |
"""

from collections.abc import Iterator

from detent.core.checkpoint.checkpoint import CheckpointKind, Taken, Tree, checkpoint_id, checkpoint_name
from detent.core.checkpoint.rollback import effects, live_beside
from detent.core.gate.evidence import Facts
from detent.core.limits import MAX_REASON, check_optional
from detent.core.session.commands import CheckpointCommand, Rollback, TakeCheckpoint
from detent.core.session.events import (
    CheckpointTaken,
    Event,
    PhaseBegun,
    PhaseEvent,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    PhaseReset,
    PhaseSkipped,
    RolledBack,
)
from detent.core.session.session import Session
from detent.errors import Conflict, Refused


def checkpoints(session: Session, events: tuple[Event, ...], facts: Facts) -> Iterator[CheckpointTaken]:
    """The checkpoint of each event that causes one."""
    parent = session.checkpoint
    for event in events:
        if not isinstance(event, PhaseEvent):
            continue
        match event:
            case PhaseBegun() | PhaseRedone():
                kind, taken = CheckpointKind.PRE, Taken.STARTED
            case PhaseFinished():
                gates = session.gates(event.phase)
                approved = any(gate.needs_quorum for gate in gates)
                kind, taken = CheckpointKind.POST, Taken.APPROVED if approved else Taken.SUCCESS
            case PhaseFailed():
                kind, taken = CheckpointKind.POST, Taken.FAILED
            case PhaseSkipped() | PhaseReset():
                continue
        checkpoint = _take(session, facts, event.phase, event.attempt, kind=kind, taken=taken, parent=parent)
        parent = checkpoint.id
        yield checkpoint


def current(session: Session) -> str:
    """The phase that a checkpoint of the present belongs to: in progress, else begun last, else the first."""
    live = session.in_progress
    if live:
        return live[0]
    begun = [key for key in session.workflow.order if session.phases[key].attempt]
    return max(begun, key=lambda key: session.phases[key].fence, default=session.workflow.order[0])


def decide_checkpoint(session: Session, command: CheckpointCommand, facts: Facts) -> tuple[Event, ...]:
    if isinstance(command, TakeCheckpoint):
        if facts.tree is None:
            raise Refused(
                "checkpoints are switched off here", way_out='set capture = "tree" under [checkpoint] in detent.toml'
            )
        note = check_optional("a note", command.note, MAX_REASON)
        phase = current(session)
        if command.phase is not None and command.phase != phase:
            if command.phase not in session.in_progress:
                raise Refused(f"phase {command.phase} is not in progress; the present belongs to {phase}")
            phase = command.phase
        return (_of_present(session, facts, Taken.NOTE, facts.tree, phase=phase, note=note),)
    return _rollback(session, command, facts)


def _rollback(session: Session, command: Rollback, facts: Facts) -> tuple[Event, ...]:
    if session.version != command.version:
        raise Conflict(
            f"{session.id} moved on from version {command.version} to {session.version} during the rollback",
            way_out="look at it again with detent status, then repeat the command",
        )
    target, version = command.to, session.version + 1
    beside = live_beside(session, target.phase)
    if beside and command.files and not command.paths and command.undoes is None:
        raise Refused(
            f"{', '.join(beside)} is in progress beside {target.phase} and works on the same files",
            way_out="finish or fail it first, or use --phase-only or --paths",
        )
    safety = _of_present(session, facts, Taken.SAFETY, command.before, phase=current(session))
    is_undo = command.undoes is not None
    phases, tasks = effects(
        session, command.past, target.phase, version, only_paths=bool(command.paths), is_undo=is_undo
    )
    event = RolledBack(
        id=checkpoint_id(session.id, facts.now, f"rollback {version}"),
        to=target.id,
        name=target.name,
        phases=phases,
        tasks=tasks,
        safety=safety.id,
        source=session.checkpoint,
        archive=command.archive,
        files=command.files,
        paths=command.paths,
        phase_only=command.phase_only,
        undoes=command.undoes,
    )
    if command.paths:
        note = f"after restoring {', '.join(command.paths[:3])}"
        return safety, event, _of_present(session, facts, Taken.NOTE, command.after, phase=current(session), note=note)
    attempt = session.phases[target.phase].attempt + 1
    return (
        safety,
        event,
        _take(session, facts, target.phase, attempt, taken=Taken.ROLLBACK, parent=target.id, tree=command.after),
    )


def _of_present(
    session: Session, facts: Facts, taken: Taken, tree: Tree, *, phase: str, note: str = ""
) -> CheckpointTaken:
    attempt = max(1, session.phases[phase].attempt)
    return _take(session, facts, phase, attempt, taken=taken, parent=session.checkpoint, tree=tree, note=note)


def _take(
    session: Session,
    facts: Facts,
    phase: str,
    attempt: int,
    *,
    taken: Taken,
    parent: str | None,
    kind: CheckpointKind = CheckpointKind.PRE,
    tree: Tree | None = None,
    note: str = "",
) -> CheckpointTaken:
    state = session.phases[phase]
    latest = state.pre if kind is CheckpointKind.PRE else state.post
    first = taken not in (Taken.NOTE, Taken.SAFETY) and attempt > latest
    name = checkpoint_name(kind, phase, attempt, session.version + 1, first=first)
    if taken is Taken.SAFETY:
        name += "_safety"
    files = tree or facts.tree
    assert files is not None
    return CheckpointTaken(
        id=checkpoint_id(session.id, facts.now, name),
        name=name,
        phase=phase,
        kind=kind,
        attempt=attempt,
        taken=taken,
        tree=files,
        parent=parent,
        note=note,
    )
