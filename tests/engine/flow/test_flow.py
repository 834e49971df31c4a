"""The steps of a task as they really run: in bash, in a project, with the claim on the task."""

import os
import signal
import threading
from pathlib import Path

import msgspec
import pytest

from detent.core.flow.progress import Abort, Retry, SetValue, Skip, StepState
from detent.core.task.document import new_document
from detent.core.task.row import TaskStatus
from detent.engine.flow import steps as flow_steps
from detent.engine.flow.flow import Flow
from detent.engine.flow.record import Ended, Mask
from detent.errors import Corrupt, Invalid, Refused
from tests.support.hostile import VALUES
from tests.support.task_documents import step
from tests.support.waiting import is_running, until

SEED = msgspec.json.decode((Path(__file__).parents[2] / "core/flow/seed.json").read_bytes())
STUB = '#!/bin/bash\nprintf "%s\\0" "${0##*/}" "$@" END >> "$RECORD"\nprintf "said by %s\\n" "${0##*/}"\n'


def task(*steps, approach="work"):
    document = new_document("IMPL-1", "Try it", focus_paths=["src/a", "src/b c"])
    document["flow_control"] |= {"pre_analysis": list(steps), "implementation_approach": approach}
    return document


class Stage:
    def __init__(self, project, base: Path) -> None:
        self.project, self.base = project, base
        self.handle = project.start("feature", "Try the steps")
        self.tasks = self.handle.tasks

    @property
    def flow(self) -> Flow:
        return Flow(self.project, self.handle)

    def run(self, *steps, **more):
        self.write(*steps, **{key: more.pop(key) for key in ("approach",) if key in more})
        return self.flow.run("IMPL-1", **more)

    def write(self, *steps, new=True, **more) -> None:
        self.tasks.write([task(*steps, **more)], new=new)

    @property
    def status(self) -> TaskStatus:
        return self.tasks.row("IMPL-1").status

    @property
    def folder(self) -> Path:
        return Path(self.project.place.state, self.handle.id, ".process/flow")

    def lines(self, name: str) -> list[str]:
        path = self.base / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def stage(project, tmp_path) -> Stage:
    return Stage(project, tmp_path)


@pytest.fixture
def stubs(tmp_path, monkeypatch) -> Path:
    """Stand-ins for the commands of the seed that write down what they are called with."""
    places = [tmp_path / "bin" / name for name in ("cat", "gemini", "codex")]
    for path in (*places, tmp_path / "home/.claude/scripts/gemini-wrapper"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STUB)
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RECORD", str(tmp_path / "record"))
    return tmp_path / "record"


def calls(record: Path) -> list[list[str]]:
    found = record.read_bytes().decode().split("\0END\0")
    return [call.split("\0") for call in found if call]


# The seed's own examples


def seed_task(stage, **changes):
    """The task of the seed with the tasks that it builds on, of which the first is done."""
    parent = new_document("IMPL-1", "Authentication") | {"status": "container"}
    document = SEED["task"] | {"status": "pending", "meta": {"type": "feature", "agent": "code-developer"}} | changes
    stage.tasks.write([parent, new_document("IMPL-1.1", "Design"), document])
    stage.tasks.start("IMPL-1.1")
    stage.tasks.done("IMPL-1.1", "Tokens are signed; it's decided")


def test_the_task_of_the_seed_runs(stage, stubs):
    seed_task(stage)

    outcome = stage.flow.run("IMPL-1.2")

    assert outcome.ended is Ended.FINISHED
    assert calls(stubs) == [
        ["cat", ".workflow/*/summaries/IMPL-1.1-summary.md"],
        [
            "gemini-wrapper",
            "-p",
            "@{src/auth/**/*} analyze authentication patterns using context: said by cat",
        ],
        [
            "codex",
            "--full-auto",
            "exec",
            "Implement JWT using analysis: said by gemini-wrapper and dependency context: said by cat",
        ],
    ]
    flow = outcome.context["flow"]
    assert "Apply JWT with refresh tokens across" in flow["implementation_approach"]["task_description"]
    assert "parent task IMPL-1 for" in flow["implementation_approach"]["task_description"]
    assert flow["target_files"][0] == "src/auth/login.ts:handleLogin:75-120"
    assert outcome.context["dependency_summaries"]["IMPL-1.1"].startswith("Tokens are signed")


