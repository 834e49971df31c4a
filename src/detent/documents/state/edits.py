"""What a person meant who edited the state document by hand.

An edit is understood when the commands it amounts to lead to a document that says what the person wrote. Whatever
else was changed is reported with its path; nothing is guessed and nothing is dropped.
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

#: Stamps and counters follow from the events; whatever an edit says about them is Detent's to compute.
_DERIVED = frozenset(
    {"state_version", "history", "workflow_history", "timing", "started", "completed", "gate_passed", "journal"}
)


def understand(session: Session, edited: object, *, facts: Facts) -> tuple[tuple[Event, ...], list[Violation]]:
    """The events that the edit amounts to, or every reason against it."""
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
    said = text if isinstance(text, str) and text.strip() else "marked by an edit of the state document"
    if wanted == Status.COMPLETED:
        yield Finish(phase=key, summary=said, artifacts=artifacts)
    elif wanted == Status.FAILED:
        yield Fail(phase=key, error=said, artifacts=artifacts)


def _wanted(now: Status, *mirrors: object) -> str:
    """The mirror that was changed says what is wanted; if both were, the detailed record does."""
    return next((str(word) for word in mirrors if word is not None and word != now), now)


def _unexplained(before: Document, edited: Document, after: Document) -> Iterator[Violation]:
    """Each changed path whose new value the outcome does not have."""
    for path, value in _leaves(edited):
        if _DERIVED.isdisjoint(path) and _at(before, path) != value and _at(after, path) != value:
            yield _refusal(".".join(path), f"this cannot be set by an edit; it stands at {_at(before, path)!r}")
    for path, value in _leaves(before):
        if _DERIVED.isdisjoint(path) and _at(edited, path) is None and value is not None:
            yield _refusal(".".join(path), f"this was removed; it stands at {value!r}")


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
