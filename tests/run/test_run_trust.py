"""Nothing that an agent does, writes or says is taken for a person's word, and nothing secret of it is passed on."""

import signal
import subprocess
import time

import pytest

from detent.core.run.run_event import End, TurnStarted
from detent.core.session.events import PhaseSkipped, VoteCast
from detent.core.session.session import SessionStatus
from detent.core.task.document import new_document
from detent.engine.actor import agent_marks
from detent.run.people import apply_answer, needs
from tests.support.command import DETENT, Tool
from tests.support.project import build_project
from tests.support.run_process import SESSION
from tests.support.scripted_run import Cast, done, scenes
from tests.support.typed_terminal import Terminal

#: What a person could decide just then, tried by the process of the run.
TRIED = """
cd {directory}
try() {{ "$@" >> {said} 2>&1 && echo "carried out: $*" >> {said}; }}
try detent approve a --gate approval -m fine
try detent skip b --reason "not needed"
try detent gate answer --choice go --phase a
try detent complete --force
true
"""
CLOSED = '{kind = "elicitation", final = ["go"]}, {kind = "approval"}'
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
SECRET_PHASES = '"a", {key = "b", needs = ["a"]}, {key = "c", gates = [{kind = "command", command = "true"}]}'
SECRETS = (TOKEN, "AKIAABCDEFGHIJKLMNOP", "hunter2hunter2")


@pytest.fixture
def scene(tmp_path, monkeypatch):
    for name in agent_marks():
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "project").mkdir()
    with scenes(tmp_path / "project") as make:
        yield make


def deciding(directory, said):
    return TRIED.format(directory=directory, said=said)


def decided(handle):
    events = (event for commit in handle.log() for event in commit.events)
    return [event for event in events if isinstance(event, VoteCast | PhaseSkipped)]


# Decisions


def test_an_agent_cannot_leave_work_out_or_end_the_session_by_force(play, tmp_path):
    scene = play(deciding(".", "../said"), f'{{key = "a", gates = [{CLOSED}]}}, "b"')

    ran = scene.run()

    assert ran.exit_code == 6, ran
    assert (tmp_path / "said").read_text().count("is a person's decision") == 4
    assert "carried out" not in (tmp_path / "said").read_text()
    session = scene.session()
    assert session.status is SessionStatus.ACTIVE
    assert {key: str(state.status) for key, state in session.phases.items()} == {"a": "in_progress", "b": "pending"}
    assert scene.findings() == []


def test_what_a_gate_runs_is_not_a_person_even_if_an_agent_wrote_it(scene, tmp_path):
    here = scene(f'[{{key = "a", gates = [{{kind = "command", command = "bash ../check.sh"}}, {CLOSED}]}}, "b"]')

    def act(turn, stopping):
        (tmp_path / "check.sh").write_text(deciding(".", "../said"))
        yield done()

    assert here.run(Cast(act)) is End.WAITING

    assert (tmp_path / "said").read_text().count("is a person's decision") == 4
    assert decided(here.handle) == []
    assert here.statuses == {"a": "in_progress", "b": "pending"}


def test_what_a_step_of_a_task_runs_is_not_a_person_either(scene, tmp_path):
    here = scene("", more='gates = "off"', workflow="plan-implement-review")
    document = new_document("IMPL-1", "With a step")
    command = f"bash({DETENT} skip REVIEW --reason x > {tmp_path}/said 2>&1; true)"
    step = {"step": "look", "action": "look", "command": command}
    document["flow_control"] |= {"pre_analysis": [step], "implementation_approach": "work"}
    here.handle.tasks.write([document])

    assert here.run() is End.COMPLETED

    assert "skip is a person's decision" in (tmp_path / "said").read_text()
    assert here.is_completed("REVIEW")


def test_a_decision_settles_what_was_asked_and_nothing_else(scene):
    here = scene('[{key = "a", needs = []}, {key = "b", needs = []}, {key = "c", needs = ["a", "b"]}]')
    here.handle.begin("b")
    here.handle.escalate("stuck", "a", "a is stuck")
    here.handle.escalate("stuck", "b", "b is stuck")

    asked, other = needs(here.project, here.session, ())
    apply_answer(here.handle, asked, "skip not needed")

    assert (asked.phase, other.phase) == ("a", "b")
    assert here.statuses == {"a": "skipped", "b": "in_progress", "c": "pending"}
    assert here.escalations == [("stuck", "b")]
    assert [need.key for need in needs(here.project, here.session, ())] == [other.key]


# At the terminal

AT_TERMINAL = """
[agents.script]
adapter = "command"
command = "bash agent.sh"
[run]
agent = "script"
[workflows.w]
phases = [{key = "a", gates = [{kind = "approval"}]}, {key = "b", needs = ["a"], gates = [{kind = "approval"}]}]
"""


@pytest.fixture
def terminal_place(tmp_path):
    tool = Tool(tmp_path)
    build_project(tmp_path, AT_TERMINAL)
    return tool