def test_the_flow_control_of_the_seed_runs(stage, stubs):
    flow_control = SEED["flow_control"] | {"target_files": ["src/auth/login.ts"]}
    seed_task(stage, flow_control=flow_control)

    outcome = stage.flow.run("IMPL-1.2")

    assert outcome.ended is Ended.FINISHED
    listed = "src/auth,tests/auth,config/auth.json"
    assert calls(stubs) == [
        ["cat", ".summaries/IMPL-1.1-summary.md"],
        ["gemini", "-p", f"@{{{listed}}} analyze current patterns using context: said by cat"],
        [
            "codex",
            "--full-auto",
            "exec",
            "Implement based on: said by gemini with dependency context: said by cat",
        ],
    ]
    points = outcome.context["flow"]["implementation_approach"]["modification_points"]
    assert points[0].startswith("Update target files in src/auth, tests/auth")


# Strategies and criteria


def test_all_steps_pass_and_the_task_stays_with_whoever_does_the_work(stage):
    outcome = stage.run(step("one", "echo 1"))

    assert outcome.ended is Ended.FINISHED
    assert stage.status is TaskStatus.ACTIVE
    claim = stage.handle.state.claims["IMPL-1"]
    assert (claim.fence, claim.pid) == (outcome.claim, None)  # the process may end, and the task is still held
    assert stage.tasks.row("IMPL-1").attempts == 1
    stage.tasks.done("IMPL-1", "Done", fence=outcome.claim)


def test_a_step_that_fails_fails_the_task_and_nothing_runs_after_it(stage):
    outcome = stage.run(step("bad", "echo no >&2; exit 3"), step("later", "touch LATER"))

    assert outcome.ended is Ended.FAILED
    assert outcome.reason == "the exit code is 3, not 0; no"
    assert stage.status is TaskStatus.FAILED
    assert stage.tasks.row("IMPL-1").reason == "step 'bad': the exit code is 3, not 0; no"
    assert not (stage.base / "LATER").exists()


def test_a_failed_step_can_be_resumed_once_its_cause_is_gone(stage):
    stage.run(step("first", "echo x >> FIRST"), step("needs", "ls THERE"))
    (stage.base / "THERE").touch()

    assert stage.flow.resume("IMPL-1").ended is Ended.FINISHED
    assert stage.lines("FIRST") == ["x"]
    assert stage.status is TaskStatus.ACTIVE


def test_an_optional_step_is_skipped_and_its_output_is_empty(stage):
    outcome = stage.run(
        step("maybe", "echo partial; false", output_to="found", on_error="skip_optional"),
        step("next", "printf '<%s>' '[found]'; wc -c < [found.file]", output_to="seen"),
    )

    assert outcome.run.of("maybe").state is StepState.SKIPPED
    assert outcome.context["flow"]["outputs"] == {"found": "", "seen": "<>0"}


@pytest.mark.parametrize(("good_at", "ended", "tries"), [(1, "finished", 1), (2, "finished", 2), (3, "failed", 2)])
def test_a_step_is_retried_exactly_once(stage, good_at, ended, tries):
    command = f'echo x >> TRIES; [ "$(wc -l < TRIES)" -ge {good_at} ]'

    outcome = stage.run(step("flaky", command, on_error="retry_once"))

    assert outcome.ended == ended
    assert len(stage.lines("TRIES")) == tries
    assert stage.status == (TaskStatus.ACTIVE if ended == "finished" else TaskStatus.FAILED)


@pytest.fixture
def waiting(stage) -> Stage:
    """At a step that waits for a person, with one step before and one behind it."""
    outcome = stage.run(
        step("first", "echo x >> FIRST; echo hello", output_to="greeting"),
        step("ask", "echo x >> ASKED; ls THERE", output_to="answer", on_error="manual_intervention"),
        step("last", "printf '%s|%s' '[greeting]' [answer] > LAST"),
    )
    assert outcome.ended is Ended.WAITING
    assert (outcome.step, stage.status) == ("ask", TaskStatus.BLOCKED)
    assert "step 'ask'" in stage.tasks.row("IMPL-1").reason
    assert stage.handle.state.status == "active"
    return stage


def test_a_waiting_step_needs_a_decision(waiting):
    with pytest.raises(Refused, match="waits for a person"):
        waiting.flow.resume("IMPL-1")

    assert waiting.status is TaskStatus.BLOCKED


def test_skip(waiting):
    assert waiting.flow.resume("IMPL-1", decision=Skip()).ended is Ended.FINISHED
    assert (waiting.lines("FIRST"), waiting.lines("LAST")) == (["x"], ["hello|"])


