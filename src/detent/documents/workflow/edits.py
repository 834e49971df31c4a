"""Translates an edit of the workflow document into events.

As with the state document, an edit is adopted if commands lead to the edited values. Every other change is reported.
"""

from collections.abc import Iterator
from typing import Any

from detent.core.gate.evidence import Facts
from detent.core.session.commands import Begin, Command, Fail, Finish, Redo
from detent.core.session.decide import decide
from detent.core.session.events import Event
from detent.core.session.evolve import apply
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.documents.workflow.shape import Document, from_session
from detent.errors import DetentError

_EDITED = "marked by an edit of the workflow document"


def edit_events(session: Session, edited: Document, *, facts: Facts) -> tuple[tuple[Event, ...], list[str]]:
    """The events of the edit, or all reasons against it. The document is valid and of this session."""
    before = from_session(session)
    problems = list(_fixed(before, edited))
    if problems:
        return (), problems
    events: list[Event] = []
    after = session
    for key, old, new in zip(session.active_order, before["phases"], edited["phases"], strict=True):
        try:
            for command in commands(session, key, old, new):
                made = decide(after, command, facts)
                for event in made:
                    after = apply(after, event, at=facts.now, version=session.version + 1)
                events.extend(made)
        except DetentError as error:
            return (), [f"{old['id']}: {error.message}"]
    wanted = {phase["id"]: phase for phase in edited["phases"]}
    return tuple(events), [
        f"{phase['id']}.{name}: an edit cannot set this; its value is {phase[name]!r:.200}"
        for phase in from_session(after)["phases"]
        for name in ("status", "deliverables", "context_for_next")
        if phase[name] != wanted[phase["id"]][name]
    ]


def commands(session: Session, key: str, old: Document, new: Document) -> Iterator[Command]:
    """The commands that lead from one entry of a phase to another. None if its status is the same."""
    status, wanted = session.phases[key].status, new["status"]
    if old["status"] == wanted or wanted == "pending":
        return
    if wanted == "active":
        yield Begin(phase=key) if status is Status.PENDING else Redo(phase=key, reason=_EDITED)
        return
    if status is Status.PENDING:
        yield Begin(phase=key)
    if wanted == "failed":
        yield Fail(phase=key, error=new["context_for_next"].strip() or _EDITED)
        return
    yield Finish(
        phase=key,
        summary=f"{old['title']} done",
        deliverables=tuple(new["deliverables"]),
        context=new["context_for_next"],
    )


def _fixed(before: Document, edited: Document) -> Iterator[str]:
    """The fields that no edit changes: the task, the phases, their titles and agents."""
    pairs: list[tuple[str, Any, Any]] = [("task", before["task"], edited["task"])]
    if len(before["phases"]) != len(edited["phases"]):
        yield f"phases: the session has {len(before['phases'])} of them"
    for old, new in zip(before["phases"], edited["phases"], strict=False):
        pairs += [(f"{old['id']}.{name}", old[name], new[name]) for name in ("title", "agent")]
    for name, old_value, new_value in pairs:
        if old_value != new_value:
            yield f"{name}: an edit cannot set this; its value is {old_value!r:.200}"
