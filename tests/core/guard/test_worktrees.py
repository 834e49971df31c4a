"""A worktree lies below `.workflow`, and is guarded as the project is: its files are free, its settings are not."""

import pytest

from tests.support.guarding import command_hits, guarded

ROOT = "/home/me/shop"
TREE = f"{ROOT}/.workflow/worktrees/WFS-x.a"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/x.py", None),
        ("worktrees/x.py", None),
        ("detent.toml", "config"),
        (".claude/settings.json", "config"),
        (".workflow/WFS-x/journal.jsonl", "journal"),
        ("", "journal"),
        ("../WFS-x.a.json", "journal"),
        ("../../WFS-x/journal.jsonl", "journal"),
        ("../../state.json", "document"),
        ("../../../detent.toml", "config"),
        ("../../../src/x.py", None),
    ],
)
def test_files(path, kind):
    assert guarded(f"{TREE}/{path}".rstrip("/"), ROOT) == kind


@pytest.mark.parametrize(
    "command",
    [
        "echo x > src/x.py", "rm -rf build", "sed -i s/a/b/ src/*.py", "git add -A", "cp -r src lib", "rm -f src/*.log",
        "mkdir -p src/deep && touch src/deep/x", "mv a.txt b.txt", "tee out.txt", "rm -rf src/**/__pycache__",
    ],
)  # fmt: skip
def test_work_in_a_worktree_is_free(command):
    assert command_hits(command, TREE, ROOT) == command_hits(command, ROOT, ROOT) == []


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("rm -rf .", "journal"),
        ("rm -rf ..", "journal"),
        ("rm -rf ../WFS-x.b", "journal"),
        ("rm -rf ../*", "journal"),
        ("rm -rf *", "config"),
        ("echo > detent.toml", "config"),
        ("rm -rf .claude", "config"),
        ("echo > ../../WFS-x/journal.jsonl", "journal"),
        ("echo > ../../state.json", "document"),
        ("rm ../*.json", "journal"),
        ("rm -rf .workflow", "journal"),
    ],
)
def test_what_is_not_work_is_guarded(command, kind):
    assert [hit[2] for hit in command_hits(command, TREE, ROOT)] == [kind]
