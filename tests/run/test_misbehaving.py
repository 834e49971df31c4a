"""Agents that misbehave, in real runs: each ends as it should, with the reason told, and nothing is left behind."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from detent.core.run.run_event import PhaseEnded, Retrying
from detent.core.session.session import SessionStatus
from detent.core.session.status import Status
from tests.support.run_process import DETENT, SESSION, TASK, ended

MAX_RSS_KB = 150 * 1024
#: A run that waits for something of its agent that never ends takes longer.
SOON_S = 20.0
ONE = '{ key = "a" }'
TWO = '{ key = "a" }, { key = "b", needs = ["a"] }'
SHORT = "timeout_minutes = 0.01"


def run(scene, *arguments):
    """A run that ends and leaves nothing behind."""
    ran = scene.run(*arguments)
    assert scene.alive() == []
    assert not scene.lease.exists()
    return ran


def failed_for_good(scene, *, attempts):
    """The error of a phase that a person has to decide about; nothing else is wrong."""
    ran = run(scene)
    assert (ran.exit_code, ran.errors) == (6, ""), ran
    session = scene.session()
    assert (session.phases["a"].status, session.phases["a"].attempt) == (Status.FAILED, attempts)
    (escalation,) = session.escalations
    assert escalation.phase == "a"
    assert session.phases["a"].error in escalation.detail
    assert "detent resolve retry a" in ran.output
    assert scene.findings() == []
    return session.phases["a"].error, escalation.kind


def completed(scene, *arguments):
    ran = run(scene, *arguments)
    assert ran.exit_code == 0, ran
    assert scene.session().status is SessionStatus.COMPLETED
    assert scene.findings() == []
    return ran


def result(**fields):
    return f"echo '{json.dumps(fields)}'"


# It does not end, or not well


def test_an_agent_that_hangs_is_ended_with_its_time_and_tried_again_until_a_person_decides(play):
    scene = play("echo begun; sleep 600", agent=SHORT, run="attempts = 2")

    assert failed_for_good(scene, attempts=2) == ("ended after 0.6 s", "agent_timeout")


def test_an_agent_that_talks_for_ever_is_ended_with_its_time(play):
    scene = play("yes", agent=SHORT, run="attempts = 1")

    assert failed_for_good(scene, attempts=1) == ("ended after 0.6 s", "agent_timeout")


def test_an_agent_that_ignores_being_asked_to_end_is_ended_all_the_same(play):
    scene = play("trap '' TERM INT HUP; while :; do sleep 0.2; done", agent=SHORT, run="attempts = 1")

    assert failed_for_good(scene, attempts=1) == ("ended after 0.6 s", "agent_timeout")


def test_an_agent_that_ends_with_an_error_failed_with_the_end_of_what_it_said_about_it(play):
    scene = play("echo much >&2; echo the reason >&2; exit 1", run="attempts = 2")

    error, kind = failed_for_good(scene, attempts=2)

    assert (error, kind) == ("the command ended with exit code 1: much\nthe reason", "agent_error")


@pytest.mark.parametrize(
    ("script", "wrong"),
    [
        ("head -c 100000 /dev/urandom", "no line of its output is a JSON object"),
        ("echo '{\"summary\": 7}'", "Expected `str`, got `int` - at `$.summary`"),
        ("true", "no line of its output is a JSON object"),
    ],
)
def test_a_result_that_cannot_be_understood_is_a_failure_that_says_what_is_wrong(script, wrong, play):
    scene = play(script, agent='result = "json"', run="attempts = 1")

    error, kind = failed_for_good(scene, attempts=1)

    assert wrong in error
    assert kind == "agent_error"


def test_a_passing_failure_is_tried_again_with_growing_pauses_in_the_same_attempt(play):
    script = f"""
        echo >> ../tries
        [ $(wc -l < ../tries) -gt 2 ] && {{ {result(summary="at last")}; exit; }}
        {result(status="transient", error="busy")}
    """
    scene = play(script, agent='result = "json"\nbackoff_s = 0.1', run="attempts = 1")

    completed(scene)

    state = scene.session().phases["a"]
    assert (state.attempt, state.summary, len(state.delegations)) == (1, "at last", 1)
    tries = [event for event in scene.told() if isinstance(event, Retrying)]
    assert [(one.again, one.pause_s, one.reason) for one in tries] == [(1, 0.1, "busy"), (2, 0.2, "busy")]


def test_a_turn_that_was_never_answered_uses_up_no_attempt_and_a_person_decides(play):
    script = f"echo >> ../tries; {result(status='transient', error='busy')}"
    scene = play(script, agent='result = "json"\nbackoff_s = 0.01\nretries = 2', run="attempts = 2")

    assert scene.run("--no-wait").exit_code == 6
    session = scene.session()
    assert [(one.kind, one.detail) for one in session.escalations] == [("agent_transient", "busy")]
    assert (session.phases["a"].attempt, session.phases["a"].status) == (1, "in_progress")
    assert (scene.directory.parent / "tries").read_text().count("\n") == 2 * 3


def test_a_refusal_is_not_argued_with(play):
    script = f"echo >> ../tries; {result(status='refused', error='not that')}"
    scene = play(script, agent='result = "json"', run="attempts = 3")

    assert failed_for_good(scene, attempts=1) == ("not that", "agent_refused")
    assert (scene.directory.parent / "tries").read_text() == "\n"


# It leaves something running


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
print("Summary: left something behind", flush=True)
"""


