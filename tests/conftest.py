"""What most tests need: a clock that always tells the same, and a project that must be clean when the test is over."""

import atexit
import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from detent.doctor.invariants import check
from detent.engine.project import open_project
from tests.support.attended import is_attended, run_attended
from tests.support.campaign import examples
from tests.support.project import build_project
from tests.support.repository import ENVIRONMENT
from tests.support.sandboxed import use_no_sandbox
from tests.support.values import TickingClock

MEMORY = "/dev/shm"
#: What the directories of all tests need at a time, with much to spare: pytest removes those of tests that passed.
_ROOM = 2 * 1024**3

# The suite touches nothing in the account's own state. Processes that the tests start inherit it.
_STATE = tempfile.mkdtemp(prefix="detent-state-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
atexit.register(shutil.rmtree, _STATE, ignore_errors=True)
os.environ["XDG_STATE_HOME"] = _STATE

# Syncing a disk is what many tests would do most. Files in memory are files, too, and a killed process leaves the same.
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= _ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)

# Every machine gives the same results, whether it has bubblewrap or not. Tests of the sandbox ask for the real one.
use_no_sandbox()

# A soak tries every property more often. On a busy machine an example may take long, and that is no failure.
settings.register_profile(
    "sample", max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("sample")

# A shell starts what it runs in the background with interrupts ignored, and every child inherits that.
with suppress(ValueError):
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Tests decide as people do: start over at a terminal, and below no agent, if this process is not there already."""
    if is_attended():
        return None
    if capture := config.pluginmanager.getplugin("capturemanager"):
        capture.suspend_global_capture(in_=True)
    return run_attended([sys.executable, "-m", "pytest", *map(str, config.invocation_params.args)])


@pytest.fixture
def clock():
    return TickingClock()


@pytest.fixture
def project(tmp_path, clock, monkeypatch):
    """A project in a directory of its own. Whatever the test did to it, the doctor finds nothing afterwards."""
    monkeypatch.delenv("DETENT_PROJECT", raising=False)
    build_project(tmp_path)
    with open_project(tmp_path, actor="tester", clock=clock) as opened:
        yield opened
        opened.flush()
        assert check(opened) == []


@pytest.fixture
def nobody(monkeypatch):
    """No settings of the account, no identity but the one of the tests, and the `detent` that is tested."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DETENT_PROJECT", raising=False)
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def quick_path():
    """A directory in memory where there is one, for tests that make thousands of small files."""
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as directory:
        yield Path(directory)
