"""Any command as an agent: real processes, well behaved and not."""

import json
import resource
import sys
from typing import Any

import pytest

from detent.config.settings import AgentSettings
from detent.core.limits import MAX_ERROR, MAX_SAID, MAX_TOOL_INPUT
from detent.core.run.agent_event import Failed, Failure, Finished, Said, ToolUsed, Used
from detent.core.session.phase_state import Report, Tokens
from detent.errors import Invalid
from detent.process.conversation import MAX_LINE_BYTES
from detent.process.marked import marked
from detent.run.agents import make_agent
from tests.support.turns import AGENT_ID, command, turn, work

MARK = f"DETENT_AGENT={AGENT_ID}"
RESULT = {
    "summary": "built it",
    "artifacts": ["a.py"],
    "deliverables": ["a.py", "b.py"],
    "context": "mind the gap",
    "tokens": {"input": 10, "output": 2, "cost": 0.5},
    "tools": [{"tool": "Bash", "input": "make", "succeeded": False}],
    "more": "is passed over",
}
TOLD = [
    ToolUsed(tool="Bash", input="make", succeeded=False),
    Used(tokens=Tokens(input=10, output=2, cost=0.5)),
    Finished(
        report=Report(summary="built it", artifacts=("a.py",), deliverables=("a.py", "b.py"), context="mind the gap")
    ),
]


def said(events):
    return [event.text for event in events if isinstance(event, Said)]


def failure(events):
    *before, last = events
    assert isinstance(last, Failed)
    assert not any(isinstance(event, Finished | Failed) for event in before)
    return last


def test_the_wait_that_a_service_asks_for_reaches_the_run(tmp_path):
    result = json.dumps({"status": "transient", "summary": "busy", "retry_after_s": 7})

    assert failure(work(command(f"echo '{result}'", result="json"), turn(tmp_path))).retry_after_s == 7


# What goes in


def test_the_prompt_comes_on_the_input(tmp_path):
    events = work(command("cat"), turn(tmp_path, prompt="line one\nline two"))

    assert said(events) == ["line one", "line two"]
    assert events[-1] == Finished(report=Report(summary="line one", context="line one\nline two"))


def test_the_prompt_comes_as_a_file_and_then_not_on_the_input(tmp_path):
    events = work(command('cat "$DETENT_PROMPT"; wc -c', prompt="file"), turn(tmp_path, prompt="do this"))

    assert said(events) == ["do this0"]


def test_a_prompt_with_half_a_character_is_given_all_the_same(tmp_path):
    assert said(work(command("cat"), turn(tmp_path, prompt="a\ud83db"))) == ["a?b"]


def test_a_prompt_file_that_cannot_be_written_is_a_failure(tmp_path):
    (tmp_path / "file").touch()

    last = failure(work(command("true", prompt="file"), turn(tmp_path, scratch=str(tmp_path / "file/below"))))

    assert last == Failed(failure=Failure.ERROR, reason=f"could not write {tmp_path}/file: File exists")


def test_the_turn_has_the_last_word_about_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ONE", "runner")
    monkeypatch.setenv("TWO", "runner")
    monkeypatch.setenv("THREE", "runner")
    agent = command('echo "$ONE $TWO $THREE"', env={"TWO": "settings", "THREE": "settings"})

    assert said(work(agent, turn(tmp_path, env={"THREE": "turn"}))) == ["runner settings turn"]


def test_it_works_in_the_directory_of_the_turn_with_the_arguments_of_the_settings(tmp_path):
    agent = command('echo "$PWD $1"', args=("an argument",))

    assert said(work(agent, turn(tmp_path))) == [f"{tmp_path} an argument"]


def test_a_command_agent_without_a_command_is_invalid():
    with pytest.raises(Invalid, match="has no command"):
        make_agent(AgentSettings(adapter="command"))


# What comes out


def test_a_result_block_in_its_words_is_honoured(tmp_path):
    script = "echo working; echo 'Summary: all done'; echo 'Deliverables: a.py, b.py'; echo 'Context for next: none'"

    events = work(command(script), turn(tmp_path))

    assert events[-1] == Finished(report=Report(summary="all done", deliverables=("a.py", "b.py"), context="none"))


def test_the_last_json_object_of_its_output_is_the_result(tmp_path):
    script = f"echo hello; echo '{{\"summary\": \"not yet\"}}'; echo '{json.dumps(RESULT)}'; echo bye"

    events = work(command(script, result="json"), turn(tmp_path))

    assert said(events) == ["hello", "bye"]
    assert events[2:] == TOLD


def test_a_file_is_the_result(tmp_path):
    script = f"echo hello; echo '{json.dumps(RESULT, indent=1)}' > \"$DETENT_RESULT\""

    events = work(command(script, result="file"), turn(tmp_path))

    assert said(events) == ["hello"]
    assert events[1:] == TOLD


