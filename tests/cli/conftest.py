"""Detent as people run it: a process of its own, in a directory of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import Tool, make_project, make_session
from tests.support.project import copy_project, is_wanted


@pytest.fixture
def detent(tmp_path) -> Tool:
    """In an empty directory."""
    return Tool(tmp_path)


@pytest.fixture(scope="session")
def once(tmp_path_factory) -> Callable[[Callable[[Tool], None], Tool], Tool]:
    """What is typed first, for many tests, is typed once; each has a copy of what came of it."""
    made: dict[Callable[[Tool], None], Path] = {}

    def copy(make: Callable[[Tool], None], into: Tool) -> Tool:
        if is_wanted():
            # A copy of the files would share the journals.
            make(into)
            return into
        if make not in made:
            made[make] = tmp_path_factory.mktemp("once")
            make(Tool(made[make]))
        copy_project(made[make], into.directory)
        return into

    return copy


@pytest.fixture
def project(detent, once) -> Tool:
    """In a project without a session."""
    return once(make_project, detent)


@pytest.fixture
def session(detent, once) -> Tool:
    """In a project with a feature in its second phase."""
    return once(make_session, detent)
