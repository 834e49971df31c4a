"""A server for all tests, a project with a session that waits for an approval, and the address of that session."""

import os
from pathlib import Path

import pytest

from detent.store.state_home import digest
from tests.support.gated import calculator, started
from tests.support.page import opened
from tests.support.project import write


@pytest.fixture(scope="session")
def state(tmp_path_factory):
    return tmp_path_factory.mktemp("state")


@pytest.fixture(autouse=True)
def own_state(state, monkeypatch):
    """An index of projects that other tests do not fill."""
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.delenv("DETENT_PROJECT", raising=False)


@pytest.fixture(scope="session")
def page(state, tmp_path_factory):
    with opened(tmp_path_factory.mktemp("elsewhere"), XDG_STATE_HOME=str(state)) as page:
        yield page


@pytest.fixture
def root(tmp_path):
    calculator(tmp_path, git=True)
    project, _ = started(tmp_path, '{ kind = "approval" }')
    write(tmp_path, "calc.py", "def add(a, b):\n    return b + a\n")
    project.close()
    return tmp_path


@pytest.fixture
def own(root):
    """The address of the project."""
    return f"/api/p/{digest(os.fsencode(Path(root).resolve()))}"


@pytest.fixture
def base(own):
    """The address of the session."""
    return f"{own}/s/WFS-try-it"