def test_a_result_file_of_an_earlier_try_does_not_count(tmp_path):
    given = turn(tmp_path)
    work(command('echo "{}" > "$DETENT_RESULT"', result="file"), given)

    last = failure(work(command("true", result="file"), given))

    assert (last.failure, "No such file" in last.reason) == (Failure.ERROR, True)


@pytest.mark.parametrize(
    ("status", "kind"),
    [("failed", Failure.ERROR), ("refused", Failure.REFUSED), ("transient", Failure.TRANSIENT)],
)
@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_status_says_how_it_failed_whatever_the_exit_code(tmp_path, status, kind, exit_code):
    result = json.dumps({"status": status, "error": "because"})

    events = work(command(f"echo '{result}'; exit {exit_code}", result="json"), turn(tmp_path))

    assert events == [Failed(failure=kind, reason="because")]


@pytest.mark.parametrize(
    ("printed", "wrong"),
    [
        ("no json at all", "no line of its output is a JSON object"),
        ("[1]", "no line of its output is a JSON object"),
        ('{"summary": "cut off', "no line of its output is a JSON object"),
        ('{"summary": 7}', "Expected `str`, got `int` - at `$.summary`"),
        ('{"status": "great"}', "Invalid enum value 'great' - at `$.status`"),
        ('{"artifacts": "a.py"}', "Expected `array`, got `str` - at `$.artifacts`"),
        ('{"tokens": {"input": -1}}', "at `$.tokens.input`"),
        ('{"tokens": {"input": 1e30}}', "at `$.tokens.input`"),
        ('{"tokens": {"input": 100000000000000000000000}}', "at `$.tokens.input`"),
        ('{"tools": [{"input": "x"}]}', "missing required field `tool` - at `$.tools[0]`"),
    ],
)
def test_a_result_that_is_missing_or_of_another_shape_is_a_failure_that_says_what_is_wrong(tmp_path, printed, wrong):
    last = failure(work(command(f"echo '{printed}'", result="json"), turn(tmp_path)))

    assert last.failure is Failure.ERROR
    assert wrong in last.reason


@pytest.mark.parametrize(
    ("script", "wrong"),
    [
        ("true", "No such file or directory"),
        ('mkfifo "$DETENT_RESULT"', "not a regular file"),
        ('mkdir "$DETENT_RESULT"', "not a regular file"),
        ('ln -s /dev/zero "$DETENT_RESULT"', "not a regular file"),
        ('echo garbage > "$DETENT_RESULT"', "has the wrong shape"),
        ('printf "\\xff\\xfe" > "$DETENT_RESULT"', "has the wrong shape"),
        (': > "$DETENT_RESULT"', "has the wrong shape"),
        ('truncate -s 1T "$DETENT_RESULT"', "has the wrong shape"),
    ],
)
def test_a_result_file_that_cannot_be_read_is_a_failure_that_says_what_is_wrong(tmp_path, script, wrong):
    last = failure(work(command(script, result="file"), turn(tmp_path, timeout_s=20)))

    assert last.failure is Failure.ERROR
    assert wrong in last.reason


# How it ends


@pytest.mark.parametrize("result", ["text", "json", "file"])
def test_an_exit_code_that_is_not_0_is_a_failure_with_the_end_of_the_error_output(tmp_path, result):
    script = "echo '{}'; echo '{}' > ${DETENT_RESULT:-/dev/null}; echo first >&2; echo the reason >&2; exit 3"

    last = failure(work(command(script, result=result), turn(tmp_path)))

    assert last.failure is Failure.ERROR
    assert last.reason == "the command ended with exit code 3: first\nthe reason"


def test_what_it_said_is_the_reason_where_it_wrote_no_errors(tmp_path):
    last = failure(work(command("echo 2 tests failed; exit 1"), turn(tmp_path)))

    assert last.reason == "the command ended with exit code 1: 2 tests failed"


def test_exit_code_75_asks_for_another_try(tmp_path):
    assert failure(work(command("exit 75"), turn(tmp_path))).failure is Failure.TRANSIENT


def test_words_about_passing_trouble_do_not_make_a_command_that_failed_worth_another_try(tmp_path):
    script = "echo 'the test of the rate limit failed with status 429' >&2; exit 1"

    assert failure(work(command(script), turn(tmp_path))).failure is Failure.ERROR


def test_a_command_that_ends_itself_is_a_failure(tmp_path):
    assert "was ended by signal 9" in failure(work(command("kill -9 $$"), turn(tmp_path))).reason


def test_a_directory_that_does_not_exist_is_a_failure(tmp_path):
    last = failure(work(command("true"), turn(tmp_path, cwd=str(tmp_path / "nowhere"))))

    assert (last.failure, "could not start" in last.reason) == (Failure.ERROR, True)


def test_a_command_that_hangs_ends_with_its_time(tmp_path):
    last = failure(work(command("echo begun; sleep 600"), turn(tmp_path, timeout_s=0.5)))

    assert last == Failed(failure=Failure.TIMEOUT, reason="ended after 0.5 s")
    assert marked(MARK) == []


