import pytest

from detent.core.workflow.phase_key import ALIASES, normalize_phase_key
from detent.core.workflow.roles import PHASE_AGENTS, SUB_AGENTS, normalize_agent_name


@pytest.mark.parametrize("old", ALIASES)
def test_an_old_key_leads_to_a_known_phase_in_one_step(old: str) -> None:
    assert normalize_phase_key(old) in PHASE_AGENTS
    assert normalize_phase_key(normalize_phase_key(old)) == normalize_phase_key(old)


@pytest.mark.parametrize("value", [None, "", 0, 13, [], {"a": 1}, "constructor", " 13-test-deploy"])
def test_anything_else_comes_back_as_it_is(value: object) -> None:
    assert normalize_phase_key(value) is value


def test_every_sub_agent_belongs_to_a_known_phase_and_leads_none() -> None:
    assert set(SUB_AGENTS.values()) <= PHASE_AGENTS.keys()
    assert not SUB_AGENTS.keys() & set(PHASE_AGENTS.values())


@pytest.mark.parametrize("agent", [*PHASE_AGENTS.values(), *SUB_AGENTS])
def test_an_agent_is_recognised_by_its_file_name(agent: str) -> None:
    assert normalize_agent_name(agent) == agent
    assert normalize_agent_name(f" 05_{agent.upper()} ") == agent


def test_a_number_is_part_of_the_name_of_an_unknown_agent() -> None:
    assert normalize_agent_name("12-factor") == "12-factor"