def test_retry(waiting):
    assert waiting.flow.resume("IMPL-1", decision=Retry()).ended is Ended.WAITING
    (waiting.base / "THERE").touch()

    assert waiting.flow.resume("IMPL-1", decision=Retry()).ended is Ended.FINISHED
    assert waiting.lines("ASKED") == ["x"] * 3
    assert waiting.lines("LAST") == ["hello|THERE"]


@pytest.mark.parametrize("value", ["forty two", "", "$(touch CANARY)\n\n", "é'\"`"])
def test_set_a_value(waiting, value):
    assert waiting.flow.resume("IMPL-1", decision=SetValue(value)).ended is Ended.FINISHED
    assert (waiting.base / "LAST").read_text() == f"hello|{value}"
    assert not (waiting.base / "CANARY").exists()


def test_abort(waiting):
    assert waiting.flow.resume("IMPL-1", decision=Abort()).ended is Ended.FAILED
    assert waiting.status is TaskStatus.FAILED
    assert waiting.lines("LAST") == []


def test_a_decision_where_nothing_waits_is_refused(stage):
    stage.run(step("one", "false"))

    with pytest.raises(Refused, match="waits for a decision"):
        stage.flow.resume("IMPL-1", decision=Skip())


@pytest.mark.parametrize(
    ("command", "criteria", "passes"),
    [
        ("exit 3", "exit_code:3", True),
        ("exit 3", "exit_code:!=3", False),
        ("echo all good", ["exit_code:0", "contains:good"], True),
        ("echo all good", "not_contains:good", False),
        ("echo version 12", r"matches:version \d+", True),
        ("true", "non_empty", False),
        ("touch MADE", "file_exists:MADE", True),
        ("true", "file_exists:MADE", False),
    ],
)
def test_criteria(stage, command, criteria, passes):
    assert (stage.run(step("one", command, success_criteria=criteria)).ended is Ended.FINISHED) == passes


def test_a_value_that_is_not_there_fails_its_step_before_it_starts(stage):
    outcome = stage.run(step("one", "touch RAN; echo [shared_context.nope]", on_error="skip_optional"))

    assert outcome.run.of("one").reason.startswith("[shared_context.nope] cannot be put into the command")
    assert not (stage.base / "RAN").exists()


def test_what_can_never_run_is_refused_before_anything_does(stage):
    stage.write(step("one", "touch RAN"), approach="as in [shared_context.nope]")

    with pytest.raises(Invalid, match=r"implementation approach of IMPL-1 cannot be read: \[shared_context.nope\]"):
        stage.flow.run("IMPL-1")
    assert stage.status is TaskStatus.PENDING
    assert not (stage.base / "RAN").exists()


# How a command is run


def test_where_and_with_what_a_command_runs(stage):
    outcome = stage.run(
        step("here", "pwd -P; readlink /proc/self/fd/0; shopt -q login_shell || echo plain", output_to="here"),
        step("there", "pwd -P", output_to="there", cwd="session"),
        step("env", "printf '%s|' ${focus_paths} $task_id $session_id", output_to="env"),
    )

    outputs = outcome.context["flow"]["outputs"]
    assert outputs["here"].split("\n") == [os.path.realpath(stage.base), "/dev/null", "plain"]
    assert outputs["there"] == os.path.join(os.path.realpath(stage.project.place.state), stage.handle.id)
    assert outputs["env"] == f"src/a|src/b|c|IMPL-1|{stage.handle.id}|"


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("for dep in IMPL-9; do cat .summaries/$dep-summary.md 2>/dev/null; done; pwd -P", "session"),
        ("cat './.task/IMPL-1.json' >/dev/null; pwd -P", "session"),
        ("ls src/.summaries/ 2>/dev/null; pwd -P", "project"),
        ("ls .workflow/ >/dev/null; pwd -P", "project"),
    ],
)
def test_a_command_that_names_a_folder_of_the_session_runs_there(stage, command, where):
    outcome = stage.run(step("where", command, output_to="where"))

    session = os.path.join(os.path.realpath(stage.project.place.state), stage.handle.id)
    wanted = session if where == "session" else os.path.realpath(stage.base)
    assert outcome.context["flow"]["outputs"]["where"] == wanted