def test_a_command_that_ignores_being_asked_to_end_is_ended_all_the_same(tmp_path):
    script = f"exec {sys.executable} -c 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)'"

    last = failure(work(command(script), turn(tmp_path, timeout_s=1.0)))

    assert last.failure is Failure.TIMEOUT
    assert marked(MARK) == []


def test_a_turn_is_stopped_from_outside(tmp_path):
    begun = tmp_path / "begun"

    last = failure(work(command(f"touch {begun}; sleep 600"), turn(tmp_path), begun.exists))

    assert last == Failed(failure=Failure.STOPPED, reason="stopped")
    assert marked(MARK) == []


def test_closing_the_stream_ends_the_process(tmp_path):
    events: Any = command("echo begun; setsid sleep 600 & sleep 600").work(turn(tmp_path), lambda: False)
    assert next(events) == Said(text="begun")
    assert marked(MARK)

    events.close()

    assert marked(MARK) == []


def test_a_daemon_does_not_outlive_the_turn(tmp_path):
    """It left the process group and the session, closed its pipes, and its parent is gone."""
    daemon = "setsid nohup sleep 600 > /dev/null 2>&1 < /dev/null & sleep 0.3; echo done"

    events = work(command(daemon), turn(tmp_path))

    assert isinstance(events[-1], Finished)
    assert marked(MARK) == []


def test_a_daemon_that_holds_the_output_open_does_not_hold_up_the_end(tmp_path):
    events = work(command("setsid sleep 600 & echo done"), turn(tmp_path))

    assert said(events) == ["done"]
    assert isinstance(events[-1], Finished)
    assert marked(MARK) == []


def test_processes_of_another_agent_are_left_alone(tmp_path):
    other = f"{AGENT_ID}0"
    beside: Any = command("echo begun; sleep 600").work(
        turn(tmp_path, agent_id=other, env={"DETENT_AGENT": other}), lambda: False
    )
    next(beside)

    work(command("true"), turn(tmp_path))

    assert marked(f"DETENT_AGENT={other}")
    beside.close()


def test_a_command_that_closes_its_output_and_goes_on_is_waited_for(tmp_path):
    script = f"echo begun; exec 1>&- 2>&-; sleep 0.7; touch {tmp_path}/done"

    events = work(command(script), turn(tmp_path))

    assert isinstance(events[-1], Finished)
    assert (tmp_path / "done").exists()


def test_a_huge_prompt_that_is_not_read_does_not_hold_up_anything(tmp_path):
    events = work(command("exec 0<&-; sleep 0.3; echo done"), turn(tmp_path, prompt="x" * 20_000_000))

    assert said(events) == ["done"]
    assert isinstance(events[-1], Finished)


def test_a_huge_prompt_is_read_whole_while_there_is_output(tmp_path):
    events = work(command("tee >(wc -c >&2) | tail -c 1; sleep 0.2"), turn(tmp_path, prompt="x" * 5_000_000))

    assert said(events) == ["x"]


# How much


def test_what_it_says_is_bounded(tmp_path):
    long = "x" * 20_000
    result = json.dumps({"status": "failed", "error": long, "tools": [{"tool": "T", "input": long}]})

    first, tool, last = work(command(f"echo {long}; echo '{result}'", result="json"), turn(tmp_path))

    # Longer than it is shown, so that a secret is redacted before it is cut.
    assert MAX_SAID < len(first.text) < 10 * MAX_SAID
    assert MAX_TOOL_INPUT < len(tool.input) < 10 * MAX_TOOL_INPUT
    assert MAX_ERROR < len(last.reason) < 10 * MAX_ERROR


def test_bytes_that_are_no_text_are_told_as_far_as_they_are(tmp_path):
    events = work(command(r"printf 'a\xff\xfeb\n\x00\nSummary: fine\n'"), turn(tmp_path))

    assert said(events)[0] == "a\ufffd\ufffdb"
    assert events[-1].report.summary == "fine"


@pytest.mark.parametrize("joined", ["tr x x", "tr -d '\\n'"], ids=["many lines", "one line"])
def test_100_mb_of_output_are_read_in_constant_memory(tmp_path, joined):
    script = f"yes {'x' * 99} | head -c 100000000 | {joined}; echo; echo Summary: much"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    last = None
    for event in command(script).work(turn(tmp_path, timeout_s=120), lambda: False):
        last = event

    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * (1 if sys.platform == "darwin" else 1024)
    assert last.report.summary == "much"
    assert grown < 6 * MAX_LINE_BYTES


@pytest.mark.parametrize("result", ["text", "json", "file"])
def test_of_a_flood_the_last_lines_are_shown_and_the_result_is_read(tmp_path, result):
    script = """seq 300000; echo '{"summary": "done"}' | tee -a ${DETENT_RESULT:-/dev/null}"""

    events = work(command(script, result=result), turn(tmp_path))

    assert len(said(events)) < 50_000
    assert "300000" in said(events)
    assert isinstance(events[-1], Finished)
    if result != "text":
        assert events[-1].report.summary == "done"
