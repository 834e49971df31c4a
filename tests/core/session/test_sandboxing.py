"""Whether the agents of a session were in a sandbox, in words."""

import pytest

from detent.core.session.sandboxing import sandbox_text


@pytest.mark.parametrize(
    ("launched", "text"),
    [
        ([], None),
        ([("agent-of-a-hook", True)], None),
        ([("run-1/x/1", True), ("run-1/x/2", True)], "on"),
        ([("run-1/x/1", False)], "off"),
        ([("run-1/x/1", False), ("run-2/x/1", True), ("other", False)], "on for 1 of 2 turns"),
    ],
)
def test_the_sandbox_is_told_from_the_agents_of_runs(launched, text):
    assert sandbox_text(launched) == text
