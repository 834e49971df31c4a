"""The one builder of projects on disk."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from detent.config import place as places
from detent.engine.project import init_project
from detent.engine.stores import open_store

#: Set by `make test-postgres`: the journals of every project that tests build are in Postgres.
WANTED = "DETENT_TEST_POSTGRES"
#: Phases can be finished without evidence, for tests that are not about gates.
UNGATED = 'gates = "off"\n'
CONSTITUTION = "# Constitution\n\n## Article I\n\nTest first.\n"
INSTALLED = '{"version": 1, "files": {}, "directories": []}'


def is_wanted() -> bool:
    return bool(os.environ.get(WANTED))


def wanted_settings(settings: str) -> str:
    """The text of detent.toml, with a project of its own in Postgres if the tests are to run there."""
    if not is_wanted() or "[store]" in settings:
        return settings
    from tests.support.postgres import new_project, server_url, with_table

    return with_table(settings, server_url(), new_project(server_url()))


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
        write(directory, "detent.toml", wanted_settings(UNGATED if settings is None else settings))
    for path, text in (files or {}).items():
        write(directory, path, text)
    if constitution:
        write(directory, "docs/constitution.md", CONSTITUTION)
    init_project(directory)
    if agent:
        write(directory, ".workflow/install/manifest.json", INSTALLED)
    return directory


def copy_project(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy a project, and record it as one of its own: its first command has nothing to say about that."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    repairs = open_store(places.at_root(os.path.realpath(target))).repairs
    assert repairs is not None
    repairs.catch_up()


def write(root: str | os.PathLike[str], path: str, content: str | bytes) -> Path:
    """Write a file below the root, with the directories that it needs."""
    full = Path(root, path)
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_bytes(content if isinstance(content, bytes) else content.encode())
    return full
