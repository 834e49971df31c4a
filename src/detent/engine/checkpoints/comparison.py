"""Compares checkpoints with each other and with the present, and shows the changes of a file."""

import os
from typing import TYPE_CHECKING

from detent.core.checkpoint.checkpoint import checkpoint_id
from detent.core.checkpoint.compare import CheckpointDiff, Side, compare
from detent.core.checkpoint.manifest import Entry, Manifest
from detent.core.path_text import to_text
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.documents.checkpoint import agent_states, governance
from detent.engine.checkpoints.checkpoints import NOW

if TYPE_CHECKING:
    from detent.engine.project import Project

#: Larger files are reported as different, without their lines.
MAX_SHOWN_BYTES = 1024 * 1024


def _looking(project: "Project", session: str, *names: str) -> "Project":
    """The project with the files that `now` means: those that the phase of the other checkpoint is done in."""
    if NOW not in names:
        return project
    compared = (project.checkpoints.find(session, name).event.phase for name in names if name != NOW)
    return project.working_on(session, next(compared, None))


class Comparison:
    """From `a` to `b`; each is a checkpoint's name or id, or `now`."""

    def __init__(self, project: "Project", session: str, a: str, b: str, *, other: str | None = None) -> None:
        """`other` is the session of `b` where it is another one."""
        self._project = _looking(project, session, a, b)
        self._checkpoints = self._project.checkpoints
        self._before = self._side(session, a)
        self._after = self._side(other or session, b)
        self.diff: CheckpointDiff = compare(self._before, self._after)
        self._bring(session, a)
        self._bring(other or session, b)

    def text_diff(self, path: str) -> list[str]:
        """The lines of a unified diff of one file; a single line if the file is not text."""
        from difflib import unified_diff  # noqa: PLC0415 - slow to load

        texts = self.texts(path)
        if texts is None:
            return [f"{to_text(path)}: binary or larger than {MAX_SHOWN_BYTES} bytes, differs"]
        old, new = texts
        a, b = (f"{letter}/{to_text(path)}" for letter in "ab")
        mode = self.mode_change(path)
        return [
            *mode,
            *unified_diff(
                old,
                new,
                a if path in self._before.files else "/dev/null",
                b if path in self._after.files else "/dev/null",
                lineterm="",
            ),
        ]

    def entries(self, path: str) -> tuple[Entry | None, Entry | None]:
        """The file in `a` and in `b`."""
        return self._before.files.get(path), self._after.files.get(path)

    def texts(self, path: str) -> tuple[list[str], list[str]] | None:
        """The lines of the file in `a` and in `b`; None if one of them is binary or too large to be shown."""
        old, new = (self._text(side, path) for side in (self._before, self._after))
        return None if old is None or new is None else (old, new)

    def mode_change(self, path: str) -> list[str]:
        """A line about another kind or other permissions of the file."""
        before, after = self.entries(path)
        if before is None or after is None or (before.kind, before.mode) == (after.kind, after.mode):
            return []
        return [f"{to_text(path)}: was {_sort(before)}, is {_sort(after)}"]

    def _side(self, session: str, name: str) -> Side:
        if name == NOW:
            present = self._project.journal(session).session()
            owner = checkpoint_id(session, self._project.clock(), NOW)
            captured = self._checkpoints.capture(owner, present, store=False)
            return _side(NOW, present, captured.files)
        position = self._checkpoints.find(session, name)
        then = self._checkpoints.past(session, position)
        return _side(position.event.name, then, self._checkpoints.bring(session, position.event.tree.manifest))

    def _bring(self, session: str, name: str) -> None:
        """Get the contents that can be shown, if another machine took the checkpoint."""
        if name == NOW:
            return
        differing = [*self.diff.added, *self.diff.removed, *self.diff.modified]

        def shown(files: Manifest) -> list[Entry]:
            there = (files[path] for path in differing if path in files)
            return [entry for entry in there if entry.size <= MAX_SHOWN_BYTES]

        self._checkpoints.bring(session, self._checkpoints.find(session, name).event.tree.manifest, shown)

    def _text(self, side: Side, path: str) -> list[str] | None:
        entry = side.files.get(path)
        if entry is None:
            return []
        if entry.size > MAX_SHOWN_BYTES:
            return None
        data = self._data(side, path, entry)
        if b"\0" in data:
            return None
        return _lines(data.decode("utf-8", "replace"))

    def _data(self, side: Side, path: str, entry: Entry) -> bytes:
        if side.name != NOW or entry.digest in self._checkpoints.objects:
            return self._checkpoints.objects.read(entry.digest)
        full = os.path.join(self._checkpoints.base, path)
        if entry.kind == "l":
            return os.fsencode(os.readlink(full))
        with open(full, "rb") as file:
            return file.read(MAX_SHOWN_BYTES + 1)


def _lines(text: str) -> list[str]:
    """Only a line feed ends a line. A last line without one is marked as git marks it."""
    *lines, rest = text.split("\n")
    return [*lines, f"{rest}\n\\ No newline at end of file"] if rest else lines


_KINDS = {"f": "a file", "x": "an executable file", "l": "a link"}


def _sort(entry: Entry) -> str:
    return _KINDS[entry.kind] + (f" with mode {entry.mode:o}" if entry.mode else "")


def _side(name: str, session: Session, files: Manifest) -> Side:
    gates = {
        f"{key}/{result['gate']}": str(result["verdict"])
        for key, state in session.phases.items()
        if state.attempt
        for results in (governance(session, key),)
        for result in (*results["quality_gates"], *results["compliance_checks"])
    }
    agents = {
        agent: (state["status"], state["token_usage"]["input"], state["token_usage"]["output"])
        for agent, state in agent_states(session).items()
    }
    return Side(
        name=name,
        run_id=session.id,
        completed=session.with_status(Status.COMPLETED),
        files=files,
        gates=gates,
        agents=agents,
    )