def test_a_folder_of_the_project_comes_before_one_of_the_session(stage):
    (stage.base / ".summaries").mkdir()

    outcome = stage.run(step("where", "ls .summaries/; pwd -P", output_to="where"))

    assert outcome.context["flow"]["outputs"]["where"] == os.path.realpath(stage.base)


def test_errors_are_kept_apart_from_the_output(stage):
    stage.run(step("one", "echo out; echo err >&2", output_to="x"))

    assert (stage.folder / "IMPL-1/01-one.out").read_bytes() == b"out\n"
    assert (stage.folder / "IMPL-1/01-one.err").read_bytes() == b"err\n"


def test_an_output_loses_its_last_newline_and_its_nul_bytes_only(stage):
    stage.run(step("one", r"printf ' a\0b\n\n'", output_to="x"), step("two", "printf '%s' [x] > SEEN"))

    assert (stage.base / "SEEN").read_bytes() == b" ab\n"


def test_time_is_up_for_the_whole_group(stage):
    command = "sleep 300 & echo $! > PID; (trap '' TERM; sleep 300) & echo $! >> PID; wait"

    outcome = stage.run(step("slow", command, timeout=0.5))

    assert outcome.ended is Ended.FAILED
    assert outcome.reason.startswith("ended after 0.5 s")
    pids = [int(line) for line in stage.lines("PID")]
    assert len(pids) == 2
    assert until(lambda: not any(map(is_running, pids)))


def test_a_hundred_megabytes_are_bounded(stage):
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    outcome = stage.run(
        step("much", "head -c 100000000 /dev/zero | tr '\\0' 'y'", output_to="much"),
        step("use", "printf '%s' [much] | tail -c 200 > TAIL; wc -c < [much.file]", output_to="size"),
    )

    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mib < 150
    assert outcome.ended is Ended.FINISHED
    size = int(outcome.context["flow"]["outputs"]["size"])
    assert 10 << 20 < size < (10 << 20) + 100
    assert b"more bytes were left out" in (stage.folder / "IMPL-1/01-much.out").read_bytes()[-100:]
    assert "this is the beginning of" in (stage.base / "TAIL").read_text()
    assert len(outcome.context["flow"]["outputs"]["much"]) <= 96 * 1024


def test_an_output_too_long_for_a_variable_is_whole_in_its_file_and_cut_between_characters(stage):
    (stage.base / "LONG").write_text("é" * 100_000)

    stage.run(step("long", "cat LONG", output_to="long"), step("use", "printf '%s' [long] > CUT; cp [long.file] WHOLE"))

    assert (stage.base / "WHOLE").read_text() == "é" * 100_000
    assert set((stage.base / "CUT").read_text().partition("\n")[0]) == {"é"}


HOSTILE = [
    "quotes and a command",
    "substitution",
    "backquotes",
    "newline command",
    "single quote break",
    "our own variable",
    "trailing newlines",
]


def test_hostile_outputs_go_from_step_to_step_byte_for_byte(stage):
    values = [VALUES[name].encode() for name in HOSTILE] + [b"\xff\xfe\x80 not UTF-8 $(touch CANARY)\xc3", b"-n", b""]
    steps = []
    for at, value in enumerate(values):
        (stage.base / f"in{at}").write_bytes(value + b"\n")
        steps += [
            step(f"read{at}", f"cat in{at}", output_to=f"v{at}"),
            step(f"bare{at}", f"printf '%s' [v{at}] > bare{at}"),
            step(f"single{at}", f"printf '%s' '[v{at}]' > single{at}"),
            step(f"double{at}", f"printf '%s' \"[v{at}]\" > double{at}; cp [v{at}.file] file{at}"),
        ]

    outcome = stage.run(*steps)

    assert outcome.ended is Ended.FINISHED, outcome.reason
    for at, value in enumerate(values):
        for name in ("bare", "single", "double"):
            assert (stage.base / f"{name}{at}").read_bytes() == value, (name, value)
        assert (stage.base / f"file{at}").read_bytes() == value + b"\n"
    assert not list(stage.base.rglob("CANARY"))


# Going on


def test_finished_steps_are_not_run_again_and_their_outputs_are_there_byte_for_byte(stage):
    (stage.base / "in").write_bytes(b"\xffraw\n")
    stage.run(step("one", "echo x >> ONE; cat in", output_to="v"), step("two", "ls THERE && printf '%s' [v] > OUT"))
    (stage.base / "THERE").touch()
    (stage.base / "in").unlink()

    assert stage.flow.resume("IMPL-1").ended is Ended.FINISHED
    assert (stage.base / "OUT").read_bytes() == b"\xffraw"
    assert stage.lines("ONE") == ["x"]


