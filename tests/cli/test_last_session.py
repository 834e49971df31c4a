"""The last session after its end, a part of a name, and the words that one types without having read anything."""

import pytest

from tests.support.stops import STOPS
from tests.support.typed_terminal import Terminal


@pytest.fixture
def ended(project):
    """A project with a session that has ended, and none that is active."""
    project("start", "feature", "Fix the typo").ok()
    project("complete", "--force").ok()
    return project


@pytest.mark.parametrize("verb", ["report", "log", "watch", "gates", "why"])
def test_after_the_end_it_is_about_the_last_session(ended, verb):
    ran = ended(verb, "--json").ok()

    assert "fix-the-typo" in ran.out.lower() or "completed" in ran.out


def test_after_the_end_gates_are_those_of_every_phase_that_was_worked_on(project):
    (project.directory / "detent.toml").write_text("")
    project("start", "fix", "Fix the typo").ok()
    project("skip", "02-tracing", "-m", "known").ok()
    project("begin").ok()
    project("complete", "--force").ok()

    assert list(project("gates", "--json").ok().json()["gates"]) == ["06-implementation"]
    shown = project("gates").ok().out
    assert shown.startswith("1 of 3 Implementation (06-implementation): 0 of 3 gates passed\n  PENDING tests: ")
    # Nothing can be done about them any more.
    assert "detent " not in shown


def test_the_last_session_is_the_one_in_which_something_happened_last(ended):
    ended("start", "feature", "Another thing").ok()
    ended("cancel", "--reason", "no").ok()

    assert ended("report", "--json").ok().json()["session"] == "WFS-another-thing"
    assert ended("report", "--json", "--session", "typo").ok().json()["session"] == "WFS-fix-the-typo"


@pytest.mark.parametrize("verb", ["status", "why", "gates", "log", "report", "escalations", "next"])
def test_a_part_of_the_name_is_enough(ended, verb):
    assert ended(verb, "--session", "typo", "--json").ok()


def test_a_part_that_fits_several_sessions_names_them(ended):
    ended("start", "feature", "Fix the other typo").ok()

    code, message, way_out = ended("status", "--session", "typo").error()

    assert code == 1
    assert "WFS-fix-the-other-typo" in message
    assert "WFS-fix-the-typo" in message
    assert "detent sessions" in way_out


def test_a_whole_name_wins_over_a_part(ended):
    ended("start", "feature", "Fix the typo again").ok()

    assert ended("status", "--session", "fix-the-typo", "--json").ok().json()["session"] == "WFS-fix-the-typo"


def test_status_says_how_a_paused_session_goes_on(project):
    project("start", "feature", "Fix the typo").ok()
    project("pause").ok()

    assert "go on        detent resume WFS-fix-the-typo\n" in project("status").ok().out
    assert project("status", "--json").ok().json()["next"][0] == "detent resume WFS-fix-the-typo"


def test_help_is_a_word_too(project):
    assert project("help").ok().out == project("--help").ok().out
    assert project("help", "gate", "run").ok().out == project("gate", "run", "--help").ok().out
    assert "did you mean approve?" in project("help", "aprove").error()[1]


def test_next_says_what_to_do_without_a_session(project):
    assert 'detent start WORKFLOW "TASK"' in project("next").ok().out


# Rollback


def checkpoints(tool):
    return [entry["name"] for entry in tool("checkpoint", "list", "--json").ok().json()]


def planned(tool, *words):
    return tool("rollback", *words, "--dry-run", "--json").ok().json()["plan"]["to"]["name"]


def test_a_phase_means_the_files_before_its_last_attempt(session):
    session("redo", "02-impact-analysis").ok()

    assert planned(session, "02-impact-analysis") == "PRE_02-impact-analysis_v2"
    assert planned(session, "01-requirements") == "PRE_01-requirements_v1"


def test_a_number_counts_back_from_the_last_checkpoint(session):
    names = checkpoints(session)

    assert [planned(session, f"-{back}") for back in (1, 2, 3)] == names[-1:-4:-1]
    code, message, way_out = session("rollback", "-99", "--dry-run").error()
    assert (code, way_out) == (1, "detent checkpoint list")
    assert f"has {len(names)} checkpoints" in message


def test_without_a_name_it_lists_and_asks(session):
    (session.directory / "new.txt").write_text("new")
    with Terminal(session.directory, session.environment, "rollback") as terminal:
        terminal.expect("PRE_01-requirements_v1", "POST_01-requirements_v1", "Enter for none > ")
        terminal.type("-2\n")
        terminal.expect("roll back to POST_01-requirements_v1", "[y/N]")
        terminal.type("y\n")
        terminal.expect("rolled back to POST_01-requirements_v1")
        assert terminal.process.wait(20) == 0


def test_enter_rolls_nothing_back(session):
    before = session.digest()
    with Terminal(session.directory, session.environment, "rollback") as terminal:
        terminal.expect("Enter for none > ")
        terminal.type("\n")
        terminal.expect("nothing was changed")
        assert terminal.process.wait(20) == 1

    assert session.digest() == before


def test_without_a_name_and_a_terminal_it_says_what_to_name(session):
    code, message, _ = session("rollback").error()

    assert code == 2
    assert "name a checkpoint, a phase, or -N" in message


def test_a_decision_of_a_paused_session_is_reached_by_a_part_of_its_name(detent):
    STOPS["escalation"][1].build(detent.directory)
    detent("pause").ok()

    assert detent("resolve", "retry", "work", "--session", "try").ok()
