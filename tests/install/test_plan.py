"""A plan only reads; its diff is what will happen; it stays inside the project."""

import os
import subprocess

import pytest

from detent.clients.installing import apply, plan_removal
from detent.clients.registry import with_hooks
from detent.errors import Corrupt, Invalid, NotFound

RECORDS = ".workflow"


def shown(tree):
    """What the diff tells of: files, without our own records."""
    return {path: text for path, text in tree.items() if text is not None and not path.startswith(RECORDS)}


@pytest.fixture
def furnished(place):
    place.write("CLAUDE.md", "# Us\n\nno newline at the end")
    place.write("AGENTS.md", "a line separator \u2028 and \x0c a form feed\n")
    place.write(".claude/settings.json", '{\n\t"model": "x"\n}')
    place.write(".gemini/settings.json", '{"ui": {}}\r\n')
    return place


def test_planning_writes_nothing(furnished):
    before = furnished.tree()

    furnished.plan(*with_hooks())
    plan_removal(str(furnished.root), with_hooks())

    assert furnished.tree() == before


@pytest.mark.parametrize("tool", [["git", "apply"], ["patch", "-p1", "-s", "--binary"]])
def test_the_diff_applies(furnished, tool):
    installing = furnished.plan(*with_hooks())
    before = shown(furnished.tree())

    _run(tool, furnished.root, installing.diff())
    by_diff = shown(furnished.tree())
    _run([*tool, "-R"], furnished.root, installing.diff())
    assert shown(furnished.tree()) == before

    apply(installing)
    assert shown(furnished.tree()) == by_diff
    _run(tool, furnished.root, plan_removal(str(furnished.root), with_hooks()).diff())
    assert shown(furnished.tree()) == before


def test_a_plan_is_a_sequence_of_changes(place):
    made = place.plan("codex")

    assert len(made) == len(list(made)) == len(made.changes)
    assert {change.path for change in made} == {".codex/hooks.json", "AGENTS.md", ".workflow/install/manifest.json"}
    assert all(change.before is None and change.after is not None for change in made)
    place.install("codex")
    assert place.plan("codex").is_empty
    assert place.plan("codex").diff() == ""


def test_records_come_before_the_files_and_go_after_them(furnished):
    def is_record(change):
        return change.path.startswith(RECORDS)

    installing = [is_record(change) for change in furnished.install(*with_hooks())]
    removing = [is_record(change) for change in plan_removal(str(furnished.root), with_hooks())]

    assert installing == sorted(installing, reverse=True)
    assert removing == sorted(removing)


def test_a_link_inside_the_project_is_followed_and_stays_a_link(place):
    place.write("config/claude.json", '{"model": "x"}\n')
    (place.root / ".claude").mkdir()
    (place.root / ".claude/settings.json").symlink_to("../config/claude.json")

    place.install("claude-code")
    assert os.readlink(place.root / ".claude/settings.json") == "../config/claude.json"
    assert b"SessionStart" in place.read("config/claude.json")
    place.uninstall("claude-code")

    assert place.read("config/claude.json") == b'{"model": "x"}\n'
    assert (place.root / ".claude/settings.json").is_symlink()


def test_two_names_of_one_file_get_one_block_and_the_last_client_takes_it_along(place):
    place.write("AGENTS.md", "# Us\n")
    (place.root / "CLAUDE.md").symlink_to("AGENTS.md")
    place.install("claude-code", "codex")
    assert place.read("AGENTS.md").count(b"detent:begin") == 1

    place.uninstall("claude-code")
    assert place.read("AGENTS.md").count(b"detent:begin") == 1
    place.uninstall("codex")

    assert place.read("AGENTS.md") == b"# Us\n"
    assert (place.root / "CLAUDE.md").is_symlink()


@pytest.mark.parametrize("link", ["CLAUDE.md", ".claude"])
def test_a_link_out_of_the_project_is_refused(place, link):
    outside = place.root.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("theirs")
    (place.root / link).symlink_to(outside / "file" if link == "CLAUDE.md" else outside)

    with pytest.raises(Invalid, match="outside"):
        place.install("claude-code")

    assert (outside / "file").read_text() == "theirs"
    assert len(list(outside.iterdir())) == 1


def test_a_directory_in_the_place_of_a_file_is_refused(place):
    (place.root / "AGENTS.md").mkdir()

    with pytest.raises(Invalid, match="cannot be a file"):
        place.plan("codex")


def test_a_root_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotFound, match="does not exist"):
        plan_removal(str(tmp_path / "nowhere"), with_hooks())


@pytest.mark.parametrize("content", ["{", '{"version": 2}', '{"files": []}'])
def test_a_damaged_manifest_is_an_error_and_not_an_empty_one(place, content):
    place.install("codex")
    place.write(".workflow/install/manifest.json", content)

    with pytest.raises(Corrupt, match=r"manifest\.json"):
        plan_removal(str(place.root), ["codex"])


def test_removing_what_was_never_installed_changes_nothing(furnished):
    assert plan_removal(str(furnished.root), with_hooks()).is_empty


def _run(command, root, text):
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent)}
    subprocess.run(command, cwd=root, input=text.encode(), check=True, env=environment)
