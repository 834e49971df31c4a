"""`detent ask` and `detent reply`: an agent in one process, a person in another."""

import os
import signal
import subprocess
import time

import msgspec
import pytest

from detent.engine.project import open_project
from tests.support.command import DETENT
from tests.support.waiting import until

PHASE = "02-impact-analysis"


def questions(tool):
    return tool("reply", "--json").ok().json()["questions"]


def token(tool, phase=PHASE):
    phases = tool("status", "--json").ok().json()["phases"]
    return next(one["token"] for one in phases if one["phase"] == phase)


def as_agent(tool, phase=PHASE):
    """The environment that the runner gives to its agents."""
    session = tool("status", "--json").ok().json()["session"]
    return {"DETENT_SESSION": session, "DETENT_PHASE": phase, "DETENT_TOKEN": token(tool, phase)}


@pytest.fixture
def asking(session):
    """Starts `detent ask` beside the test, and waits until the question is open."""
    started = []

    def ask(*arguments, **environment):
        known = len(questions(session))
        process = subprocess.Popen(
            [DETENT, "ask", *arguments],
            cwd=session.directory,
            env=session.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert until(lambda: len(questions(session)) > known), process.communicate(timeout=5)
        return process

    yield ask
    for process in started:
        process.kill()
        process.communicate()


def test_the_answer_of_a_person_is_all_that_the_agent_reads(session, asking):
    agent = asking("Which database?", **as_agent(session))
    [question] = questions(session)

    told = session("reply", "use postgres").ok().out
    out, err = agent.communicate(timeout=60)

    assert (agent.returncode, out) == (0, "use postgres\n")
    assert f"detent reply {question['id']} ANSWER" in err
    assert told == f"answered {question['id']} of {PHASE}: use postgres\n"
    assert questions(session) == []


def test_for_machines_the_answer_is_an_object(session, asking):
    agent = asking("Which database?", "--json")
    [question] = questions(session)

    replied = session("reply", question["id"], "sqlite", "--json").ok().json()
    out, err = agent.communicate(timeout=60)

    assert (replied["question"], replied["phase"], replied["answer"]) == (question["id"], PHASE, "sqlite")
    assert msgspec.json.decode(out) == {
        "question": question["id"],
        "answer": "sqlite",
        "state": "answered",
        "notices": [],
    }
    assert (agent.returncode, err) == (0, "")


def test_unanswered_in_time_it_stays_open_and_the_exit_code_says_so(session):
    ran = session("ask", "Which database?", "--timeout", "0.3")

    [question] = questions(session)
    assert (ran.code, ran.out) == (6, "")
    assert ran.err.endswith(f"detent: {question['id']} is still open\n")

    ran = session("ask", "Which database?", "--timeout", "0", "--json")
    assert ran.code == 6
    assert ran.json() == {"question": question["id"], "answer": None, "state": "open", "notices": []}


@pytest.mark.parametrize("ending", [("fail", "-m", "gave up"), ("cancel", "-m", "not wanted")], ids=lambda it: it[0])
def test_a_question_whose_attempt_ended_is_waited_for_no_longer(session, asking, ending):
    agent = asking("Which database?", **as_agent(session))

    verb, _, reason = ending
    session(*(ending if verb == "fail" else ("cancel", "--reason", reason))).ok()
    out, err = agent.communicate(timeout=60)

    assert (agent.returncode, out) == (6, "")
    assert "was dropped: the attempt that asked it has ended" in err


def test_an_interrupted_wait_leaves_the_question_open_and_says_so(session, asking):
    agent = asking("Which database?")
    [question] = questions(session)

    agent.send_signal(signal.SIGINT)
    out, err = agent.communicate(timeout=60)

    assert (agent.returncode, out) == (130, "")
    assert f"{question['id']} is still open; asking the same question again waits for it" in err
    assert questions(session) == [question]


def test_the_same_question_asked_again_is_the_same_question(session, asking):
    """The shell of an agent may give up before the person has answered."""
    first = asking("Which database?", "--choice", "a", "--choice", "b")
    first.kill()
    first.communicate()
    [question] = questions(session)

    again = session("ask", "Which database?", "--choice", "a", "--choice", "b", "--no-wait").ok()

    assert again.out == f"{question['id']}\n"
    assert questions(session) == [question]
    other = session("ask", "Which database?", "--choice", "a", "--no-wait").ok().out
    assert other != again.out
    assert len(questions(session)) == 2


def test_who_asks_at_once_gets_an_id_of_its_own(session):
    running = [
        subprocess.Popen(
            [DETENT, "ask", f"Question {number}?", "--no-wait"],
            cwd=session.directory,
            env=session.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    names = [process.communicate(timeout=60)[0] for process in running]

    assert len(set(names)) == 4
    assert len({one["id"] for one in questions(session)}) == 4


CHOICES = ("--choice", "postgres", "--choice", "sqlite")


@pytest.mark.parametrize(("given", "answer"), [("sqlite", "sqlite"), ("2", "sqlite"), ("1", "postgres")])
def test_a_choice_can_be_given_by_its_number(session, given, answer):
    session("ask", "Which database?", *CHOICES, "--no-wait").ok()

    assert session("reply", given, "--json").ok().json()["answer"] == answer


@pytest.mark.parametrize("given", ["mysql", "0", "3", "-1"])
def test_what_is_none_of_the_choices_is_refused_and_changes_nothing(session, given):
    session("ask", "Which database?", *CHOICES, "--no-wait").ok()
    [question] = questions(session)

    code, message, _ = session("reply", "--", question["id"], given).error()

    assert (code, message.strip()) == (1, f"{given!r} is none of the choices: postgres, sqlite")
    assert questions(session) == [question]


def test_choices_that_are_numbers_mean_themselves(session):
    session("ask", "How many?", "--choice", "2", "--choice", "1", "--no-wait").ok()

    assert session("reply", "1", "--json").ok().json()["answer"] == "1"


def test_of_several_questions_one_has_to_be_named(session):
    first, second = (session("ask", text, "--no-wait").ok().out.strip() for text in ("One?", "Two?"))

    code, message, way_out = session("reply", "yes").error()
    assert (code, way_out) == (1, 'detent reply ID "ANSWER"')
    assert message == f"2 questions are open: {first}, {second}"

    session("reply", second.lower(), "yes").ok()

    assert [one["id"] for one in questions(session)] == [first]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("yes",), 1, "no question is open"),
        (("Q99", "yes"), 1, "no question Q99 is open; open are: none"),
        (("Q99", "yes", "please"), 2, "3 words were given; put the answer in quotes"),
    ],
)
def test_an_answer_to_nothing_is_refused(session, words, code, says):
    assert session("reply", *words).error()[:2] == (code, says)


