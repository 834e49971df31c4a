"""`detent decide`: everything that waits for a person, one at a time, at a terminal."""

import signal

import pytest

from detent.engine.project import open_project
from tests.support.project import write
from tests.support.stops import STOPS
from tests.support.typed_terminal import Terminal

ASK = "Enter or q > "


@pytest.fixture
def deciding(detent):
    """Builds a situation, and starts `decide` at a terminal."""

    def start(name, *arguments):
        STOPS[name][1].build(detent.directory)
        return Terminal(detent.directory, detent.environment, "decide", *arguments)

    return start


def kinds(detent):
    return [entry["kind"] for entry in detent("decide", "--json").json()["needs"]]


def test_a_vote_is_shown_with_its_evidence_and_diff_and_taken_with_its_reason(detent):
    STOPS["vote"][1].build(detent.directory)
    write(detent.directory, "a.py", "A = 3\n")

    with Terminal(detent.directory, detent.environment, "decide") as terminal:
        shown = terminal.expect("1 of 1: vote", ASK)
        assert "1 of 2 work: gate approval is PENDING: 0 of 1 approvals" in shown
        assert "PENDING approval: 0 of 1 approvals" in shown
        assert "1 file changed since work began" in shown
        assert "-A = 1" in shown
        assert "+A = 3" in shown
        assert "1  detent approve work --gate approval -m WHY" in shown
        terminal.type("1\n")
        terminal.expect("why > ")
        terminal.type("it is fine\n")
        terminal.expect("nothing waits for you", "detent finish work")
        assert terminal.process.wait(20) == 0

    with open_project(detent.directory) as project:
        [vote] = project.session().state.phases["work"].gates["approval"].votes.values()
    assert (vote.approve, vote.reason) == (True, "it is fine")


def test_the_choices_of_a_question_are_its_answers(detent, deciding):
    with deciding("question with choices") as terminal:
        terminal.expect("1  the first", "2  the second", ASK)
        terminal.type("2\n")
        terminal.expect("answered", "the second", "nothing waits for you")

    assert kinds(detent) == []


def test_one_decision_after_the_other_and_what_is_passed_over_stays_open(detent, deciding):
    with deciding("two escalations") as terminal:
        terminal.expect("1 of 2", "a is stuck", ASK)
        terminal.type("\n")
        terminal.expect("2 of 2", "b is stuck", ASK)
        terminal.type("1\n")
        terminal.expect("1 decision still open", "detent decide")
        assert terminal.process.wait(20) == 6

    assert [entry["phase"] for entry in detent("decide", "--json").json()["needs"]] == ["a"]


def test_ctrl_c_leaves_what_is_open_as_it_was(detent, deciding):
    with deciding("escalation") as terminal:
        terminal.expect(ASK)
        before = detent.digest()
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(20) == 130

    assert detent.digest() == before
    assert kinds(detent) == ["escalation"]


def test_an_empty_reason_and_a_wrong_number_decide_nothing(detent, deciding):
    with deciding("vote") as terminal:
        terminal.expect(ASK)
        terminal.type("9\n")
        terminal.expect("'9' is none of 1 to 2", ASK)
        terminal.type("1\n")
        terminal.expect("why > ")
        terminal.type("\n")
        terminal.expect(ASK)
        terminal.type("q\n")
        terminal.expect("1 decision still open")

    assert kinds(detent) == ["vote"]


def test_cancelling_the_session_is_asked_again(detent, deciding):
    with deciding("escalation") as terminal:
        terminal.expect("3  detent resolve cancel work", ASK)
        terminal.type("3\n")
        terminal.expect("cancel WFS-try-it? [y/N]")
        terminal.type("n\n")
        terminal.expect(ASK)
        terminal.type("q\n")

    assert kinds(detent) == ["escalation"]


def test_a_refusal_is_shown_and_the_decision_can_be_taken_otherwise(detent, deciding):
    with deciding("closed gate") as terminal:
        terminal.expect("1  detent gate run check", ASK)
        detent("finish", "work", "-m", "x")
        detent("release", "work", "--reason", "elsewhere").ok()
        detent("finish", "work", "-m", "x").ok()
        terminal.type("1\n")
        terminal.expect("no phase is in progress", ASK)
        terminal.type("q\n")
        terminal.expect("nothing waits for you")


def test_without_a_terminal_it_lists_and_refuses_to_ask(detent):
    STOPS["escalation"][1].build(detent.directory)

    code, message, way_out = detent("decide").error()

    assert (code, message) == (2, "decide asks at a terminal, and there is none")
    assert "detent decide --json" in way_out
    assert detent("decide", "--json").code == 6
