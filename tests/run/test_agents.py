"""Which agent does a phase."""

import pytest

from detent.config.settings import AgentSettings, RunSettings, Settings
from detent.errors import Invalid, NotFound
from detent.run.agents import ConfiguredAgents, on_path


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    """A path with nothing on it but what a test puts there."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def install(*programs):
        for program in programs:
            (tmp_path / program).touch(mode=0o755)

    return install


def settings(agent=None, agents=None, **own):
    return Settings(run=RunSettings(agent=agent, agents=agents or {}), agents=own)


def chosen(of, overrides=None, phase="build", role="builder"):
    return ConfiguredAgents(of, overrides).for_phase(phase, role)[0]


ECHO = AgentSettings(adapter="command", command="echo hi")


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ({"build": "manual", "builder": "gemini", "": "claude-code"}, "manual"),
        ({"builder": "gemini", "": "claude-code"}, "gemini"),
        ({"": "claude-code"}, "codex"),
        ({}, "codex"),
    ],
)
def test_an_override_by_name_comes_before_the_settings_of_the_phase(overrides, name):
    assert chosen(settings(agents={"build": "codex", "builder": "echo"}, echo=ECHO), overrides) == name


def test_the_phase_comes_before_its_role_and_both_before_the_agent_for_all():
    named = settings("manual", {"build": "codex", "tester": "gemini"})

    assert chosen(named, {"": "claude-code"}, "build", "tester") == "codex"
    assert chosen(named, {"": "claude-code"}, "test", "tester") == "gemini"
    assert chosen(named, {"": "claude-code"}, "ship", "shipper") == "claude-code"
    assert chosen(named, {}, "ship", "shipper") == "manual"


def test_without_any_settings_the_first_client_that_is_installed_works(path):
    path("gemini", "codex")

    assert on_path() == ["codex", "gemini"]
    assert chosen(settings()) == "codex"


def test_where_nothing_is_set_nor_installed_the_way_out_is_named():
    with pytest.raises(NotFound, match="no agent for build") as caught:
        chosen(settings())

    assert caught.value.way_out == "set agent under [run] in detent.toml, or use --agent"


def test_a_phase_that_has_no_agent_is_found_before_the_run():
    with pytest.raises(NotFound, match="no agent for ship"):
        ConfiguredAgents(settings(agents={"build": "manual"}), needed=[("build", ""), ("ship", "shipper")])


@pytest.mark.parametrize(
    ("of", "overrides"),
    [
        (settings("nobody"), {}),
        (settings("manual", {"review": "nobody"}), {}),
        (settings("manual"), {"review": "nobody"}),
        (settings("manual"), {"": "nobody"}),
    ],
)
def test_a_name_that_nobody_has_is_refused_at_once_with_the_names_there_are(of, overrides):
    with pytest.raises(NotFound, match="there is no agent nobody; known agents: claude-code, codex, gemini, manual"):
        ConfiguredAgents(of, overrides)


def test_an_agent_of_the_settings_replaces_the_one_that_comes_with_the_name():
    agents = ConfiguredAgents(settings("codex", codex=AgentSettings(adapter="command", command="x", retries=7)))

    assert agents.settings_of("codex").retries == 7
    assert agents.settings_of("gemini") == AgentSettings(adapter="gemini")


def test_an_agent_that_cannot_work_is_refused_at_once_if_it_is_used():
    broken = AgentSettings(adapter="command")

    with pytest.raises(Invalid, match="has no command"):
        ConfiguredAgents(settings("broken", broken=broken))
    assert ConfiguredAgents(settings("manual", broken=broken)).for_phase("build", "")[0] == "manual"


def test_an_adapter_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(Invalid, match="there is no adapter 'telnet'; known adapters: claude-code, codex, gemini"):
        ConfiguredAgents(settings("mine", mine=AgentSettings(adapter="telnet")))
