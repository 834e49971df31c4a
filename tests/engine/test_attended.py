"""A person decides at a terminal: which ones count, what is recorded, and how a refusal reads."""

import os
import shutil
import subprocess
import sys

import pytest

from detent.core.actor import Assurance
from detent.core.gate.voted import Voted
from detent.core.session.events import VoteCast
from detent.engine.actor import IN_A_NAMESPACE
from detent.engine.project import open_project
from detent.errors import Refused
from tests.support.agent_shell import AgentShell, approvals
from tests.support.command import DETENT, Tool
from tests.support.gated import started
from tests.support.people import ANN, BOB, ME, acting, needs_people, roles
from tests.support.project import build_project
from tests.support.typed_terminal import Terminal
from tests.support.waiting import until

APPROVE = "detent approve -m fine"
ENVIRONMENT = {
    "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
    "USER": ME,
    "LC_ALL": "C.UTF-8",
    "COLUMNS": "120",
}


@pytest.fixture
def held(tmp_path):
    """A project whose first phase waits for an approval."""
    return AgentShell(tmp_path)


def at_terminal(place: AgentShell, command: str) -> int:
    with Terminal(place.root, ENVIRONMENT, "-c", f"{command}; exit $?", program="/bin/bash") as screen:
        return screen.ended()


def decision(place: AgentShell):
    [commit] = approvals(place.new_commits())
    return commit


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("bash", APPROVE),
        ("bash", f"echo | {APPROVE} >out 2>&1"),
        ("bash", f"bash -c '{APPROVE}; true'"),
        ("script", f"script -qec '{APPROVE}' /dev/null"),
        ("su", f"su root -c '{APPROVE}'"),
        ("node", f"node -e \"require('child_process').execSync('{APPROVE}')\""),
    ],
    ids=["a shell", "pipes", "a shell in a shell", "script", "another user's shell", "a terminal of an editor"],
)
def test_a_person_at_a_terminal_decides(held, program, command):
    if not shutil.which(program) or (program == "su" and os.getuid() != 0):
        pytest.skip(f"{program} cannot be used here")

    assert at_terminal(held, command) == 0

    proof = decision(held).actor.proof
    assert (proof.assurance, proof.method, proof.identity) == (Assurance.ATTENDED, "tty", ME)
    assert proof.statement.startswith("terminal /dev/")
    assert "; detent < " in proof.statement
    assert (f"{program} < " in proof.statement) or program in proof.statement


@needs_people
@pytest.mark.skipif(not shutil.which("unshare"), reason="unshare is not installed")
@pytest.mark.parametrize("uid", [1, 1000, 4711])
def test_a_user_namespace_gives_nobody_another_vote(held, uid):
    """A process that makes one can be any account in it, so all of them are one identity."""
    assert at_terminal(held, f"unshare --map-user={uid} {APPROVE}") == 0

    commit = decision(held)
    assert commit.author == IN_A_NAMESPACE
    assert commit.events[0].approver == IN_A_NAMESPACE


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
@pytest.mark.parametrize("mark", ["", "CLAUDECODE"])
def test_a_window_of_tmux_is_that_of_whoever_started_the_server(held, mark):
    """The server stays when the shell that started it is gone, and keeps the environment that it was started with."""
    name = f"{held.root.name}{mark}"
    command = ["tmux", "-L", name, "new-session", "-d", f"{APPROVE} >said 2>&1; touch over; tmux -L {name} kill-server"]

    subprocess.run(command, cwd=held.root, env=ENVIRONMENT | ({mark: "1"} if mark else {}), check=True)
    subprocess.run(["tmux", "-L", name, "send-keys", "y", "Enter"], check=False)

    assert until((held.root / "over").exists)
    said = (held.root / "said").read_text()
    assert len(approvals(held.new_commits())) == (0 if mark else 1), said
    if mark:
        assert "an agent's shell (CLAUDECODE is set)" in said


def test_a_mark_above_is_named_with_its_process_and_the_way_out(held):
    said = held.run(f'env -i PATH="$PATH" {APPROVE}; true', mark="CODEX_THREAD_ID").stderr

    assert "approve is a person's decision, and this is an agent's shell (CODEX_THREAD_ID is set in process" in said
    assert "(bash) above it)" in said
    assert "try: type it in a fresh terminal, one that no agent started" in said


def test_without_a_terminal_nobody_decides(held):
    ran = subprocess.run(
        [DETENT, "approve", "-m", "fine"],
        cwd=held.root,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )

    assert "approve is a person's decision, and this process has no terminal (/dev/tty cannot be opened)" in ran.stderr
    assert (
        "try: type it in a terminal of your own; without one, an SSH key of an approver can sign it: --sign"
        in ran.stderr
    )
    assert held.new_commits() == []


def test_a_process_that_outlived_the_agent_is_judged_by_what_works_at_its_terminal(held):
    """The client is in the foreground of the person's terminal, and its agent leaves a clean process behind."""
    client = held.root / "claude"
    client.symlink_to("/bin/bash")
    orphan = f"(env -i PATH=\"$PATH\" bash -c 'sleep 0.2; {APPROVE} >said 2>&1; touch over' &)"
    waits = "for n in $(seq 100); do [ -e over ] && break; sleep 0.1; done; exit 0"

    with Terminal(held.root, ENVIRONMENT, "-c", f"{orphan}; {waits}", program=client) as screen:
        screen.ended()

    assert "an agent's shell (process" in " ".join((held.root / "said").read_text().split())
    assert held.new_commits() == []