def test_an_id_alone_is_no_answer(session):
    name = session("ask", "Which database?", "--no-wait").ok().out.strip()

    code, message, way_out = session("reply", name).error()

    assert (code, message, way_out) == (2, f"the answer to {name} is missing", f'detent reply {name} "ANSWER"')
    assert len(questions(session)) == 1


@pytest.mark.parametrize("shell", ["CLAUDECODE", "DETENT_PHASE"])
def test_an_agent_cannot_answer_itself_but_may_look(session, shell):
    session("ask", "Which database?", "--no-wait").ok()

    code, message, _ = session("reply", "postgres", **{shell: "1"}).error()

    assert (code, message) == (1, f"reply is a person's decision, and this is an agent's shell ({shell} is set)")
    assert "Which database?" in session("reply", **{shell: "1"}).ok().out
    assert len(questions(session)) == 1


def test_open_questions_are_listed_with_what_to_type(session):
    assert session("reply").ok().out == "no question is open\n"
    name = session("ask", "Which database?", *CHOICES, "--no-wait").ok().out.strip()

    listed = session("reply").ok().out

    assert listed == (
        f"  2 of 8 Impact analysis ({PHASE}): {name} asks: Which database?\n"
        f"      1. postgres\n      2. sqlite\n    detent reply {name} 1\n"
    )
    shown = session("status").ok().out
    assert shown.startswith(f"NEEDS YOU\n  2 of 8 Impact analysis ({PHASE}): {name} asks: Which database? (since")
    assert f"    1. postgres\n    2. sqlite\n    detent reply {name} 1\n" in shown
    assert f"detent reply {name} 1" in session("why").ok().out


def test_an_agent_asks_in_the_session_and_phase_that_it_was_started_for(session):
    """Whichever session is active meanwhile."""
    agent = as_agent(session)
    session("start", "fix", "Something urgent").ok()

    name = session("ask", "Which database?", "--no-wait", **agent).ok().out.strip()

    with open_project(session.directory) as opened:
        [question] = opened.session(agent["DETENT_SESSION"]).state.questions
        assert opened.session().state.questions == ()
    assert (question.id, question.phase) == (name, PHASE)


def test_an_agent_whose_attempt_is_over_cannot_ask(session):
    agent = as_agent(session)
    session("redo", PHASE).ok()

    code, message, _ = session("ask", "Which database?", **agent).error()

    assert (code, message) == (1, f"the attempt {agent['DETENT_TOKEN']} is over, so its question would not be used")
    assert questions(session) == []


def test_a_session_that_the_environment_invents_is_not_looked_for(session):
    name = session("ask", "Which?", "--no-wait", DETENT_SESSION="WFS-nowhere").ok().out.strip()

    assert [one["id"] for one in questions(session)] == [name]


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the time of a process is read from /proc")
def test_waiting_costs_next_to_nothing(session, asking):
    agent = asking("Which database?")
    time.sleep(0.5)
    before = _cpu_ticks(agent.pid)
    time.sleep(2)

    assert _cpu_ticks(agent.pid) - before < 30


def _cpu_ticks(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
