"""Fits the gates of a workflow to a project: the test command, and what nothing could open here.

A gate that can never open teaches people to switch gates off. `detent start` reports which gates and thresholds it
leaves out and why; all others hold for the whole session.
"""

import glob
import os
import re
from collections.abc import Mapping
from functools import cache

import msgspec

from detent.config.place import Place
from detent.core.gate.kind import Surroundings
from detent.core.workflow.graph import Phase, Workflow
from detent.documents import INSTALLED
from detent.engine.stores import checkout_store
from detent.errors import Refused

#: Larger files name no tool that a person put there.
MAX_BYTES = 4 * 1024 * 1024


def applicable(
    workflow: Workflow,
    place: Place,
    *,
    tests: str | None = None,
    env: tuple[str, ...] = (),
    delegates: bool = False,
    captures_all: bool = True,
) -> tuple[Workflow, tuple[str, ...]]:
    """The workflow with the gates that apply, and a line for each kind or setting that does not.

    `tests` becomes the command of the gates that need one and name none, with the variables `env`.
    `delegates`: the caller that starts the session delegates its phases itself and records that.
    `captures_all`: checkpoints take all files of the project.
    """
    reasons: dict[str, None] = {}
    project = Surroundings(
        exists=lambda path: os.path.exists(os.path.join(place.base, path)),
        is_observed=is_observed(place),
        delegates=delegates,
        tests=tests,
        captures_all=captures_all,
        env=env,
        commit_of=lambda name: _commit_of(place.base, name),
        without_coverage=cache(lambda command: _without_coverage(place.base, command)),
    )

    def kept(phase: Phase) -> Phase:
        gates = []
        for gate in phase.gates:
            reason = gate.skipped_because(project)
            if reason is None:
                fitted, reason = gate.fitted(project)
                gates.append(fitted)
            if reason is not None:
                reasons[reason] = None
        return msgspec.structs.replace(phase, gates=tuple(gates))

    phases = tuple(kept(phase) for phase in workflow.phases)
    return msgspec.structs.replace(workflow, phases=phases), tuple(reasons)


def _commit_of(base: str, name: str) -> str | None:
    from detent.process.git import Git  # noqa: PLC0415 - few gates name a commit

    try:
        return Git(base).commit_of(name)
    except Refused:
        return None


def _without_coverage(base: str, command: str | None) -> str | None:
    """Why the test command measures no coverage; None if it does, or may do so by a tool of the project."""
    from detent.core.testrun.coverage_tool import TOOL_FILES, measures, measuring, settings_of  # noqa: PLC0415

    if command is not None and measures(command):
        return None
    settings = settings_of(command)
    if not _holds(base, TOOL_FILES) and not _holds(base, settings or {}):
        return "the project has no coverage tool"
    if settings is None or _holds(base, settings):
        return None
    return f"`{command}` does not measure coverage; {measuring(command or '')} would"


def _holds(base: str, files: Mapping[str, str]) -> bool:
    """Whether one of the files, which are given by pattern, has the text that stands beside it."""
    return any(
        re.search(text, _text(path))
        for pattern, text in files.items()
        for path in sorted(glob.glob(os.path.join(glob.escape(base), pattern)))
    )


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return ""


def is_observed(place: Place) -> bool:
    """Whether Detent is installed in a client, and so sees what its agents do."""
    return checkout_store(place.root).written(INSTALLED) > 0
