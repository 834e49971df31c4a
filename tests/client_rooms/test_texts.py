"""The block in instruction files, the agent definitions and the slash commands."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.clients.installing import parts, texts
from detent.core.workflow.roles import PHASE_AGENTS
from detent.errors import Invalid
from tests.support.installed_project import INSTALLATIONS

BLOCK = b"<!-- detent:begin -->\n" + texts.instructions() + b"<!-- detent:end -->\n"


def merged(current):
    return parts.merge_block(current, name="CLAUDE.md", text=texts.instructions()).content


def stripped(current, original=None):
    return parts.strip_block(current, original, name="CLAUDE.md").content


@given(st.binary().filter(lambda text: b"detent:" not in text and text[:2] not in (b"\xff\xfe", b"\xfe\xff")))
def test_the_block_stands_behind_what_is_there_and_only_once(text):
    after = merged(text)

    assert after.startswith(text)
    assert merged(after) == after
    assert stripped(after, text).rstrip(b"\r\n") == text.rstrip(b"\r\n")


def test_the_block_is_short():
    assert len(BLOCK.splitlines()) <= 25
    assert all(len(line) <= 130 for line in BLOCK.splitlines())


@pytest.mark.parametrize("head", [b"", b"# Us\n\n"])
@pytest.mark.parametrize("tail", [b"", b"\nmore\n", b"more"])
def test_an_older_block_is_replaced_where_it_stands(head, tail):
    old = head + b"<!-- detent:begin -->\nold words\n<!-- detent:end -->\n" + tail

    assert merged(old) == head + BLOCK + tail


def test_a_block_that_a_merge_doubled_becomes_one():
    assert merged(BLOCK + b"between\n" + BLOCK) == BLOCK + b"between\n"


def test_a_file_with_other_line_ends_keeps_them():
    after = merged(b"# Us\r\n")

    assert after.count(b"\n") == after.count(b"\r\n")
    assert merged(after) == after


def test_words_of_a_person_behind_the_block_stay():
    assert stripped(b"# Us\n\n" + BLOCK + b"\nmore\n", b"# Us\n") == b"# Us\n\nmore\n"


@pytest.mark.parametrize(
    "text",
    [
        b"<!-- detent:begin -->\n",
        b"<!-- detent:end -->\n",
        b"<!-- detent:end -->\n<!-- detent:begin -->\n",
        b"<!-- detent:begin -->\n<!-- detent:begin -->\n<!-- detent:end -->\n",
    ],
)
def test_markers_that_do_not_pair_up_are_refused(text):
    with pytest.raises(Invalid, match="do not match"):
        merged(text)


@pytest.mark.parametrize("line", [b"we write `<!-- detent:begin -->` first\n", b"it ends with <!-- detent:end -->\n"])
def test_markers_that_share_a_line_are_somebodys_words(line):
    assert merged(line) == line + b"\n" + BLOCK


def test_text_that_is_not_utf8_is_refused(place):
    with pytest.raises(Invalid, match="not UTF-8"):
        merged("hello".encode("utf-16"))


def test_every_agent_of_the_phases_has_a_definition(place):
    place.install("claude-code")

    agents = {path.stem: path.read_text() for path in (place.root / ".claude/agents").iterdir()}
    assert set(agents) == set(PHASE_AGENTS.values())
    for name, text in agents.items():
        lines = text.splitlines()
        assert lines[:2] == ["---", f"name: {name}"]
        assert lines[2].startswith('description: "Detent phase')
        assert lines[2].count('"') == 2
        assert lines[3] == "---"
        assert 8 <= len([line for line in lines[4:] if line]) <= 20
        for word in ("Summary:", "Deliverables:", "Context for next:", "You must not", "handover"):
            assert word in text
        phases = [phase for phase, agent in PHASE_AGENTS.items() if agent == name]
        assert all(phase in lines[2] for phase in phases), phases
        assert "$" not in text


def test_claude_code_and_gemini_have_the_same_commands(place):
    place.install("claude-code", "gemini")

    names = {"status", "start", "finish", "why", "rollback"}
    assert {path.stem for path in (place.root / ".claude/commands").iterdir()} == {f"detent-{name}" for name in names}
    gemini = {path.stem: tomllib.loads(path.read_text()) for path in (place.root / ".gemini/commands/detent").iterdir()}
    assert set(gemini) == names
    assert all(set(command) == {"description", "prompt"} for command in gemini.values())
    assert "{{args}}" in gemini["start"]["prompt"]
    assert "$ARGUMENTS" in place.read(".claude/commands/detent-start.md").decode()
    assert "{arguments}" not in "".join(command["prompt"] for command in gemini.values())


def test_a_file_of_somebody_else_is_never_overwritten_nor_removed(place):
    place.write(".claude/agents/qa-engineer.md", "my own\n")

    made = place.install("claude-code")
    assert ".claude/agents/qa-engineer.md does not belong to Detent and was not changed" in made.notes
    place.uninstall("claude-code")

    assert place.tree() == {".claude": None, ".claude/agents": None, ".claude/agents/qa-engineer.md": b"my own\n"}


def test_an_agent_that_a_person_edited_is_theirs_from_then_on(place):
    path = ".claude/agents/architect.md"
    place.install("claude-code")
    edited = place.read(path).replace(b"You plan the work", b"You plan OUR work")
    place.write(path, edited)

    assert place.plan("claude-code").is_empty
    made = place.uninstall("claude-code")

    assert place.read(path) == edited
    assert f"{path} was edited and is kept" in made.notes


def test_an_older_file_of_ours_is_replaced_also_in_a_clone(place):
    path = ".claude/agents/architect.md"
    place.write(path, parts.sealed("what an older Detent wrote\n"))

    place.install("claude-code")
    assert place.read(path) == INSTALLATIONS["claude-code"].files()[path]
    place.uninstall("claude-code")

    assert path not in place.tree()


def test_a_file_that_a_newer_detent_no_longer_writes_goes(place, monkeypatch):
    path = ".gemini/commands/detent/gone.toml"
    files = INSTALLATIONS["gemini"].files()
    with monkeypatch.context() as older:
        older.setitem(files, path, parts.sealed("x = 1\n", comment=("# ", "")))
        place.install("gemini")
        assert path in place.tree()

    place.install("gemini")

    assert path not in place.tree()