@pytest.mark.parametrize("pipes", ["", "> /dev/null 2>&1 < /dev/null"], ids=["pipes held open", "pipes closed"])
def test_a_daemon_ends_with_the_turn_and_is_not_waited_for(pipes, play):
    scene = play(f"{sys.executable} -c '{DAEMON}' {pipes}; echo Summary: done")

    completed(scene)


def test_what_an_agent_that_was_killed_had_started_is_ended(play):
    scene = play("setsid sleep 600 & sleep 600 & kill -9 $$", run="attempts = 1")

    error, _ = failed_for_good(scene, attempts=1)

    assert error.startswith("the command was ended by signal 9")


# It says too much


LINES = f"yes {'x' * 99} | head -c 100000000"


@pytest.mark.parametrize(
    ("kind", "flood"),
    [
        ("text", LINES),
        ("text", "head -c 100000000 /dev/zero | tr '\\0' x"),
        ("text", f"{LINES} >&2"),
        ("json", LINES),
        ("json", f"yes '{json.dumps({'summary': 'x' * 90})}' | head -c 100000000"),
    ],
    ids=["many lines", "one line", "errors", "lines that are no results", "results"],
)
def test_100_mb_of_output_do_not_make_the_runner_grow(kind, flood, play):
    last = "echo Summary: much" if kind == "text" else result(summary="much")
    scene = play(f"{flood}; echo; {last}", agent=f'result = "{kind}"')
    runner = scene.start("run", TASK)

    peak = 0
    while runner.poll() is None:
        peak = max(peak, peak_kb(runner.pid))
        time.sleep(0.01)

    sys.stdout.write(f"the runner took {peak} kB\n")
    assert ended(runner).exit_code == 0
    assert 10_000 < peak < MAX_RSS_KB
    assert scene.session().phases["a"].summary == "much"
    assert scene.feed.stat().st_size < 1_000_000
    assert scene.alive() == []


