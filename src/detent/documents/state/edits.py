"""Translates an edit of the state document into events.

An edit is adopted if commands lead to a document with the edited values. Every other change is reported with its path;
nothing is guessed and nothing is dropped.
"""

from collections.abc import Iterator

from detent.core.gate.evidence import Facts
from detent.core.session.commands import Begin, Command, Fail, Finish
from detent.core.session.decide import decide
from detent.core.session.events import Event
from detent.core.session.evolve import apply
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.documents.state.rules import Violation, check_write
from detent.documents.state.shape import Document, mapping, sequence
from detent.documents.state.writing import running
from detent.errors import DetentError

#: What Detent computes: keys of the document, of its workflow and of a phase. Their values in an edit are ignored.
_DERIVED = frozenset({"state_version", "history", "workflow_history"})
_DERIVED_OF_WORKFLOW = frozenset({"journal"})
_DERIVED_OF_PHASE = frozenset({"timing", "started", "completed", "gate_passed"})


def edit_events(session: Session, edited: object, *, facts: Facts) -> tuple[tuple[Event, ...], list[Violation]]:
    """The events of the edit, or all reasons against it."""
    before, document = running(session), mapping(edited)
    violations = [violation for violation in check_write(edited, before) if violation.blocks]
    if not isinstance(document.get("active_workflow"), dict):
        violations.append(_refusal("active_workflow", "an edit cannot remove the workflow; use detent cancel"))
    if violations:
        return (), violations
    events: list[Event] = []
    after = session
    for key in session.active_order:
        try:
            for command in _commands(after, key, document):
                decided = decide(after, command, facts)
                events.extend(decided)
                for event in decided:
                    after = apply(after, event, at=facts.now, version=session.version + 1)
        except DetentError as error:
            return (), [_refusal(f"phases.{key}.status", error.message)]
    return tuple(events), list(_unexplained(before, document, running(after)))


def _commands(session: Session, key: str, edited: Document) -> Iterator[Command]:
    state = session.phases[key]
    record = mapping(mapping(edited.get("phases")).get(key))
    wanted = _wanted(
        state.status, record.get("status"), mapping(edited["active_workflow"].get("phase_status")).get(key)
    )
    if wanted == state.status:
        return
    if state.status is Status.PENDING:
        yield Begin(phase=key)
    artifacts = tuple(path for path in sequence(record.get("artifacts")) if isinstance(path, str))
    text = record.get("summary") if wanted == Status.COMPLETED else record.get("error")
    reason = text if isinstance(text, str) and text.strip() else "marked by an edit of the state document"
    if wanted == Status.COMPLETED:
        yield Finish(phase=key, summary=reason, artifacts=artifacts)
    elif wanted == Status.FAILED:
        yield Fail(phase=key, error=reason, artifacts=artifacts)


def _wanted(now: Status, *mirrors: object) -> str:
    """The changed mirror has the wanted status; if both changed, the phase record."""
    return next((str(word) for word in mirrors if word is not None and word != now), now)


def _unexplained(before: Document, edited: Document, after: Document) -> Iterator[Violation]:
    """A violation for each changed path whose new value is not in the outcome."""
    for path, value in _leaves(edited):
        if not _is_derived(path) and _at(before, path) != value and _at(after, path) != value:
            yield _refusal(".".join(path), f"an edit cannot set this; its value is {_at(before, path)!r}")
    for path, value in _leaves(before):
        if not _is_derived(path) and _at(edited, path) is None and value is not None:
            yield _refusal(".".join(path), f"an edit cannot remove this; its value is {value!r}")


def _is_derived(path: tuple[str, ...]) -> bool:
    match path:
        case ("active_workflow", key, *_):
            return key in _DERIVED_OF_WORKFLOW
        case ("phases", _, key, *_):
            return key in _DERIVED_OF_PHASE
        case (key, *_):
            return key in _DERIVED
        case _:
            return False


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _at(value: object, path: tuple[str, ...]) -> object:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _refusal(path: str, message: str) -> Violation:
    return Violation(rule="EDIT", path=path, message=message, blocks=True)