def test_a_finished_step_that_changed_is_refused_unless_it_is_run_again(stage):
    stage.run(step("one", "echo x >> ONE"), step("two", "ls THERE"))
    (stage.base / "THERE").touch()
    stage.write(step("one", "echo y >> ONE"), step("two", "ls THERE"), new=False)

    with pytest.raises(Refused, match="has another command now"):
        stage.flow.resume("IMPL-1")
    assert stage.status is TaskStatus.FAILED

    assert stage.flow.resume("IMPL-1", rerun_from="one").ended is Ended.FINISHED
    assert stage.lines("ONE") == ["x", "y"]


def test_an_output_that_was_changed_on_disk_is_not_used(stage):
    stage.run(step("one", "echo x", output_to="v"), step("two", "ls THERE; echo [v]; false"))
    (stage.folder / "IMPL-1/01-one.out").write_text("y\n")

    with pytest.raises(Corrupt, match="the output of step 'one' of IMPL-1 has changed"):
        stage.flow.resume("IMPL-1")


def test_a_run_that_was_begun_is_not_begun_again(waiting):
    with pytest.raises(Refused, match="were started"):
        waiting.flow.run("IMPL-1")


def test_steps_that_never_ran_cannot_be_resumed(stage):
    stage.write(step("one", "true"))

    with pytest.raises(Refused, match="no step of IMPL-1 has run"):
        stage.flow.resume("IMPL-1")


def test_the_order_of_what_is_written(stage, monkeypatch):
    """A step is on record before it starts; nothing of a run needs what is only in memory."""
    seen, real = [], flow_steps.attempt

    def spy(given, step, values, **more):
        seen.append(stage.flow.show("IMPL-1").run.of(step.step).state)
        return real(given, step, values, **more)

    monkeypatch.setattr(flow_steps, "attempt", spy)
    stage.run(step("one", "true"), step("two", "true"))

    assert seen == [StepState.RUNNING, StepState.RUNNING]


# Claims


def test_a_task_that_somebody_holds_is_left_alone(stage):
    stage.write(step("one", "touch RAN"))
    claim = stage.tasks.start("IMPL-1", owner="somebody").fence

    with pytest.raises(Refused, match="held by somebody"):
        stage.flow.run("IMPL-1")
    with pytest.raises(Refused, match=f"held under claim {claim}; claim 999 does not hold it"):
        stage.flow.run("IMPL-1", claim=999)
    assert not (stage.base / "RAN").exists()

    assert stage.flow.run("IMPL-1", claim=claim).claim == claim


def test_a_claim_that_is_lost_stops_the_run(stage):
    class Thief:
        def begins(self, number, total, step):
            pass

        def watches(self, line):
            pass

        def ended(self, number, total, came):
            stage.tasks.release("IMPL-1")

    stage.write(step("one", "true"), step("two", "touch RAN"))

    with pytest.raises(Refused, match="was taken from this run"):
        stage.flow.run("IMPL-1", observer=Thief())
    assert not (stage.base / "RAN").exists()
    assert stage.flow.resume("IMPL-1").ended is Ended.FINISHED


def test_the_steps_of_a_task_are_run_by_one_at_a_time(stage):
    stage.write(step("one", "touch BEGUN; while [ ! -e GO ]; do sleep 0.02; done"))
    claim = stage.tasks.start("IMPL-1").fence
    other = threading.Thread(target=lambda: stage.flow.run("IMPL-1", claim=claim))
    other.start()
    assert until((stage.base / "BEGUN").exists)

    with pytest.raises(Refused, match="being run by process"):
        stage.flow.resume("IMPL-1", claim=claim)
    (stage.base / "GO").touch()
    other.join()

    assert stage.flow.show("IMPL-1").ended is Ended.FINISHED


def test_an_interruption_ends_the_group_and_gives_the_task_back(stage):
    class Impatient:
        def begins(self, number, total, step):
            pass

        def watches(self, line):
            if (stage.base / "PID").exists():
                raise KeyboardInterrupt

        def ended(self, number, total, came):
            pass

    stage.write(step("one", "echo 1"), step("slow", "sleep 300 & echo $! > NEW; mv NEW PID; wait"))

    with pytest.raises(KeyboardInterrupt):
        stage.flow.run("IMPL-1", observer=Impatient())

    assert until(lambda: not is_running(int(stage.lines("PID")[0])))
    assert stage.status is TaskStatus.PENDING
    shown = stage.flow.show("IMPL-1")
    assert (shown.running, shown.run.of("slow").state, shown.run.of("slow").reason) == (
        False,
        StepState.RUNNING,
        "interrupted",
    )


