"""Converts drafts to task documents with new ids."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from detent.core.task.assignment import type_for
from detent.core.task.cycle import find_cycles
from detent.core.task.document import kinship, new_document
from detent.core.task.exchange.draft import Draft
from detent.core.task.form import focus_problem
from detent.core.task.id import parse_id
from detent.core.task.row import REASON_KEYS, TaskStatus, row_of
from detent.errors import Invalid


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    #: In order of their ids.
    documents: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...] = ()
    #: The id of each task here, by its id in the source.
    ids: dict[str, str] = {}


def to_documents(drafts: Iterable[Draft], taken: Collection[str] = (), *, drop_unknown: bool = False) -> Imported:
    """The documents, numbered after all `taken` ids; `Invalid` with every problem if there is one.

    `drop_unknown` leaves out dependencies on tasks that are not among the drafts, with a warning, instead of refusing.
    """
    warnings: list[str] = []
    flat = [_two_levels(draft, warnings) for draft in drafts]
    first = max((parse_id(id_).number for id_ in taken), default=0) + 1
    ids: dict[str, str] = {}
    for number, draft in enumerate(flat, first):
        ids[draft.source_id] = f"IMPL-{number}"
        ids.update({part.source_id: f"IMPL-{number}.{at}" for at, part in enumerate(draft.subtasks, 1)})
    problems: list[str] = []
    documents = []
    for draft, parent in _with_parents(flat):
        named = _known(draft, ids, warnings if drop_unknown else problems)
        try:
            documents.append(_document(draft, parent, ids[draft.source_id], named, warnings))
        except Invalid as error:
            problems.append(f"{draft.source_id}: {error}")
    sources = {id_: source for source, id_ in ids.items()}
    for document in documents:
        own, named = document["id"], document["context"]["depends_on"]
        problems += [f"{sources[own]}: {reason}" for other in named if (reason := kinship(own, other))]
    problems += [
        f"tasks wait for each other: {' -> '.join(sources[id_] for id_ in (*cycle, cycle[0]))}"
        for cycle in find_cycles({row.id: row for row in map(row_of, documents)})
    ]
    if problems:
        raise Invalid("these tasks cannot be taken over", problems)
    return Imported(documents=tuple(documents), warnings=tuple(warnings), ids=ids)


def _two_levels(draft: Draft, warnings: list[str]) -> Draft:
    """The draft with parts of parts raised to parts: a part waits for those below it, and they for its dependencies."""
    parts = list(_raised(draft.subtasks))
    if deeper := [part.source_id for part in draft.subtasks if part.subtasks]:
        warnings.append(f"{draft.source_id} has more than two levels; the parts of {', '.join(deeper)} were raised")
    return msgspec.structs.replace(draft, subtasks=tuple(parts))


def _raised(parts: Iterable[Draft], inherited: tuple[str, ...] = ()) -> Iterator[Draft]:
    for part in parts:
        own = (*part.depends_on, *inherited)
        below = tuple(other.source_id for other in part.subtasks)
        status = TaskStatus.PENDING if part.status is TaskStatus.CONTAINER else part.status
        yield msgspec.structs.replace(part, subtasks=(), status=status, depends_on=tuple(dict.fromkeys((*own, *below))))
        yield from _raised(part.subtasks, own)


def _with_parents(drafts: Iterable[Draft]) -> Iterator[tuple[Draft, Draft | None]]:
    for draft in drafts:
        yield draft, None
        yield from ((part, draft) for part in draft.subtasks)


def _known(draft: Draft, ids: Mapping[str, str], report: list[str]) -> list[str]:
    report += [
        f"{draft.source_id} depends on {other}, which is not there" for other in draft.depends_on if other not in ids
    ]
    return list(dict.fromkeys(ids[other] for other in draft.depends_on if other in ids))


def _document(
    draft: Draft, parent: Draft | None, id_: str, depends_on: list[str], warnings: list[str]
) -> dict[str, Any]:
    wrong = [(file, problem) for file in draft.files if (problem := focus_problem(file))]
    warnings += [f"{draft.source_id}: {note}" for note in draft.notes]
    warnings += [f"{draft.source_id}: file {file!r} {problem}, and was left out" for file, problem in wrong]
    document = new_document(
        id_,
        draft.title,
        type=type_for(draft.title),
        agent=draft.agent,
        requirements=draft.requirements,
        focus_paths=[file for file in draft.files if not focus_problem(file)],
        acceptance=draft.acceptance,
        depends_on=depends_on,
        inherited=parent.requirements if parent else (),
        shared_context={"source_id": draft.source_id, **({"priority": draft.priority} if draft.priority else {})},
        description=draft.description,
    )
    document["status"] = _status(draft, warnings).value
    if draft.reason and draft.status in REASON_KEYS:
        document["execution"] = {REASON_KEYS[draft.status]: draft.reason}
    return document


def _status(draft: Draft, warnings: list[str]) -> TaskStatus:
    if draft.subtasks:
        return TaskStatus.CONTAINER
    if draft.status is TaskStatus.ACTIVE:
        warnings.append(f"{draft.source_id} was in progress; it is pending here")
        return TaskStatus.PENDING
    if draft.status is TaskStatus.FAILED:
        warnings.append(f"{draft.source_id} had failed; it is pending here")
        return TaskStatus.PENDING
    return TaskStatus.PENDING if draft.status is TaskStatus.CONTAINER else draft.status
