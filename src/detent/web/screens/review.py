"""The review of a phase: the files that changed since it began, and the digest of the tree that is shown.

A phase that is finished is shown as it was finished; files that changed later are not part of it.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from detent.core.path_text import from_text, to_text
from detent.core.session.decide_phase import known_phase
from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.engine.checkpoints.checkpoints import NOW
from detent.engine.checkpoints.comparison import MAX_SHOWN_BYTES, Comparison
from detent.engine.project import Project
from detent.engine.session import SessionHandle
from detent.errors import Conflict, DetentError, NotFound, Refused
from detent.objects.universe import Files
from detent.web.projects import KnownProject
from detent.web.screens.open_decisions import session_needs
from detent.web.screens.session import gate_lines

#: Files of one answer; files whose lines are counted; lines of one diff, and characters of a line.
MAX_FILES, MAX_COUNTED, MAX_LINES, MAX_LINE = 2_000, 300, 5_000, 2_000
#: Unchanged lines around a change.
CONTEXT = 3
#: Trees that were shown and are kept, to tell which files have changed since.
MAX_SHOWN = 8


class TreeChanged(Conflict):
    """The files are not those that were shown."""

    kind = "tree_changed"

    def __init__(self, message: str, paths: Sequence[str], *, way_out: str) -> None:
        super().__init__(message, way_out=way_out)
        self.paths = tuple(paths)


class ShownTrees:
    """The trees that pages were shown."""

    def __init__(self) -> None:
        self._shown: OrderedDict[str, Files] = OrderedDict()
        self._lock = threading.Lock()

    def show(self, project: Project, session: Session, phase: str) -> tuple[str, str]:
        """The digest of the files of the phase, and which they are; present files are kept for a while.

        If another machine does the phase, they are those of the newest checkpoint that it took.
        """
        elsewhere = project.checkpoints.newest_elsewhere(session, phase)
        if elsewhere is not None:
            return elsewhere.event.tree.manifest, elsewhere.event.name
        files = project.working_on(session.id, phase).files()
        digest = files.digest
        with self._lock:
            self._shown[digest] = files
            self._shown.move_to_end(digest)
            while len(self._shown) > MAX_SHOWN:
                self._shown.popitem(last=False)
        return digest, NOW

    def check(self, project: Project, session: str, phase: str | None, tree: str) -> None:
        """Refuse a decision about files that are not as they were shown, and name them."""
        state = project.session(session).state
        elsewhere = project.checkpoints.newest_elsewhere(state, phase) if phase and phase in state.phases else None
        present = project.working_on(session, phase).files()
        if tree == (elsewhere.event.tree.manifest if elsewhere is not None else present.digest):
            return
        with self._lock:
            shown = self._shown.get(tree)
        paths = [to_text(path) for path in shown.changed(present)] if shown is not None else []
        named = f": {', '.join(paths[:5])}{' and more' if len(paths) > 5 else ''}" if paths else ""
        raise TreeChanged(
            f"the files have changed since they were shown{named}",
            paths,
            way_out="look at the changes and decide again",
        )


def review_screen(known: KnownProject, project: Project, name: str, phase: str, trees: ShownTrees) -> dict[str, Any]:
    handle = project.session(name)
    session, end = handle.state, project.journal(name).end
    key = known_phase(session, phase)
    state = session.phases[key]
    since, until = f"PRE_{key}_v{state.pre}" if state.pre else None, _until(key, state)
    # The digest comes first: a file that changes while the diff is made is then found to have changed.
    tree, until = trees.show(project, session, key) if until == NOW else (_digest(project, name, until), until)
    files, left_out, notice = _compared(handle, since, until)
    return {
        "phase": key,
        "attempt": state.attempt,
        "since": since,
        "until": until,
        "tree": tree,
        "position": {"version": end.version, "sum": end.sum},
        "summary": state.summary,
        "files": files,
        "left_out": left_out,
        "notice": notice,
        "gates": _gates(project, name, session, key),
        "needs": [need for need in session_needs(known, project, session) if need["phase"] == key],
    }


def _compared(handle: SessionHandle, since: str | None, until: str) -> tuple[list[dict[str, Any]], int, str]:
    """The files that differ, how many more there are, and why none can be shown."""
    if since is None:
        return [], 0, "No checkpoint was taken when this phase began, so there is nothing to compare with."
    try:
        files, left_out = file_records(handle.checkpoints.compare(since, until))
    except (Refused, NotFound) as elsewhere:
        return [], 0, f"{elsewhere.message}; {elsewhere.way_out}"
    return files, left_out, "" if files else "No file changed since the phase began."


def _until(phase: str, state: PhaseState) -> str:
    """The end of the diff: the files with which the phase was finished, or the present ones while it is not."""
    return f"POST_{phase}_v{state.post}" if state.status is Status.COMPLETED and state.post else NOW


def _digest(project: Project, session: str, checkpoint: str) -> str:
    return project.checkpoints.find(session, checkpoint).event.tree.manifest


def _gates(project: Project, name: str, session: Session, phase: str) -> list[dict[str, Any]]:
    if not session.gates_apply:
        return []
    return gate_lines(project.session(name).gates.judgements(phase)[phase])


def diff_screen(project: Project, name: str, a: str, b: str, path: str | None) -> dict[str, Any]:
    """The files that differ between two checkpoints, or the lines of one of them."""
    comparison = project.session(name).checkpoints.compare(a, b)
    if path is None:
        files, left_out = file_records(comparison)
        return {"from": comparison.diff.a, "to": comparison.diff.b, "files": files, "left_out": left_out}
    return diff_record(comparison, from_text(path))


def file_records(comparison: Comparison) -> tuple[list[dict[str, Any]], int]:
    """The files that differ, and how many more there are."""
    changed = comparison.diff.files
    shown = changed[:MAX_FILES]
    records = [_file(comparison, path, change, is_counted=at < MAX_COUNTED) for at, (path, change) in enumerate(shown)]
    return records, len(changed) - len(shown)


def _file(comparison: Comparison, path: str, change: str, *, is_counted: bool) -> dict[str, Any]:
    before, after = comparison.entries(path)
    is_large = any(entry is not None and entry.size > MAX_SHOWN_BYTES for entry in (before, after))
    texts = _texts(comparison, path) if is_counted and not is_large else None
    added = removed = None
    if texts is not None:
        added, removed = _counts(*texts)
    return {
        "path": to_text(path),
        "status": change,
        "added": added,
        "removed": removed,
        "binary": is_counted and not is_large and texts is None,
        "large": is_large,
        "size_before": before.size if before is not None else None,
        "size_after": after.size if after is not None else None,
    }


def _texts(comparison: Comparison, path: str) -> tuple[list[str], list[str]] | None:
    """The lines of both sides; None for a file that cannot be shown, or that is gone again."""
    try:
        return comparison.texts(path)
    except (DetentError, OSError):
        return None


def _counts(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    added = removed = 0
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=True).get_opcodes():
        if tag != "equal":
            added, removed = added + new_to - new_from, removed + old_to - old_from
    return added, removed


def diff_record(comparison: Comparison, path: str) -> dict[str, Any]:
    change = dict(comparison.diff.files).get(path)
    if change is None:
        raise NotFound(f"{to_text(path)[:200]} does not differ between {comparison.diff.a} and {comparison.diff.b}")
    record = _file(comparison, path, change, is_counted=False)
    texts = None if record["large"] else _texts(comparison, path)
    hunks, is_cut = _hunks(*texts) if texts is not None else ([], False)
    return {
        "path": to_text(path),
        "status": change,
        "binary": texts is None and not record["large"],
        "large": record["large"],
        "truncated": is_cut,
        "note": next(iter(comparison.mode_change(path)), None),
        "hunks": hunks,
    }


def _hunks(old: Sequence[str], new: Sequence[str]) -> tuple[list[dict[str, Any]], bool]:
    hunks: list[dict[str, Any]] = []
    room = MAX_LINES
    for group in SequenceMatcher(None, old, new, autojunk=True).get_grouped_opcodes(CONTEXT):
        lines = list(_lines(group, old, new))
        first, last = group[0], group[-1]
        hunks.append(
            {
                "old_start": first[1] + 1,
                "old_count": last[2] - first[1],
                "new_start": first[3] + 1,
                "new_count": last[4] - first[3],
                "lines": lines[:room],
            }
        )
        room -= len(lines)
        if room <= 0:
            return hunks, True
    return hunks, False


def _lines(group: Sequence[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str]) -> Iterator[Any]:
    for tag, old_from, old_to, new_from, new_to in group:
        if tag == "equal":
            for at in range(old_to - old_from):
                yield _line(" ", old_from + at, new_from + at, new[new_from + at])
            continue
        for at in range(old_from, old_to):
            yield _line("-", at, None, old[at])
        for at in range(new_from, new_to):
            yield _line("+", None, at, new[at])


def _line(op: str, old: int | None, new: int | None, text: str) -> dict[str, Any]:
    shown = text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…"
    return {
        "op": op,
        "old": old + 1 if old is not None else None,
        "new": new + 1 if new is not None else None,
        "text": shown,
    }
