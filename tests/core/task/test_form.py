"""Paths and places in a task document."""

import pytest

from detent.core.task.form import focus_problem, path_problem, target_file, target_problem


@pytest.mark.parametrize("path", ["a.py", "src/a b.py", "src/..a/b", "a"])
def test_a_path_inside_the_project_is_fine(path):
    assert path_problem(path) is None


@pytest.mark.parametrize(
    "path", ["", " ", "a ", "a\0b", "/etc/x", "~/x", "\\x", "C:/x", "C:\\x", "./a", "a/../b", ".."]
)
def test_any_other_path_is_refused(path):
    assert path_problem(path)


@pytest.mark.parametrize("path", ["src/*.py", "a?", "src/[ab]", "{a,b}"])
def test_a_focus_path_has_no_wildcard(path):
    assert path_problem(path) is None
    assert focus_problem(path)


@pytest.mark.parametrize("target", ["a.py", "a.py:f", "a.cc:A::f", "a.py:f:1-9", "a.py:f:3-3"])
def test_a_target_is_a_file_with_a_symbol_and_lines(target):
    assert target_problem(target) is None
    assert target_file(target) in ("a.py", "a.cc")


@pytest.mark.parametrize(
    "target", ["/a.py:f", "a.py:", "a.py: ", "a.py:f:1", "a.py:f:9-1", "a.py:f:x-y", "a.py:f:1-2:3"]
)
def test_any_other_target_is_refused(target):
    assert target_problem(target)
