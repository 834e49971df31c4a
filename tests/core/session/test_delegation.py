"""The end of an agent is recorded in the phase that it worked for, even where its beginning was not recorded."""

import pytest

from detent.core.session.commands import Begin, Finish, RecordAgentEnded, RecordAgentStarted
from detent.core.session.decide import decide
from detent.core.session.events import AgentEnded
from detent.core.session.evolve import MAX_DELEGATIONS
from detent.core.session.phase_state import Report, Tokens
from detent.errors import Invalid, NotFound, Refused
from tests.support.values import after, opened, workflow

PARALLEL = {"a": (), "b": (), "c": ("a", "b")}
REPORT = Report(summary="all of it", tokens=Tokens(input=7))


def crowded(helpers=MAX_DELEGATIONS):
    """A phase in progress whose first agent was followed by so many others."""
    session = opened()
    for agent_id in ("first", *(f"helper-{number}" for number in range(helpers))):
        session = after(session, decide(session, RecordAgentStarted(phase="a", agent="somebody", agent_id=agent_id)))
    return session


def land(session, agent_id="first", **given):
    return decide(session, RecordAgentEnded(agent_id=agent_id, succeeded=True, **given))


def test_a_phase_remembers_only_its_latest_agents():
    ids = [one.agent_id for one in crowded().phases["a"].delegations]

    assert len(ids) == MAX_DELEGATIONS
    assert "first" not in ids


def test_the_report_of_an_agent_that_was_forgotten_is_kept_if_its_phase_is_named():
    session = crowded()

    events = land(session, report=REPORT, phase="a")

    assert events == (AgentEnded(phase="a", agent_id="first", succeeded=True, report=REPORT),)
    record_agent_ended = after(session, events)
    assert record_agent_ended.phases["a"].report == REPORT
    assert record_agent_ended.phases["a"].delegations == session.phases["a"].delegations


def test_of_an_agent_that_was_forgotten_and_names_no_phase_nothing_is_known():
    with pytest.raises(NotFound, match="no agent first is running"):
        land(crowded(), report=REPORT)


def test_an_agent_that_is_remembered_ends_the_same_way_with_its_phase_and_without():
    session = crowded(helpers=1)

    assert land(session, report=REPORT, phase="a") == land(session, report=REPORT)
    [first, helper] = after(session, land(session, phase="a")).phases["a"].delegations
    assert (first.succeeded, first.ended_at is None, helper.ended_at is None) == (True, False, True)


def test_an_agent_ends_in_the_phase_that_it_names_and_in_no_other():
    session = opened(workflow(PARALLEL))
    session = after(session, decide(session, Begin(phase="b")))
    for phase in ("a", "b"):
        session = after(session, decide(session, RecordAgentStarted(phase=phase, agent="somebody", agent_id="same")))

    record_agent_ended = after(session, land(session, "same", report=REPORT, phase="b"))

    assert (record_agent_ended.phases["a"].report, record_agent_ended.phases["b"].report) == (None, REPORT)
    assert [record_agent_ended.phases[key].delegations[0].ended_at is None for key in ("a", "b")] == [True, False]


@pytest.mark.parametrize("phase", ["b", "a"])
def test_only_in_a_phase_in_progress_an_agent_can_end(phase):
    session = opened()
    if phase == "a":
        session = after(session, decide(session, Finish(summary="done")))

    with pytest.raises(Refused, match=f"phase {phase} is .*, not in progress"):
        land(session, phase=phase)


def test_what_a_forgotten_agent_reports_is_checked_like_any_other():
    with pytest.raises(Invalid):
        land(crowded(), report=Report(artifacts=("/etc/passwd",)), phase="a")