def test_the_holder_is_said_to_be_alive_while_a_step_runs(stage, monkeypatch):
    monkeypatch.setattr("detent.engine.flow.flow.BEAT_S", 0.05)
    beats = []
    monkeypatch.setattr(type(stage.tasks), "beat", lambda self, task, fence: beats.append((task, fence)))

    stage.run(step("one", "sleep 0.3"))

    assert beats
    assert {task for task, _ in beats} == {"IMPL-1"}


# Secrets


def test_secrets_are_in_nothing_that_is_written_or_shown(stage, monkeypatch):
    monkeypatch.setenv("DEPLOY_TOKEN", "hunter2-xyzzy")
    monkeypatch.setenv("MY_KEY_FILE_SECRET", "two words\nmore lines of it")
    lines = []

    class Lines:
        def begins(self, number, total, step):
            pass

        def watches(self, line):
            lines.append(line)

        def ended(self, number, total, came):
            lines.append(came.reason)

    command = 'echo "it is $DEPLOY_TOKEN, or $MY_KEY_FILE_SECRET"; echo "$DEPLOY_TOKEN" >&2; sleep 0.25'
    outcome = stage.run(
        step("say", command, output_to="said"),
        step(
            "pass", "printf '%s' '[said]' > PASSED; printf 'ghp_%s' 0123456789abcdefghijklmnopqrstuvwxyz", output_to="x"
        ),
        step("stop", "echo $DEPLOY_TOKEN >&2; false"),
        approach="with [said]",
        observer=Lines(),
    )

    stage.project.flush()
    assert outcome.ended is Ended.FAILED
    assert "hunter2-xyzzy" in (stage.base / "PASSED").read_text()  # what goes on to the next step is exact
    written = [path for path in Path(stage.project.place.state).rglob("*") if path.is_file()]
    assert len(written) > 5
    for secret in (b"hunter2-xyzzy", b"more lines of it", b"ghp_0123"):
        assert [path for path in written if secret in path.read_bytes()] == []
        assert secret not in msgspec.json.encode(outcome)
        assert secret.decode() not in "".join(lines)
    assert any("[redacted:environment]" in line for line in lines)

    again = stage.flow.resume("IMPL-1")
    assert "the output of step 'say' is stored without its secrets" in again.warnings[0]


def test_what_is_no_secret_of_the_environment():
    mask = Mask({"MAX_TOKENS": "4096", "USE_KEYS": "true", "KEYDIR": "/tmp", "KEY": "", "HOME": "/home/ada", "K": "x"})

    assert mask.text("4096 true /tmp /home/ada x") == "4096 true /tmp /home/ada x"


# Looking


def test_a_dry_run_runs_nothing_and_changes_nothing(stage, monkeypatch):
    monkeypatch.setenv("DEPLOY_TOKEN", "hunter2-xyzzy")
    stage.write(
        step("one", "touch RAN; echo hi", output_to="greeting"),
        step("two", "echo [greeting] '[focus_paths]' hunter2-xyzzy; for d in ${depends_on}; do :; done"),
        step("three", "echo [shared_context.nope]"),
    )
    before = stage.handle.state.version

    planned = stage.flow.run("IMPL-1", dry_run=True).planned

    assert stage.handle.state.version == before
    assert not stage.folder.exists()
    assert not (stage.base / "RAN").exists()
    assert planned[1].env == {"depends_on": "", "DETENT_V0": "<what one puts out>", "DETENT_V1": "src/a 'src/b c'"}
    assert "[redacted:environment]" in planned[1].command
    assert "shared_context has no 'nope'" in planned[2].problem


def test_a_task_without_steps_is_given_out_at_once(stage):
    outcome = stage.run()

    assert outcome.ended is Ended.FINISHED
    assert outcome.context["flow"]["implementation_approach"] == "work"
    assert stage.status is TaskStatus.ACTIVE


def test_a_killed_step_says_so(stage):
    assert stage.run(step("one", f"kill -{int(signal.SIGKILL)} $$")).reason == "the exit code is -9, not 0"
