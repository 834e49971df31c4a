"""The page about installing names what is installed."""

from pathlib import Path

import pytest

from tests.support.installed_project import INSTALLATIONS

PAGE = (Path(__file__).parents[2] / "docs/install.md").read_text()


@pytest.mark.parametrize(("name", "installation"), INSTALLATIONS.items())
def test_the_page_names_files_events_and_versions(name, installation):
    for word in (name, installation.hooks.path, installation.instructions, *installation.hooks.events):
        assert f"`{word}`" in PAGE
    assert ".".join(map(str, installation.oldest)) in PAGE


def test_the_example_of_the_page_runs(place, capsys):
    example = PAGE.partition("```python\n")[2].partition("```")[0]
    names = {"shop": str(place.root)}
    text = example.replace('"shop"', "shop").replace('["claude-code"]', '["claude-code"], python=python, hook=hook')

    exec(text, {**names, "python": place.python, "hook": place.hook})

    assert "+++ b/.claude/settings.json" in capsys.readouterr().out
    assert place.tree() == {}
