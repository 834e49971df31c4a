"""Machines that share a store and a place for files, each with a checkout of its own."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path

from detent.config import place as places
from detent.config.settings import parse_settings
from detent.core.actor import Channel, as_runner
from detent.engine.actor import identify
from detent.engine.project import Project
from detent.store.port import Store

SETTINGS = """
[files]
{where}
[run]
sandbox = "off"
[workflows.w]
phases = [{{key = "a"}}, {{key = "b", needs = []}}, {{key = "c", needs = ["a", "b"]}}]
"""


def bare_remote(directory: Path) -> str:
    subprocess.run(["git", "init", "-q", "--bare", str(directory)], check=True)
    return f'remote = "{directory}"'


def machine(root: Path, store: Store, where: str, base: str | None = None) -> Project:
    """The project on one machine; `base` is the directory of its files, if that is not the root."""
    (root / ".workflow").mkdir(parents=True, exist_ok=True)
    settings = parse_settings(SETTINGS.format(where=where), "detent.toml")
    place = places.at_root(str(root))
    actor = as_runner(identify({}, Channel.LIBRARY, name=root.name, lineage=()))
    return Project(store, place if base is None else place._replace(base=base), settings, actor=actor)


def odd_files(root: Path) -> None:
    """Files with all that a file system has: modes, links, names that are no text."""
    (root / "dir" / "deep").mkdir(parents=True)
    (root / "plain.txt").write_text("plain\n")
    (root / "empty").write_bytes(b"")
    (root / "binary").write_bytes(bytes(range(256)) * 40)
    (root / "dir" / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (root / "dir" / "deep" / "run.sh").chmod(0o755)
    (root / "secret-to-others").write_text("x")
    (root / "secret-to-others").chmod(0o600)
    (root / "link").symlink_to("plain.txt")
    (root / "dangling").symlink_to("nowhere/at all")
    (root / "linked dir").symlink_to("dir")
    (root / " odd\nname\\ \t'\"").write_text("odd")
    Path(os.fsdecode(os.fsencode(str(root)) + b"/\xff\xfe")).write_bytes(b"no text")
    (root / "ünïcode ☃").write_text("snow")


def listing(root: Path) -> dict[bytes, tuple[str, str]]:
    """Each file with its mode and the digest of its content, or the target of a link."""
    found: dict[bytes, tuple[str, str]] = {}
    for directory, names, files in os.walk(os.fsencode(str(root))):
        names[:] = [name for name in names if name not in (b".git", b".workflow")]
        for name in [*files, *(one for one in names if os.path.islink(os.path.join(directory, one)))]:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                content = os.fsdecode(os.readlink(path))
            else:
                content = hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest()
            found[os.path.relpath(path, os.fsencode(str(root)))] = (stat.filemode(status.st_mode), content)
    return found
