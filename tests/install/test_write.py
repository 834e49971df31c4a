"""All of a plan or nothing of it."""

import errno
import itertools
import os

import pytest

from detent.clients.installing import apply
from detent.clients.registry import with_hooks
from detent.errors import Conflict, StoreFailed


@pytest.fixture
def furnished(place):
    place.write("CLAUDE.md", "# Us\n")
    place.write(".claude/settings.json", "{}\n")
    return place


def test_a_read_only_file_is_respected_by_everybody(furnished):
    os.chmod(furnished.root / "CLAUDE.md", 0o444)
    before = furnished.tree()

    with pytest.raises(StoreFailed, match=r"CLAUDE\.md is read-only"):
        furnished.install("codex", "claude-code")

    assert furnished.tree() == before


def test_a_read_only_directory_is_respected_by_everybody(furnished):
    os.chmod(furnished.root / ".claude", 0o555)
    before = furnished.tree()

    with pytest.raises(StoreFailed, match=r"\.claude is read-only"):
        furnished.install("codex", "claude-code")

    os.chmod(furnished.root / ".claude", 0o755)
    assert furnished.tree() == before


def test_a_file_that_changed_after_the_plan_is_not_overwritten(furnished):
    made = furnished.plan("codex", "claude-code")
    furnished.write("CLAUDE.md", "# changed\n")
    before = furnished.tree()

    with pytest.raises(Conflict, match=r"another program changed CLAUDE"):
        apply(made)

    assert furnished.tree() == before


@pytest.mark.parametrize("operation", ["replace", "open", "unlink", "mkdir"])
@pytest.mark.parametrize("direction", ["install", "uninstall"])
def test_a_failure_at_any_point_leaves_everything_as_it_was(furnished, monkeypatch, operation, direction):
    """The nth call fails, for every n until the work comes through without meeting a failure."""
    if direction == "uninstall":
        furnished.install(*with_hooks())
    before, real = furnished.tree(), getattr(os, operation)
    refused = True
    nth = 0
    while refused:
        nth += 1
        with monkeypatch.context() as broken:
            broken.setattr(os, operation, _failing(real, nth))
            refused = _is_refused(lambda: getattr(furnished, direction)(*with_hooks()))
        assert not refused or furnished.tree() == before, f"{operation} failed at call {nth}"

    assert nth > 1 or (direction, operation) in {("install", "unlink"), ("uninstall", "mkdir")}


def test_mode_of_what_is_there_stays_and_originals_are_private(furnished):
    os.chmod(furnished.root / ".claude/settings.json", 0o640)

    furnished.install("claude-code")

    assert os.stat(furnished.root / ".claude/settings.json").st_mode & 0o777 == 0o640
    for path in (furnished.root / ".workflow/install").rglob("*"):
        assert path.is_dir() or path.stat().st_mode & 0o077 == 0
    furnished.uninstall("claude-code")
    assert os.stat(furnished.root / ".claude/settings.json").st_mode & 0o777 == 0o640


def test_no_temporary_file_is_left(furnished):
    furnished.install(*with_hooks())

    assert not [path for path in furnished.tree() if ".detent-" in path]


def _failing(real, nth):
    calls = itertools.count(1)

    def operation(*arguments, **options):
        if next(calls) == nth:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **options)

    return operation


def _is_refused(work):
    try:
        work()
    except StoreFailed as refusal:
        return "the disk is full" in refusal.message
    return False
