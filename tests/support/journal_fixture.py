"""Writes the fixture journal of the current format: `python -m tests.support.journal_fixture`.

Run it only together with a new number in `detent.store.line.FORMAT`. Released formats keep their fixture for ever.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

from msgspec.structs import replace

from detent.core.actor import Actor, ActorKind, Channel
from detent.core.gate.evidence import Receipt, Result
from detent.core.run.choices import RunChoices
from detent.core.session.status import Status
from detent.core.testrun.suite import Outcome
from detent.doctor.mending import mend
from detent.engine.project import Project, open_project
from detent.engine.session import SessionHandle
from detent.store.line import FORMAT, GENESIS, decode_line, encode_line
from tests.support.attended import is_attended, run_attended
from tests.support.project import build_project
from tests.support.values import TickingClock

NAME = "WFS-every-event"
STATE_HOME = "/tmp/detent-fixture"
FIXTURE = Path(__file__).parents[1] / "store" / f"format-{FORMAT}.jsonl"
ADA = Actor(name="ada", kind=ActorKind.PERSON, channel=Channel.TERMINAL)
SETTINGS = """
[supervised]
phases = ["tell"]
[budget]
tokens = 10
[workflows.mixed]
phases = ["plan", "build", "check", "tell", "end"]
[phases.build]
gates = [{ kind = "tests", command = "echo 1 passed in 0.1s" }, { kind = "approval" }, { kind = "elicitation" }]
"""


def write(directory: Path) -> Path:
    """Do something of every kind in a session; the path of its journal."""
    build_project(directory, SETTINGS, files={"thing.py": "thing = 1\n"}, agent=True)
    with open_project(directory, actor=ADA, clock=TickingClock()) as project:
        session = project.start("mixed", "Every event", name=NAME)
        session.set_run_options(RunChoices(agents={"": "builder"}, parallel=2))
        work_on_tasks(session)
        session.finish("planned")
        session.begin("build", agent="builder")
        session.record_agent_started("build", "builder", "agent-1")
        question = session.ask("Which one?", phase="build", choices=["left", "right"])
        session.reply("left", question=question)
        session.record_agent_ended("agent-1", succeeded=True)
        session.gates.record("tests", phase="build", receipt=Receipt(result=Result.FAILED, error="broke"))
        session.escalate("stop_blocked", "build", "it does not get on")
        session.resolve("retry", "once more")
        (directory / "thing.py").write_text("thing = 2\n")
        session.gates.run("tests")
        decide_about_tests(session)
        session.gates.run("tests")
        session.answer(choice="save")
        session.approve("looks right", gate="approval")
        session.finish("built", artifacts=["thing.py"])
        session.checkpoints.take("by hand")
        session.begin("check")
        session.fail("no luck")
        session.redo("check", reason="again")
        session.skip("check", reason="not worth it")
        session.begin("tell")
        session.finish("told")
        session.review("continue", phase="tell")
        session.checkpoints.rollback("PRE_build_v1")
        session.checkpoints.undo()
        session.redo("build", cascade=True)
        session.approve("the tests are wrong", gate="tests")
        append(directory, b"half a line")
        project.sessions.pause("lunch")
        damage(project, directory)
        project.sessions.resume()
        change_settings(project, directory)
        session.cancel("enough")
        project.sessions.reopen(NAME, "after all")
        edit(project, directory)
        session.complete(force=True)
        project.sessions.archive(NAME)
        project.flush()
    return directory / ".workflow" / NAME / "journal.jsonl"


def work_on_tasks(session: SessionHandle) -> None:
    session.tasks.add("First")
    session.tasks.add("Second", depends_on=["IMPL-1"])
    session.tasks.add("Third")
    session.tasks.remove("IMPL-3")
    session.tasks.start("IMPL-1")
    session.tasks.done("IMPL-1", "done")
    session.tasks.set_complexity("medium")


def decide_about_tests(session: SessionHandle) -> None:
    session.gates.set_command("tests", "echo 2 passed in 0.1s", "one more")
    session.gates.baseline("tests")
    session.gates.baseline("tests", reason="once more")
    lost = Receipt(result=Result.PASSED, lost={"t.py::test_old": Outcome.MISSING}, lost_count=1)
    session.gates.record("tests", phase="build", receipt=lost)
    session.gates.accept("tests", ["t.py::test_old"], "not needed any more")


def anywhere(path: Path) -> bytes:
    """The journal with proofs that tell nothing about the machine that it was written on."""
    lines, read, written = [], GENESIS, GENESIS
    for number, old in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        commit, read = decode_line(old, read, number, NAME)
        if commit.actor.proof is not None:
            proof = replace(commit.actor.proof, statement="terminal /dev/pts/3; python < bash < sshd")
            commit = replace(commit, actor=replace(commit.actor, proof=proof))
        line, written = encode_line(commit, written)
        lines.append(line)
    return b"".join(lines)


def append(directory: Path, data: bytes) -> None:
    """An unfinished write, which the next commit drops."""
    with (directory / ".workflow" / NAME / "journal.jsonl").open("ab") as file:
        file.write(data)


def damage(project: Project, directory: Path) -> None:
    append(directory, b"no commit\n")
    mend(project, NAME)


def change_settings(project: Project, directory: Path) -> None:
    with (directory / "detent.toml").open("a") as file:
        file.write("# changed\n")
    project.reconcile()


def edit(project: Project, directory: Path) -> None:
    """Fail the phase in progress by hand, in the state document."""
    project.flush()
    path = directory / ".workflow" / "state.json"
    document = json.loads(path.read_text())
    key = project.session().state.with_status(Status.IN_PROGRESS)[0]
    document["state_version"] += 1
    document["phases"][key] |= {"status": "failed", "error": "by hand"}
    path.write_text(json.dumps(document))
    assert [adoption.adopted for adoption in project.reconcile()] == [True]


if __name__ == "__main__":
    if not is_attended():
        # It decides as a person does.
        sys.exit(run_attended([sys.executable, "-m", "tests.support.journal_fixture"]))
    # The journal records programs, homes and the host. It must tell nothing about the machine that it was written on.
    os.environ.clear()
    os.environ |= {"PATH": "/usr/bin:/bin", "HOME": "/home/ada", "XDG_STATE_HOME": STATE_HOME}
    os.uname = lambda: SimpleNamespace(nodename="host")  # type: ignore[assignment, return-value]
    try:
        with tempfile.TemporaryDirectory() as place:
            FIXTURE.write_bytes(anywhere(write(Path(place))))
    finally:
        shutil.rmtree(STATE_HOME)
