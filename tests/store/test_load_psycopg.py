"""psycopg is loaded without asyncio and without a search for its version, and both are real afterwards."""

import subprocess
import sys

import pytest

pytest.importorskip("psycopg")
LOAD = "import sys; from detent.store.postgres.load_psycopg import load_psycopg, STAND_INS; loaded = load_psycopg(); "


def printed(code, first=None):
    """The output of a fresh interpreter. It finds modules in `first` before all others."""
    found = f"import sys; sys.path.insert(0, {str(first)!r}); " if first else ""
    command = [sys.executable, "-c", found + code]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_it_is_loaded_without_them_and_they_are_real_afterwards():
    used = "import asyncio, importlib.metadata as metadata; "

    assert printed(f"{LOAD}print([name for name in STAND_INS if name in sys.modules], callable(loaded.connect))") == (
        "[] True"
    )
    assert printed(f"{LOAD}{used}print(asyncio.run(asyncio.sleep(0, 'slept')), metadata.version('detent') != '')") == (
        "slept True"
    )


def test_a_psycopg_that_takes_more_from_them_is_loaded_with_the_real_ones(tmp_path):
    (tmp_path / "psycopg").mkdir()
    (tmp_path / "psycopg" / "__init__.py").write_text("import asyncio.tasks\n")

    assert printed(f"{LOAD}print(loaded.asyncio.tasks.__name__)", tmp_path) == "asyncio.tasks"


def test_modules_that_are_loaded_already_stay():
    loaded = f"import asyncio; {LOAD}from psycopg import errors; print(errors.CancelledError is asyncio.CancelledError)"

    assert printed(loaded) == "True"
