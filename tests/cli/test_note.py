"""`note`: what is worth keeping, in folders that are made when they are needed."""

import pytest

from tests.support.command import Tool, make_project, refused

SESSION = "WFS-try-it"


@pytest.fixture
def tool(detent) -> Tool:
    make_project(detent)
    detent("start", "plan-implement-review", "Try it").ok()
    return detent


def notes(tool):
    folder = tool.state / SESSION
    return sorted(
        str(path.relative_to(folder)) for name in (".chat", ".brainstorming") for path in folder.glob(f"{name}/*")
    )


def test_folders_are_made_when_the_first_note_is_kept(tool):
    assert notes(tool) == []

    for kind in ("chat", "analysis", "ideas", "analysis"):
        tool("note", f"About {kind}", "--kind", kind).ok()

    assert notes(tool) == [".brainstorming/1.md", ".chat/analysis-1.md", ".chat/analysis-2.md", ".chat/chat-1.md"]
    assert (tool.state / SESSION / ".chat/analysis-2.md").read_text() == "About analysis\n"
    assert tool("doctor").ok().out == "all is well\n"


def test_a_note_has_a_name_and_is_never_overwritten(tool):
    shown = tool("note", "-", "--name", "../Why Passkeys?", stdin=b"first\n").ok().out

    assert shown.rstrip().endswith(f"{SESSION}/.chat/analysis-why-passkeys.md")
    code, message, way_out = refused(tool, "note", "second", "--name", "why passkeys")
    assert (code, way_out) == (1, "give it another --name")
    assert "analysis-why-passkeys.md" in message
    assert (tool.state / SESSION / ".chat/analysis-why-passkeys.md").read_text() == "first\n"


def test_secrets_in_a_note_are_redacted(tool):
    tool("note", "use ghp_0123456789abcdefghijABCDEFGHIJ012345").ok()

    assert "ghp_" not in (tool.state / SESSION / ".chat/analysis-1.md").read_text()


def test_an_empty_note_is_refused(tool):
    assert "needs a text" in refused(tool, "note", " ")[1]
