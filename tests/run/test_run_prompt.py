"""The prompt of a run tells the agent what its phase is: its role, and the instructions of the project."""

import pytest

from detent.clients.installing.texts import agents, role_text
from detent.config.catalogue import Catalogue
from detent.config.settings import parse_settings
from detent.errors import Invalid
from tests.support.command import Tool
from tests.support.project import build_project
from tests.support.scripted_run import Cast


def test_every_role_that_ships_for_a_client_is_a_text_for_runs_too():
    for name, definition in agents().items():
        role, produces, never = role_text(name).split("\n\n")
        assert role in definition
        assert produces.removeprefix("You produce ") in definition
        assert never.removeprefix("You must not ") in definition
    assert role_text("nobody") == ""


def test_the_prompt_has_the_role_of_its_phase(scene):
    here, cast = scene('[{key="06-implementation"}, {key="own"}]', more='gates = "off"'), Cast()
    here.run(cast)

    first, second = cast.prompts("06-implementation")[0], cast.prompts("own")[0]
    assert "## Your role\n\nYou build it." in first
    assert "You must not weaken, skip or delete a test to get a pass" in first
    assert "## Your role" not in second


def test_the_prompt_has_the_instructions_of_the_project(scene):
    more = 'gates = "off"\n[phases.a]\ninstructions = "Use the style of the parser."\n'
    here, cast = scene('["a"]', more=more), Cast()
    here.run(cast)

    assert "## Instructions\n\nUse the style of the parser." in cast.prompts("a")[0]


def test_a_task_has_the_role_and_the_instructions_of_its_phase(scene):
    more = 'gates = "off"\n[phases.06-implementation]\ninstructions = "Small commits."\n'
    here, cast = scene('[{key="06-implementation", tasks=true}]', more=more), Cast()
    here.handle.tasks.add("One")
    here.run(cast)

    prompt = cast.prompts("IMPL-1")[0]
    assert f"## Your role\n\n{role_text('code-developer')}" in prompt
    assert "## Instructions\n\nSmall commits." in prompt


SETTINGS = """
gates = "off"
[workflows.w]
phases = ["a", "06-implementation"]
[phases.a]
instructions = { file = "docs/how.md" }
"""


@pytest.fixture
def tool(tmp_path):
    made = Tool(tmp_path / "project")
    build_project(made.directory, SETTINGS, files={"docs/how.md": "Read the plan first.\n"})
    return made


def test_the_verb_shows_the_prompt_of_a_phase_and_begins_nothing(tool):
    tool("start", "w", "Add login").ok()
    before = tool.digest()

    assert "## Instructions\n\nRead the plan first." in tool("prompt").ok().out
    shown = tool("prompt", "06-implementation", "--json").ok().json()

    assert shown["phase"] == "06-implementation"
    assert "## Your role\n\nYou build it." in shown["prompt"]
    assert tool.digest() == before


def test_a_session_keeps_the_text_of_a_file_that_it_started_with(tool):
    tool("start", "w", "Add login").ok()
    (tool.directory / "docs/how.md").write_text("Do as you like.\n")

    assert "Read the plan first." in tool("prompt", "a").ok().out


def test_a_file_of_instructions_that_is_not_there_is_named(tool):
    (tool.directory / "docs/how.md").unlink()

    code, message, way_out = tool("start", "w", "Add login").error()

    assert code == 1
    assert "the instructions of a cannot be read" in message
    assert "[phases.a] in detent.toml" in way_out


def test_instructions_have_a_limit():
    settings = parse_settings(
        f'[phases.a]\ninstructions = "{"x" * 20_000}"\n[workflows.w]\nphases = ["a"]', "detent.toml"
    )

    with pytest.raises(Invalid, match="more than 16384 characters"):
        Catalogue(settings).workflow("w")
