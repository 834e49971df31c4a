"""The next commands of a session go on where its run was: on this machine, or on workers."""

import pytest

from detent.core.session.events import AgentLaunched
from detent.core.session.open_decision import ANYONE
from detent.core.session.status import Status
from detent.render.next_commands import go_on, next_commands
from tests.support.values import after, row, session_at


def worked_on(*agents: str):
    session = session_at({"a": Status.IN_PROGRESS}, graph=row("a", "b"))
    return after(session, [AgentLaunched(phase="a", agent="sh", agent_id=agent) for agent in agents])


@pytest.mark.parametrize(
    ("agents", "command"),
    [
        (["run-5f/a.1/sh"], "detent run"),
        (["run-5f-1-a/a.1/sh"], "detent run --on URL"),
        (["run-5f/a.1/sh", "run-5f-1-a/a.1/sh"], "detent run --on URL"),
        (["run-5f-1-a/a.1/sh", "run-5f/a.1/sh"], "detent run"),
    ],
)
def test_the_run_goes_on_where_the_last_agent_worked(agents, command):
    session = worked_on(*agents)
    assert next_commands(session, ANYONE)[0] == go_on(session) == command


def test_no_command_takes_the_files_of_this_checkout_for_the_work_of_workers():
    assert next_commands(worked_on("run-5f-1-a/a.1/sh"), ANYONE) == ["detent run --on URL"]
    assert next_commands(worked_on("run-5f/a.1/sh"), ANYONE) == ["detent run", 'detent finish a -m "SUMMARY"']
