"""The page about installing names what is installed."""

from pathlib import Path

import pytest

from detent.install.clients import CLIENT_TABLE

PAGE = (Path(__file__).parents[2] / "docs/install.md").read_text()


@pytest.mark.parametrize("client", CLIENT_TABLE.values(), ids=lambda client: client.name)
def test_the_page_names_files_events_and_versions(client):
    for word in (client.name, client.settings, client.instructions, *client.events):
        assert f"`{word}`" in PAGE
    assert ".".join(map(str, client.oldest)) in PAGE


def test_the_example_of_the_page_runs(place, capsys):
    example = PAGE.partition("```python\n")[2].partition("```")[0]
    names = {"shop": str(place.root)}
    text = example.replace('"shop"', "shop").replace('["claude-code"]', '["claude-code"], python=python, hook=hook')

    exec(text, {**names, "python": place.python, "hook": place.hook})

    assert "+++ b/.claude/settings.json" in capsys.readouterr().out
    assert place.tree() == {}
