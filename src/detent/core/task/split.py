"""Splits a task: it becomes a container, and its parts inherit its context."""

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Any

import msgspec

from detent.core.task.assignment import type_for
from detent.core.task.document import document_problems, kinship, new_document
from detent.core.task.form import target_file
from detent.core.task.id import MAX_NUMBER, canonical, parse_id, sort_key
from detent.core.task.row import TaskStatus
from detent.errors import Invalid, NotFound, Refused

MAX_PARTS = 1_000
_ALIKE = 0.85
#: Most titles that are compared pair by pair.
_COMPARED = 60


class ChildDraft(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    title: str
    requirements: tuple[str, ...] = ()
    focus_paths: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ()
    target_files: tuple[str, ...] = ()
    #: Tasks of the session.
    depends_on: tuple[str, ...] = ()
    #: Parts of the same breakdown, by their place in it, from 1.
    after: tuple[int, ...] = ()
    type: str | None = None
    agent: str | None = None
    description: str = ""


def split(
    parent: dict[str, Any],
    taken: Collection[str],
    drafts: Sequence[ChildDraft],
    *,
    present: Collection[str] = (),
) -> tuple[dict[str, Any], ...]:
    """The documents of the parts; the caller writes them first and the container last.

    `taken` are the canonical ids that the session has or ever had, because a number is never used again; `present` are
    the parts that the task has. The rules of the session find cycles that go through other tasks.
    """
    own = canonical(parent["id"])
    _check_parent(parent, own, taken, present)
    parts = [int(id_.rpartition(".")[2]) for id_ in taken if id_.startswith(f"{own}.")]
    ids = [f"{own}.{number}" for number in range(max(parts, default=0) + 1, max(parts, default=0) + 1 + len(drafts))]
    problems = _count_problems(len(drafts))
    if ids and sort_key(ids[-1]) % 2**32 > MAX_NUMBER:
        problems.append(f"{own} has no number left for its parts")
    children, known = [], {*taken, *ids}
    for at, draft in enumerate(drafts, 1):
        try:
            children.append(_child(parent, ids, draft, at))
        except Invalid as error:
            problems.append(f"part {at}: {error}")
    problems += [f"{child['id']}: {problem}" for child in children for problem in _child_problems(child, known)]
    problems += _order_problems(drafts, ids)
    if problems:
        raise Invalid(f"{own} cannot be broken down like this", problems)
    return tuple(children)


def split_warnings(children: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Warnings about parts that are allowed and look like a mistake."""
    return (*_shared_files(children), *_alike(children))


def _check_parent(parent: dict[str, Any], own: str, taken: Collection[str], present: Collection[str]) -> None:
    if own not in taken:
        raise NotFound(f"there is no task {own}")
    if parse_id(own).is_subtask:
        raise Refused(f"{own} is a subtask, and there are two levels at most", way_out="add a main task instead")
    status = parent["status"]
    if status == TaskStatus.CONTAINER or present:
        raise Refused(f"{own} is already broken down", way_out=f"add a subtask to {own}")
    if status != TaskStatus.PENDING:
        raise Refused(f"{own} is {status}; only a pending task can be broken down")


def _count_problems(count: int) -> list[str]:
    if not count:
        return ["at least one part is needed"]
    return [f"{count} parts were given; {MAX_PARTS} are possible at once"] if count > MAX_PARTS else []


def _child(parent: dict[str, Any], ids: Sequence[str], draft: ChildDraft, at: int) -> dict[str, Any]:
    from copy import deepcopy  # noqa: PLC0415 - slow to load, and few commands split a task

    context = parent["context"]
    inherited = context.get("inherited") or {}
    if wrong := [place for place in draft.after if not 1 <= place <= len(ids)]:
        raise Invalid(f"it comes after part {wrong[0]}, and there are {len(ids)}")
    return new_document(
        ids[at - 1],
        draft.title,
        type=draft.type or type_for(draft.title),
        agent=draft.agent,
        requirements=draft.requirements,
        focus_paths=draft.focus_paths,
        acceptance=draft.acceptance,
        depends_on=[*map(canonical, draft.depends_on), *(ids[place - 1] for place in draft.after)],
        inherited=[*(context.get("requirements") or ()), *(inherited.get("context") or ())],
        shared_context=deepcopy(context.get("shared_context") or {}),
        description=draft.description,
        target_files=draft.target_files,
    )


def _child_problems(child: dict[str, Any], known: Collection[str]) -> list[str]:
    missing = [
        f"depends on {other}, which does not exist"
        for other in child["context"]["depends_on"]
        if other not in known and not kinship(child["id"], other)
    ]
    return [*(str(problem) for problem in document_problems(child) if problem.severity == "error"), *missing]


def _order_problems(drafts: Sequence[ChildDraft], ids: Sequence[str]) -> list[str]:
    """Parts of the same split that wait for each other."""
    waits = {at: {place for place in draft.after if place != at} for at, draft in enumerate(drafts, 1)}
    free = [at for at, others in waits.items() if not others]
    while free:
        done = free.pop()
        del waits[done]
        for at, others in waits.items():
            if done in others:
                others.discard(done)
                if not others:
                    free.append(at)
    stuck = ", ".join(ids[at - 1] for at in waits)
    return [f"parts wait for each other: {stuck}"] if waits else []


def _shared_files(children: Sequence[dict[str, Any]]) -> list[str]:
    owners: dict[str, dict[str, None]] = {}
    for child in children:
        files = (*child["context"]["focus_paths"], *map(target_file, child["flow_control"]["target_files"]))
        for file in files:
            if "." in file.rpartition("/")[2]:
                owners.setdefault(file, {})[child["id"]] = None
    return [f"{' and '.join(ids)} both work on {file}" for file, ids in owners.items() if len(ids) > 1]


def _alike(children: Sequence[dict[str, Any]]) -> list[str]:
    from difflib import SequenceMatcher  # noqa: PLC0415 - slow to load, and only breaking down needs it

    titles = [(child["id"], " ".join(child["title"].casefold().split())) for child in children[:_COMPARED]]
    return [
        f"{first} and {second} have nearly the same title"
        for (first, left), (second, right) in combinations(titles, 2)
        if left == right or SequenceMatcher(None, left, right, autojunk=False).ratio() >= _ALIKE
    ]
