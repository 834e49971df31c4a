"""The quick check that spares most commands a full parse. It may only err on the careful side."""

import pytest

from detent.core.guard.harmless import MAX_LENGTH, is_harmless
from tests.support.guard_corpus import DENIED, ROOT

DIRECTORIES = (".claude", ".codex", ".gemini")


@pytest.mark.parametrize(
    "command", ["ls -la", "pytest -q tests/a.py", "cat a.txt 2>&1 | head -3 > /dev/null", "echo a; ls b"]
)
def test_plain_words_pass(command):
    assert is_harmless(command, ROOT, DIRECTORIES)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "echo x > may-be-a-link",
        "/bin/rm x",
        "echo $HOME",
        "echo 'a'",
        "ls *",
        "cat ../x",
        "ls .",
        "cat .workflow/x",
        "detent status",
        "cat .claude/x",
        "ls " + "a" * MAX_LENGTH,
    ],
)
def test_what_needs_a_full_parse_does_not_pass(command):
    assert not is_harmless(command, ROOT, DIRECTORIES)


def test_nothing_passes_in_a_directory_of_its_own():
    assert not is_harmless("ls -la", f"{ROOT}/.workflow/WFS-a", DIRECTORIES)


@pytest.mark.parametrize("case", DENIED, ids=lambda case: case.command[:60])
def test_no_command_passes_that_writes_a_guarded_file(case):
    assert not is_harmless(case.command, case.cwd, DIRECTORIES)