@pytest.mark.parametrize("name", ["bob", None])
def test_a_name_is_shown_beside_the_account_and_never_instead(tmp_path, name, monkeypatch):
    monkeypatch.setenv("DETENT_ACTOR", "eve")
    started(tmp_path, '{ kind = "approval" }')[0].close()
    with open_project(tmp_path, actor=name) as project:
        session = project.session()
        session.approve("fine")
        commit = list(session.log())[-1]

    assert commit.by == f"{ME}, as {name or 'eve'}"
    assert commit.author == ME
    [vote] = [event for event in commit.events if isinstance(event, VoteCast)]
    assert vote.approver == ME


def test_one_person_does_not_make_a_quorum_of_two(tmp_path):
    gate = '{ kind = "consensus", approvers = ["ada", "bob", "lead"], quorum = 2 }'
    _, handle = started(tmp_path, gate, more=roles(lead=ME, other="ada"))

    handle.approve("mine")
    handle.approve("ada is away", stands_for="ada")
    handle.approve("bob is away", stands_for="bob")

    [judged] = handle.gates.judgements()["work"]
    assert judged.reason.startswith("1 of 2 approvals")
    votes = handle.state.phases["work"].gates["consensus"].votes
    assert {who: vote.stands_for for who, vote in votes.items()} == {ME: "bob"}


@needs_people
def test_a_vote_in_the_place_of_another_is_shown_as_such(tmp_path):
    gate = '{ kind = "consensus", approvers = ["lead", "bob"], quorum = 2 }'
    project, handle = started(tmp_path, gate, more=roles(lead=ANN, other="bob"))
    with acting(ANN):
        handle.approve("mine")
    with acting(BOB):
        with pytest.raises(Refused, match=f"lead is filled by {ANN}, and you are {BOB}"):
            handle.approve("ann is away", stands_for="lead")
        handle.approve("bob is away", stands_for="bob")

    [judged] = handle.gates.judgements()["work"]
    assert judged.reason == f"approved by {ANN}; {BOB}, as bob"
    handle.finish("done")
    project.close()
    for verb in ("report", "log", "why"):
        ran = subprocess.run([DETENT, verb], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True)
        assert f"{BOB}, as bob approved consensus at 1 of 2 work" in " ".join(ran.stdout.split())


@pytest.mark.parametrize("workflow", ["canonical", "analytics", "ml", "webapp", "optimization"])
def test_a_quorum_that_nobody_can_reach_is_refused_at_the_start(tmp_path, workflow):
    build_project(tmp_path, "")
    with open_project(tmp_path) as project:
        with pytest.raises(Refused) as refused:
            project.start(workflow, "A shop")
        assert f"by the people who are known ({ME})" in refused.value.message
        assert "consensus_1: consensus needs 2 of architect" in refused.value.message
        assert "[decisions.roles]" in refused.value.way_out
        assert "--quorum 1" in refused.value.way_out
        assert project.store.sessions() == []

        session = project.start(workflow, "A shop", quorum=1)
        [first] = session.log()
        assert first.actor.proof is not None
        gates = [gate for phase in session.state.workflow.phases for gate in phase.gates if isinstance(gate, Voted)]
        assert {(gate.quorum, gate.lowered_from) for gate in gates} == {(1, 2)}


def test_the_command_line_lowers_a_quorum_and_says_so(tmp_path):
    build_project(tmp_path, "")
    tool = Tool(tmp_path)
    code, message, way_out = tool("start", "webapp", "A shop").error()
    assert (code, "--quorum 1" in way_out, "needs 2 of architect" in message) == (1, True, True)
    code, message, _ = tool("start", "webapp", "A shop", "--quorum", "1", CLAUDECODE="1").error()
    assert (code, "start --quorum is a person's decision" in message) == (1, True)

    ran = tool("start", "webapp", "A shop", "--quorum", "1").ok()

    assert "looser than declared: no gate needs more than 1 of the votes, and anyone may vote" in ran.err
    for phase in ("planning", "architecture", "security", "consensus_1"):
        tool("finish", "-m", "done").ok()
        tool("begin", phase).ok()
    assert "quorum lowered at the start; 2 of architect" in " ".join(tool("why").ok().out.split())
    tool("approve", "-m", "fits").ok()
    tool("finish", "-m", "agreed").ok()
    assert "quorum lowered at the start" in " ".join(tool("report").ok().out.split())


def test_nothing_is_decided_that_is_not_confirmed_at_the_terminal(held):
    """The question shows what is decided. Pipes and options do not answer it."""
    with Terminal(
        held.root, ENVIRONMENT, "-c", f"yes | {APPROVE}; exit $?", program="/bin/bash", confirms=False
    ) as screen:
        shown = screen.expect("approve\n", "WFS-", "gate approval of work, attempt 1", "fine", "Is that your decision?")
        screen.type("n\n")
        assert screen.ended() == 1

    assert "reason" in shown
    assert "approve was not confirmed, and nothing was changed" in screen.text
    assert held.new_commits() == []


def test_the_files_that_were_shown_are_the_ones_that_are_approved(held):
    with Terminal(held.root, ENVIRONMENT, "-c", f"{APPROVE}; exit $?", program="/bin/bash", confirms=False) as screen:
        screen.expect("tree", "Is that your decision?")
        (held.root / "sneaked.py").write_text("in\n")
        screen.type("y\n")
        assert screen.ended() == 1

    said = " ".join(screen.text.split())
    assert "the files are not those that were shown; changed meanwhile: sneaked.py" in said
    assert held.new_commits() == []


def test_a_process_in_the_background_of_its_terminal_is_not_asked(held):
    command = f"set -m; {APPROVE} >said 2>&1 & wait; exit 0"
    with Terminal(held.root, ENVIRONMENT, "-c", command, program="/bin/bash", confirms=False) as screen:
        assert screen.ended() == 0

    assert "this process is in its background" in (held.root / "said").read_text()
    assert held.new_commits() == []
