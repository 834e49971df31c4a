"""A project with a session that waits for an approval, and a page that looks at it."""

import pytest

from tests.support.gated import calculator, started
from tests.support.page import opened
from tests.support.project import write


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory, monkeypatch):
    """The index of projects of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.delenv("DETENT_PROJECT", raising=False)


@pytest.fixture
def root(tmp_path):
    calculator(tmp_path, git=True)
    project, _ = started(tmp_path, '{ kind = "approval" }')
    write(tmp_path, "calc.py", "def add(a, b):\n    return b + a\n")
    project.close()
    return tmp_path


@pytest.fixture
def page(root):
    with opened(root) as page:
        yield page


@pytest.fixture
def base(page):
    """The address of the session."""
    return f"/api/p/{page.get('/api/me').ok()['project']}/s/WFS-try-it"
