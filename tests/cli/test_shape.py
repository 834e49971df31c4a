"""The schemas describe every key of the documents that Detent writes, at every depth, and no other key."""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from msgspec.structs import replace

from detent.cli.shape import HistoryEntry, SessionDocument, StateDocument
from detent.core.gate.registry import KINDS
from detent.core.session.events import Budget, Options
from detent.core.session.phase_state import PhaseState
from detent.core.session.phases import Phases
from detent.core.session.session import Escalation, Note, Session, SessionStatus
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from detent.documents import session as session_document
from detent.documents.state import history_entry, write
from detent.documents.state.writing import running
from detent.store.port import Cursor
from tests.support.filled import MOMENT, filled
from tests.support.values import opened

ONE = PhaseState(agent="someone")


def gates() -> tuple[Any, ...]:
    """A gate of every kind."""
    return tuple(replace(filled(kind, instead={"env": ("CI",)}), name=name) for name, kind in KINDS.items())


def full_session(status: SessionStatus) -> Session:
    """A session with a phase that never began and one with every field filled."""
    graph = Workflow(name="full", prefix="REQ", phases=(Phase(key="a", gates=gates()), Phase(key="b", needs=("a",))))
    full = replace(filled(PhaseState), status=Status.COMPLETED, review="done")
    full = replace(full, gates={name: replace(filled_gate(), selection="yes") for name in KINDS})
    return replace(
        opened(graph, number=3),
        status=status,
        branch="main",
        ended_at=MOMENT,
        cancel_reason="enough",
        options=Options(gates=True, budget=filled(Budget)),
        phases=Phases({"a": full, "b": ONE}),
        escalations=(filled(Escalation),),
        notes=(filled(Note),),
    )


def filled_gate() -> Any:
    return next(iter(filled(PhaseState).gates.values()))


def state_documents() -> Iterator[dict[str, Any]]:
    past = [history_entry(full_session(status)) for status in (SessionStatus.COMPLETED, SessionStatus.CANCELLED)]
    position = Cursor(3, "00", 7)._asdict()
    yield write(full_session(SessionStatus.ACTIVE), workflow_history=past, journal=position)
    yield from (running(full_session(status)) | {"workflow_history": past} for status in SessionStatus)


def session_documents() -> Iterator[dict[str, Any]]:
    yield from (session_document.write(full_session(status), active=True) for status in SessionStatus)


def history_entries() -> Iterator[dict[str, Any]]:
    yield from (history_entry(full_session(status)) for status in (SessionStatus.COMPLETED, SessionStatus.CANCELLED))


@pytest.mark.parametrize(
    ("shape", "documents"),
    [(StateDocument, state_documents), (SessionDocument, session_documents), (HistoryEntry, history_entries)],
)
def test_a_schema_has_the_keys_that_are_written_and_no_others(shape, documents):
    written: set[str] = set()
    for document in documents():
        plain = msgspec.json.decode(msgspec.json.encode(document))
        msgspec.convert(plain, shape)
        written |= set(written_keys(plain, shape))

    assert written == set(declared_keys(shape))


def declared_keys(wanted: Any, seen: tuple[Any, ...] = ()) -> Iterator[str]:
    """Every field of the type and of the types in it, as in `PhaseRecord.status`."""
    for record in records_in(wanted):
        for name, declared in get_type_hints(record, include_extras=True).items():
            yield f"{record.__name__}.{name}"
            if record not in seen:
                yield from declared_keys(declared, (*seen, record))


def written_keys(value: Any, wanted: Any) -> Iterator[str]:
    """The keys of the value under the names of the types that should describe them."""
    if isinstance(value, list):
        for each in value:
            yield from written_keys(each, element_of(wanted))
    if not isinstance(value, dict):
        return
    records = records_in(wanted, deep=False)
    if not records:
        for each in value.values():
            yield from written_keys(each, element_of(wanted))
        return
    hints = get_type_hints(records[0], include_extras=True)
    for key, each in value.items():
        yield f"{records[0].__name__}.{key}"
        yield from written_keys(each, hints.get(key, Any))


def records_in(wanted: Any, *, deep: bool = True) -> list[Any]:
    """The structs that the type names; with `deep`, also those of its elements."""
    if get_origin(wanted) in (Union, types.UnionType, Annotated) or (deep and get_origin(wanted) in (list, dict)):
        return [record for each in get_args(wanted) for record in records_in(each, deep=deep)]
    return [wanted] if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct) else []


def element_of(wanted: Any) -> Any:
    """The type of an element of a list, or of a value of a mapping."""
    if get_origin(wanted) in (Union, types.UnionType):
        return next((element_of(each) for each in get_args(wanted) if get_origin(each) in (list, dict)), Any)
    return get_args(wanted)[-1] if get_origin(wanted) in (list, dict) else Any
