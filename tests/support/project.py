"""The one builder of projects on disk."""

import os
from collections.abc import Mapping
from pathlib import Path

from detent.engine.project import init_project

#: Phases can be finished without evidence, for tests that are not about gates.
UNGATED = 'gates = "off"\n'
CONSTITUTION = "# Constitution\n\n## Article I\n\nTest first.\n"
INSTALLED = '{"version": 1, "files": {}, "directories": []}'


def build_project(
    root: str | os.PathLike[str],
    settings: str | None = None,
    *,
    files: Mapping[str, str] | None = None,
    agent: bool = False,
    constitution: bool = False,
) -> Path:
    """Make the directory a project.

    `settings` is the text of detent.toml. Without it an existing file stays, and a new one turns gates off.
    Some gates apply only where a client is installed or where a constitution is: `agent` and `constitution` add them.
    """
    directory = Path(root)
    directory.mkdir(parents=True, exist_ok=True)
    if settings is not None or not (directory / "detent.toml").exists():
        write(directory, "detent.toml", UNGATED if settings is None else settings)
    for path, text in (files or {}).items():
        write(directory, path, text)
    if constitution:
        write(directory, "docs/constitution.md", CONSTITUTION)
    init_project(directory)
    if agent:
        write(directory, ".workflow/install/manifest.json", INSTALLED)
    return directory


def write(root: str | os.PathLike[str], path: str, content: str | bytes) -> Path:
    """Write a file below the root, with the directories that it needs."""
    full = Path(root, path)
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_bytes(content if isinstance(content, bytes) else content.encode())
    return full