def test_what_was_typed_before_a_question_was_asked_does_not_answer_it(terminal_place, tmp_path):
    (tmp_path / "agent.sh").write_text("touch up; sleep 1\n")

    with Terminal(tmp_path, terminal_place.environment, "run", "Do it", "--workflow", "w") as terminal:
        while not (tmp_path / "up").exists():
            time.sleep(0.02)
        terminal.type("y too early\n")
        terminal.expect("gate approval is PENDING", ") > ")
        terminal.type("y in time\n")
        terminal.expect("gate approval is PENDING", ") > ")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.ended() == 130

    votes = terminal_place("log", "--json").ok().out
    assert "in time" in votes
    assert "too early" not in votes


def test_an_agent_at_a_terminal_of_its_own_is_not_asked_what_a_person_decides(terminal_place, tmp_path):
    (tmp_path / "agent.sh").write_text("true\n")
    environment = {**terminal_place.environment, "CLAUDECODE": "1"}

    with Terminal(tmp_path, environment, "run", "Do it", "--workflow", "w") as terminal:
        terminal.expect("gate approval is PENDING")
        time.sleep(1.0)  # long enough for a prompt, which must not come
        terminal.type("y by an agent\n")
        time.sleep(0.6)
        terminal.process.send_signal(signal.SIGINT)
        terminal.ended()

    assert "by an agent" not in terminal_place("log", "--json").ok().out


# Secrets


def test_no_secret_of_an_answer_is_recorded_shown_or_told_to_the_next_agent(play, tmp_path):
    scene = play("cat >> ../prompts; cat ../answer", SECRET_PHASES)
    (tmp_path / "answer").write_text(
        f"Summary: used {TOKEN} for it\nContext for next: password={SECRETS[2]} {SECRETS[1]}\nDeliverables: {TOKEN}\n"
    )

    ran = scene.run("--json")

    assert ran.exit_code == 0, ran
    assert "for it" in ran.output
    recorded = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "answer"}
    assert len([path for path, data in recorded.items() if b"for it" in data]) > 4
    told = {"output": (ran.output + ran.errors).encode(), **{str(path): data for path, data in recorded.items()}}
    assert [(place, secret) for place, data in told.items() for secret in SECRETS if secret.encode() in data] == []


def test_no_secret_of_the_answer_about_a_task_is_recorded(scene, tmp_path):
    here = scene("", more='gates = "off"', workflow="plan-implement-review")
    here.handle.tasks.add("One")

    assert here.run(Cast(lambda turn, stopping: (done(f"with {TOKEN}", context=TOKEN, deliverables=(TOKEN,)),))) is (
        End.COMPLETED
    )
    here.project.flush()

    files = [path for path in (tmp_path / "project").rglob("*") if path.is_file()]
    assert [str(path) for path in files if TOKEN.encode() in path.read_bytes()] == []
    assert TOKEN not in repr(here.told)


OWN_ENDS = {
    "finish": 'detent finish -m "$S for it" --context "$S" --deliverable "$S"',
    "fail": 'detent fail -m "$S for it"',
    "ask": 'detent ask "$S for it" --timeout 0',
}


@pytest.mark.parametrize("verb", OWN_ENDS)
def test_no_secret_is_recorded_that_an_agent_says_to_detent_itself(play, tmp_path, verb):
    scene = play(f"S=$(cat ../secret); {OWN_ENDS[verb]}; echo $? > ../code", '"a"', run="attempts = 1")
    (tmp_path / "secret").write_text(TOKEN)

    scene.run()

    assert b"for it" in scene.journal.read_bytes()
    files = [path for path in (tmp_path / "project").rglob("*") if path.is_file()]
    assert [str(path) for path in files if TOKEN.encode() in path.read_bytes()] == []


# Turns


def test_turns_are_counted_whatever_the_agent_is_called(play, tmp_path):
    scene = play(
        "echo x >> ../turns; echo Summary: ok",
        '{key = "a", gates = [{kind = "command", command = "wc -l < ../turns; false"}]}',
        run="turns = 3",
    )
    settings = scene.directory / "detent.toml"
    settings.write_text(settings.read_text().replace("[agents.script]", '[agents."my/agent"]'))
    settings.write_text(settings.read_text().replace('agent = "script"', 'agent = "my/agent"'))

    assert scene.run().exit_code == 6

    assert (tmp_path / "turns").read_text() == "x\n" * 3
    assert [event.turn for event in scene.told() if isinstance(event, TurnStarted)] == [1, 2, 3]
    with scene.project() as project:
        [escalation] = project.session(SESSION).state.escalations
    assert escalation.kind == "gates_closed"


def test_agents_and_checks_start_with_a_second_copy_that_is_up_to_date(scene, tmp_path):
    compared = f"""cmp {tmp_path}/project/.workflow/WFS-t/journal.jsonl $(find $XDG_STATE_HOME/detent -path "*$(cat
{tmp_path}/project/.workflow/project-id)/journals/WFS-t.jsonl")""".replace("\n", " ")
    gated = f"""[{{key="a", gates=[{{kind="command", command='{compared}'}}]}}, "b"]"""
    codes = []

    def act(turn, stopping):
        codes.append(subprocess.run(["bash", "-c", compared], check=False).returncode)
        yield done()

    it = scene(gated)

    assert it.run(Cast(act), attempts=1, turns=1) is End.COMPLETED
    assert codes == [0, 0]
