"""Temporary directories of checks: none stays for long after the check that made it, however that ended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from detent.store.scratch import scratch_directory

LONG_AGO = (1_000_000_000, 1_000_000_000)
HOLD = """
import sys, time
from detent.store.scratch import scratch_directory
with scratch_directory("report", sys.argv[1]) as directory:
    print(directory, flush=True)
    time.sleep(300)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that is in the middle of a check which began long ago, and its directory."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            directory = Path(process.stdout.readline().strip())
            os.utime(directory, LONG_AGO)
            yield process, directory
        finally:
            process.kill()


def checked(parent, kind="report"):
    with scratch_directory(kind, str(parent)) as directory:
        assert os.path.isdir(directory)
    assert not os.path.exists(directory)


def test_the_directory_of_a_killed_check_is_removed_by_the_next(holder, tmp_path):
    process, directory = holder
    (directory / "sub").mkdir()
    (directory / "sub/file").write_text("left behind")
    os.utime(directory, LONG_AGO)
    process.kill()
    process.wait()

    checked(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_the_directory_of_a_check_that_goes_on_is_left(holder, tmp_path):
    _, directory = holder

    checked(tmp_path)

    assert list(tmp_path.iterdir()) == [directory]


def test_a_directory_that_may_not_be_locked_yet_is_left(tmp_path):
    young = tmp_path / "detent-report-young"
    young.mkdir()

    checked(tmp_path)

    assert list(tmp_path.iterdir()) == [young]


@pytest.mark.parametrize("name", ["detent-protected-x", "detent-reporting", "other"])
def test_other_directories_are_left(tmp_path, name):
    (tmp_path / name).mkdir()
    os.utime(tmp_path / name, LONG_AGO)

    checked(tmp_path)

    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_what_is_no_directory_is_left(tmp_path):
    target, link, file = tmp_path / "target", tmp_path / "detent-report-link", tmp_path / "detent-report-file"
    target.mkdir()
    link.symlink_to(target)
    file.write_text("x")
    for path in (target, link, file):
        os.utime(path, LONG_AGO, follow_symlinks=False)

    checked(tmp_path)

    assert sorted(tmp_path.iterdir()) == [file, link, target]
