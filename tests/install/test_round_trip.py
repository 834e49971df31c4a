"""What was there before comes back byte for byte; what a person added since stays."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detent.clients.installing import hook_settings, json_text
from detent.clients.installing.hook_settings import Invocation
from tests.support.installed_project import CLIENTS_WITH_HOOKS as CLIENTS
from tests.support.installed_project import FORMS, INSTALLATIONS, Place, settings_texts

_markdown = st.binary(max_size=30) | st.sampled_from([b"", b"# Us\n", b"# Us", b"# Us\r\n\r\ntext\r\n", b"\n\n"])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_removal_restores_every_byte_and_installing_twice_is_installing_once(data):
    chosen = data.draw(st.lists(st.sampled_from(CLIENTS), min_size=1, unique=True))
    with tempfile.TemporaryDirectory() as directory:
        place = Place(Path(directory))
        for client in chosen:
            if data.draw(st.booleans()):
                place.write(FORMS[client].path, data.draw(settings_texts()))
            if data.draw(st.booleans()):
                place.write(INSTALLATIONS[client].instructions, data.draw(_markdown.filter(_is_fair)))
        before = place.tree()

        place.install(*chosen)
        installed = place.tree()
        assert place.plan(*chosen).is_empty
        for client in chosen:
            place.install(client)
        assert place.tree() == installed

        place.uninstall(*chosen)
        assert place.tree() == before


@given(settings_texts(), st.sampled_from(CLIENTS))
def test_what_others_have_in_the_settings_means_the_same_with_our_hooks(text, client):
    before = json_text.parse(text.decode(), "it")

    after = json_text.parse(_merged(text, client).decode(), "it")

    for event, groups in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(groups)] == groups
    others = {k: v for k, v in after.items() if k in before and k != "hooks"}
    assert others == {k: v for k, v in before.items() if k != "hooks"}
    assert [key for key in after if key in before] == list(before)


@given(settings_texts(), st.sampled_from(CLIENTS))
def test_a_key_that_a_person_adds_after_the_installation_survives_the_removal(text, client):
    edited = json_text.insert(_merged(text, client).decode(), (), ["theirs"], key="added later").encode()

    left = hook_settings.strip(edited, text, form=FORMS[client]).content

    expected = {**json_text.parse(text.decode(), "it"), "added later": ["theirs"]}
    assert json_text.parse(left.decode(), "it") == expected


def test_the_removal_says_which_files_were_edited_since(place):
    place.install("codex")
    place.write(".codex/hooks.json", json_text.insert(place.read(".codex/hooks.json").decode(), (), 1, key="theirs"))
    place.write("AGENTS.md", place.read("AGENTS.md") + b"theirs\n")

    made = place.uninstall("codex")

    assert json.loads(place.read(".codex/hooks.json")) == {"theirs": 1}
    assert place.read("AGENTS.md") == b"theirs\n"
    assert made.notes == tuple(
        f"{path} was edited since; only Detent's part was removed" for path in (".codex/hooks.json", "AGENTS.md")
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_an_edit_between_two_installations_is_part_of_what_comes_back(place, client):
    path = FORMS[client].path
    place.write(path, '{\n  "theirs": 1\n}\n')
    place.install(client)
    edited = place.read(path).replace(b'"theirs": 1', b'"theirs": 2')
    place.write(path, edited)

    place.install(client, python=Place.made(place.root.parent / "other" / "python3"))
    place.uninstall(client)

    assert place.read(path) == b'{\n  "theirs": 2\n}\n'


def test_without_the_records_our_parts_are_still_found(place):
    """A clone has the files that were committed, and no `.workflow/install`."""
    place.write("CLAUDE.md", "# Us\n")
    place.write(".claude/settings.json", json.dumps({"model": "x", "hooks": {"Stop": [{"hooks": []}]}}, indent=2))
    before = place.tree()
    place.install(*CLIENTS)
    for path in sorted((place.root / ".workflow").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (place.root / ".workflow").rmdir()

    place.uninstall(*CLIENTS)

    assert {path: content for path, content in place.tree().items() if content is not None} == {
        path: content for path, content in before.items() if content is not None
    }


def test_a_damaged_original_is_not_put_back(place):
    place.write("CLAUDE.md", "# Us\n")
    place.install("claude-code")
    for path in (place.root / ".workflow/install/originals").iterdir():
        path.write_text("damaged")

    place.uninstall("claude-code")

    assert place.read("CLAUDE.md") == b"# Us\n"


def test_clients_are_removed_one_by_one(place):
    before = place.tree()
    place.install("codex")
    only_codex = place.tree()
    place.install("claude-code", "gemini")

    place.uninstall("claude-code")
    place.uninstall("gemini")
    left = place.tree()
    place.uninstall("codex")

    manifest = ".workflow/install/manifest.json"
    assert {**left, manifest: None} == {**only_codex, manifest: None}
    assert place.tree() == before


def _merged(text, client):
    made = hook_settings.merge(text, form=FORMS[client], invocation=Invocation("/p", "/x/detent/hooks/fast.py"))
    return made.content


def _is_fair(text):
    return not text.startswith((b"\xff\xfe", b"\xfe\xff")) and b"detent:" not in text