def peak_kb(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


ESCAPES = ["\x1b]0;owned\x07", "\x1b[5m", "\x1b[2J", "\x9b31m", "\r", "\b", "\u202e"]


@pytest.mark.parametrize("how", ["lines", "live", "json"])
def test_nothing_that_an_agent_says_reaches_the_terminal_as_it_is(how, play, tmp_path):
    said = "".join(f"a{escape}b" for escape in ESCAPES)
    (tmp_path / "said").write_text(f"{said}\n{said * 60_000}\n" + json.dumps({"summary": said, "context": said}) + "\n")
    scene = play("cat ../said; sleep 0.3; cat ../said", TWO, agent='result = "json"')

    shown = at_a_terminal(scene, "run", TASK) if how == "live" else plain(scene, how)
    shown += at_a_terminal(scene, "status")

    assert "completed" in shown
    meant = [escape for escape in ESCAPES if how != "json" or escape < "\x20"]
    assert [escape for escape in meant if f"a{escape}b" in shown] == []
    assert max(map(len, shown.splitlines())) < 4_000
    assert scene.alive() == []


def plain(scene, how):
    ran = completed(scene, *(["--json"] if how == "json" else []))
    return ran.output + ran.errors


def at_a_terminal(scene, *arguments):
    """All that a terminal is given."""
    ours, theirs = pty.openpty()
    environment = {**scene.environment, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [DETENT, *arguments], cwd=scene.directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown, until = b"", time.monotonic() + SOON_S
    try:
        while time.monotonic() < until:
            if select.select([ours], [], [], 0.2)[0]:
                shown += os.read(ours, 65536)
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
        process.kill()
        process.wait()
    return shown.decode("utf-8", "replace")


# It touches what is not its own


def test_files_outside_the_project_are_neither_artifacts_nor_in_a_checkpoint(play, tmp_path):
    named = ["../outside", "in", "link", "/etc/hostname", "nowhere"]
    script = (
        f"echo sec''ret > ../outside; echo work > in; ln -s ../outside link; {result(summary='s', artifacts=named)}"
    )
    scene = play(script, agent='result = "json"')

    completed(scene)

    assert (tmp_path / "outside").read_text() == "secret\n"
    assert scene.session().phases["a"].artifacts == ("in",)
    (end,) = [event for event in scene.told() if isinstance(event, PhaseEnded)]
    left_out = [warning.split(" is outside")[0] for warning in end.warnings if "left out" in warning]
    assert left_out == ["../outside", "link", "/etc/hostname", "nowhere"]
    stored = [path.read_bytes() for path in Path(scene.state).rglob("*") if path.is_file()]
    assert not any(b"secret" in content for content in stored)


JOURNAL = f".workflow/{SESSION}/journal.jsonl"


@pytest.mark.parametrize(
    "tamper",
    [f"sed -i 1s/try/TRY/ {JOURNAL}", f"echo garbage >> {JOURNAL}", f"head -1 {JOURNAL} >> {JOURNAL}"],
    ids=["a line changed", "a line added", "a line repeated"],
)
def test_a_journal_that_an_agent_changed_stops_the_run_and_stays_as_it_is(tamper, play, tmp_path):
    # The run may notice it before the copy is made, and then ends the agent.
    scene = play(f"trap '' TERM; {tamper}; cp {JOURNAL} ../tampered; echo Summary: done", TWO, run="attempts = 1")

    ran = run(scene)

    assert ran.exit_code == 5, ran
    assert f"the journal of {SESSION}" in ran.errors
    assert scene.journal.read_bytes() == (tmp_path / "tampered").read_bytes()
    assert "is damaged" in scene.detent("doctor").output


def test_a_byte_changed_in_place_is_found_at_the_latest_when_the_run_ends(play, tmp_path):
    """What was read before is not read again while the run goes on; nothing that was recorded is lost either."""
    tamper = f"printf X | dd of={JOURNAL} bs=1 seek=90 conv=notrunc status=none"
    scene = play(f"{tamper}; cp {JOURNAL} ../tampered-$DETENT_PHASE; echo Summary: done", TWO)

    ran = run(scene)

    assert ran.exit_code == 5, ran
    assert f"line 1 of the journal of {SESSION} is damaged" in ran.errors
    assert scene.journal.read_bytes().startswith((tmp_path / "tampered-a").read_bytes())


def test_a_journal_that_an_agent_removed_stops_the_run(play):
    scene = play(f"rm {JOURNAL}; echo Summary: done", TWO)

    ran = run(scene)

    assert (ran.exit_code, f"the journal of {SESSION} is gone" in ran.errors) == (5, True)
    assert not scene.journal.exists()


def test_an_agent_that_deletes_the_files_of_its_directory_makes_the_next_one_fail(play):
    scene = play("rm -rf ./*; echo Summary: cleaned up", TWO, run="attempts = 1")

    ran = run(scene)

    session = scene.session()
    assert ran.exit_code == 6
    assert session.phases["a"].status is Status.COMPLETED
    assert "agent.sh: No such file" in session.phases["b"].error


# It does the runner's work


def test_an_agent_may_finish_its_phase_itself(play):
    scene = play('detent finish -m "$DETENT_PHASE by itself" && touch done-$DETENT_PHASE; sleep 0.2', TWO)

    completed(scene)

    assert [state.summary for state in scene.session().phases.values()] == ["a by itself", "b by itself"]
    assert scene.finished() == {"a": 1, "b": 1}
    assert {state.attempt for state in scene.session().phases.values()} == {1}


def test_a_run_publishes_what_an_agent_finished_and_was_ended_before_it_published(play):
    code = (
        "import detent, os; from detent.engine.project import Project; "
        "Project.touched = lambda *_, **__: os._exit(0); detent.open('.').session().finish('by itself')"
    )

    # By then the run has published what it committed itself.
    completed(play(f'sleep 1; {sys.executable} -c "{code}"; sleep 60'))


def test_an_agent_that_fails_its_phase_itself_is_tried_again_until_a_person_decides(play):
    scene = play("echo >> ../tries; detent fail -m 'cannot do it'", run="attempts = 2")

    error, _ = failed_for_good(scene, attempts=2)

    assert error == "cannot do it"
    assert (scene.directory.parent / "tries").read_text() == "\n\n"


OWN_RUN = "an agent of a run cannot start another run"


@pytest.mark.parametrize(
    ("command", "exit_code", "said"),
    [
        ("detent run", 1, OWN_RUN),
        ("detent run 'something else'", 1, OWN_RUN),
        ("env -u DETENT_PHASE detent run", 4, f"{SESSION} is being run by tester"),
        ("env -u DETENT_PHASE detent run 'something else'", 1, f"{SESSION} is active with another task"),
    ],
)
def test_an_agent_cannot_start_a_run(command, exit_code, said, play, tmp_path):
    scene = play(f"{command} > ../said 2>&1; echo $? > ../code; echo Summary: tried")

    completed(scene)

    assert (tmp_path / "code").read_text() == f"{exit_code}\n"
    assert said in (tmp_path / "said").read_text()
    with scene.project() as project:
        assert project.store.sessions() == [SESSION]
