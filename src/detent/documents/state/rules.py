"""Checks a state document before it is written.

V7 and V8 compare the incoming document with the one on disk and block the write. V9 and V1 to V3 check the incoming
document alone and only warn. All violations are reported at once.
"""

from collections.abc import Iterator

import msgspec

from detent.documents.state.shape import Document, mapping, mapping_at, number, sequence

#: Digits of a version that is written as text.
MAX_DIGITS = 18
STATUS_ORDER = {"pending": 0, "in_progress": 1, "completed": 2}

IMPOSSIBLE = (
    ("V1", ("constitutional_validation",), "iterations_used"),
    ("V2", ("iteration_requirements", "interactive_elicitation"), "menu_interactions"),
    ("V3", ("iteration_requirements", "test_iteration"), "current_iteration"),
)


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that the incoming document breaks."""

    rule: str
    path: str
    message: str
    blocks: bool


def check_write(incoming: object, disk: object) -> list[Violation]:
    """The violations of writing the incoming document over the one on disk."""
    return [
        *_stale_version(incoming, disk),
        *_regressions(incoming, disk),
        *mirror_violations(incoming),
        *_impossible_combinations(incoming),
    ]


def mirror_violations(doc: object) -> list[Violation]:
    """The violations of fields that repeat a fact and disagree."""
    return [*_status_mirrors(doc), *_phase_mirrors(doc), *_index_mirror(doc)]


def version_of(doc: object) -> int | float | None:
    """The version of the document. It counts writes, so that a writer shows which version it has read.

    Some writers put it down as text.
    """
    stated = mapping(doc).get("state_version")
    is_digits = isinstance(stated, str) and stated.isascii() and stated.strip().isdigit() and len(stated) <= MAX_DIGITS
    return int(str(stated)) if is_digits else number(stated)


def next_version(disk: object) -> int:
    return max(0, int(version_of(disk) or 0)) + 1


def _stale_version(incoming: object, disk: object) -> Iterator[Violation]:
    ours, theirs = version_of(incoming), version_of(disk)
    if theirs is None or (ours is not None and ours >= theirs):
        return
    stated = f"says state_version {ours}"
    if ours is None:
        text = mapping(incoming).get("state_version")
        stated = "carries no state_version" if text is None else f"says state_version {text!r:.40}, which is no number"
    message = f"the document {stated} but the session is at {theirs}; read it again and reapply the change"
    yield Violation(rule="V7", path="state_version", message=message, blocks=True)


def _regressions(incoming: object, disk: object) -> Iterator[Violation]:
    new, old = mapping_at(incoming, "active_workflow"), mapping_at(disk, "active_workflow")
    if not new or not old:
        return
    new_index, old_index = number(new.get("current_phase_index")), number(old.get("current_phase_index"))
    if new_index is not None and old_index is not None and new_index < old_index:
        yield _regression("active_workflow.current_phase_index", old_index, new_index)
    new_status, old_status = mapping_at(new, "phase_status"), mapping_at(old, "phase_status")
    for phase, was in old_status.items():
        if _goes_back(was, new_status.get(phase), phase, new):
            yield _regression(f"active_workflow.phase_status.{phase}", was, new_status[phase])
    for phase, record in mapping_at(disk, "phases").items():
        was, is_now = mapping(record).get("status"), mapping_at(incoming, "phases", phase).get("status")
        if _goes_back(was, is_now, phase, new):
            yield _regression(f"phases.{phase}.status", was, is_now)


def _goes_back(was: object, is_now: object, phase: str, workflow: Document) -> bool:
    if not isinstance(was, str) or not isinstance(is_now, str):
        return False
    before, after = STATUS_ORDER.get(was), STATUS_ORDER.get(is_now)
    if before is None or after is None or before <= after:
        return False
    return not ((was, is_now) == ("completed", "in_progress") and _is_redone(phase, workflow))


def _is_redone(phase: str, workflow: Document) -> bool:
    review = mapping_at(workflow, "supervised_review")
    asked_for = review.get("status") == "redo_pending" or (number(review.get("redo_count")) or 0) > 0
    return asked_for and review.get("phase") == phase


def _regression(path: str, was: object, is_now: object) -> Violation:
    message = f"{path} goes back from {was} to {is_now}; phases only move forward, keep {was} or ask for a redo"
    return Violation(rule="V8", path=path, message=message, blocks=True)


def _status_mirrors(doc: object) -> Iterator[Violation]:
    for phase, summary in mapping_at(doc, "active_workflow", "phase_status").items():
        detail = mapping_at(doc, "phases", phase).get("status")
        if summary and detail and summary != detail:
            path = f"active_workflow.phase_status.{phase}"
            yield _disagreement("V9-A", path, summary, f"phases.{phase}.status", detail)


def _phase_mirrors(doc: object) -> Iterator[Violation]:
    inner, outer = mapping_at(doc, "active_workflow").get("current_phase"), mapping(doc).get("current_phase")
    if inner and outer and inner != outer:
        yield _disagreement("V9-B", "current_phase", outer, "active_workflow.current_phase", inner)


def _index_mirror(doc: object) -> Iterator[Violation]:
    workflow = mapping_at(doc, "active_workflow")
    phases, index = sequence(workflow.get("phases")), workflow.get("current_phase_index")
    current = workflow.get("current_phase")
    if not phases or not current or not isinstance(index, int) or index < 0:
        return
    # Between the completion of one phase and the begin of the next, the index is one ahead.
    if current not in phases[max(0, index - 1) : index + 1]:
        path = "active_workflow.current_phase_index"
        yield _disagreement("V9-C", path, index, "active_workflow.current_phase", current)


def _disagreement(rule: str, path: str, value: object, other_path: str, other: object) -> Violation:
    message = f"{path} is {value} but {other_path} is {other}; make both say the same"
    return Violation(rule=rule, path=path, message=message, blocks=False)


def _impossible_combinations(doc: object) -> Iterator[Violation]:
    for rule, place, counter in IMPOSSIBLE:
        for phase in mapping_at(doc, "phases"):
            record = mapping_at(doc, "phases", phase, *place)
            count = record.get(counter) or 0
            if record.get("completed") and isinstance(count, int | float) and count < 1:
                path = ".".join(("phases", phase, *place, counter))
                message = f"{path} is {count} although completed is set; count the rounds or clear completed"
                yield Violation(rule=rule, path=path, message=message, blocks=False)
