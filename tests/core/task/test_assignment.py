import pytest

from detent.core.task.assignment import agent_for, type_for


@pytest.mark.parametrize(
    ("said", "agent"),
    [
        ({"explicit": "x", "title": "Test it"}, "x"),
        ({"title": "Plan the release", "type": "test"}, "planning-agent"),
        ({"title": "DESIGN: schema"}, "planning-agent"),
        ({"title": "Validate input"}, "code-review-test-agent"),
        ({"title": "Audit the logs"}, "review-agent"),
        ({"title": "Implement the test harness"}, "code-developer"),
        ({"title": "Fix review comments"}, "code-developer"),
        ({"title": "Latest planet contest", "type": "test"}, "code-review-test-agent"),
        ({"title": "Latest planet contest", "type": "docs"}, "code-developer"),
        ({"title": "Something", "explicit": " "}, "code-developer"),
        ({}, "code-developer"),
    ],
)
def test_what_was_said_goes_before_title_and_type(said, agent):
    assert agent_for(**said) == agent


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Fix login", "bugfix"),
        ("Refactor it", "refactor"),
        ("Test it", "test"),
        ("Update README", "docs"),
        ("Login", "feature"),
    ],
)
def test_the_kind_of_work_is_told_by_the_title(title, kind):
    assert type_for(title) == kind
