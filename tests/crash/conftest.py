"""Crash tests make thousands of small files; where there is a file system in memory, they use it."""

import os
import tempfile
from pathlib import Path

import pytest

from detent.engine import journal
from detent.engine.projections import write_behind

MEMORY = "/dev/shm"


@pytest.fixture
def quick_path():
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as directory:
        yield Path(directory)


@pytest.fixture(autouse=True)
def _same_order_every_time(monkeypatch):
    """Documents are written when the project is closed, and a snapshot with each of them."""
    monkeypatch.setattr(write_behind, "DELAY_S", 3_600)
    monkeypatch.setattr(journal, "SNAPSHOT_EVERY", 1)
