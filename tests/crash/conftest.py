"""Fixtures of the crash tests: the same order of writes in every run, and more calls to interrupt."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from detent.engine import journal
from detent.engine.checkpoints import rollback
from detent.engine.projections import write_behind
from detent.objects import universe
from tests.support import faults
from tests.support.rollback_scenarios import ALSO_WATCHED, LARGE


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory on the disk: kills and failures are shown on a real file system, not in memory as elsewhere."""
    with tempfile.TemporaryDirectory(prefix="detent-crash-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@pytest.fixture(autouse=True)
def _same_order_every_time(monkeypatch):
    """Documents are written when the project is closed, and a snapshot with each of them."""
    monkeypatch.setattr(write_behind, "DELAY_S", 3_600)
    monkeypatch.setattr(journal, "SNAPSHOT_EVERY", 1)


@pytest.fixture
def watch_everything(monkeypatch):
    names = (*faults.WATCHED, *(name for name in ALSO_WATCHED if name not in faults.WATCHED))
    monkeypatch.setattr(faults, "WATCHED", names)
    monkeypatch.setattr(faults, "_original", {name: getattr(os, name) for name in names})


@pytest.fixture
def small_large_files(monkeypatch):
    """Large files go other ways than small ones; they need not be large for that."""
    monkeypatch.setattr(universe, "LARGE_BYTES", LARGE - 1)
    monkeypatch.setattr(rollback, "_SMALL_BYTES", LARGE - 1)
