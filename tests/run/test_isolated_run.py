"""`detent run` with isolation: agents in worktrees, from the first phase to the last merge."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from detent.core.session.open_decision import open_decisions
from detent.doctor.invariants import check
from detent.engine.confirm import is_confirmed
from detent.errors import Refused
from tests.support.repository import ENVIRONMENT, commit, git, opened, repository, status, stop_everything_in
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("nobody")
DETENT = os.path.join(os.path.dirname(sys.executable), "detent")
SETTINGS = """
[agents.worker]
adapter = "command"
command = "sh ../../../worker.sh"

[run]
agent = "worker"
workflow = "w"
parallel = 2
isolation = "{mode}"
{into}

[workflows.w]
phases = [
  {{ key = "a" }},
  {{ key = "b", needs = ["a"] }},
  {{ key = "c", needs = ["a"] }},
  {{ key = "d", needs = ["b", "c"], gates = [{{ kind = "command", command = "test -f b.txt -a -f c.txt" }}] }},
]
"""
#: Every phase adds its line at the same place, so that b and c are in conflict; told so, an agent takes both.
WORKER = """
echo "$DETENT_PHASE" > "$DETENT_PHASE.txt"
grep -q "^$DETENT_PHASE$" shared.txt || echo "$DETENT_PHASE" >> shared.txt
target=$(git rev-parse --verify --quiet detent/WFS-try-it || git rev-parse main)
if ! git merge-base --is-ancestor $target HEAD; then
    git add --all && git commit --quiet -m "$DETENT_PHASE"
    git merge --quiet $target || { sed -i '/^[<=>]/d' shared.txt; git add --all; git commit --quiet --no-edit; }
fi
echo "did $DETENT_PHASE"
"""


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A directory for programs: a sandbox hides those of other projects in memory."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@pytest.fixture
def place(tmp_path):
    def made(mode: str, worker: str = WORKER, into: str = 'into = "HEAD"'):
        root = repository(tmp_path / "shop", SETTINGS.format(mode=mode, into=into))
        (root / "worker.sh").write_text(worker)
        (root / "shared.txt").write_text("begin\n")
        commit(root)
        return root

    return made


def run(root, *arguments):
    return subprocess.Popen(
        [DETENT, "run", "Try it", "--json", *arguments],
        cwd=root,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )


def check_done(root):
    assert status(root) == ""
    assert sorted((root / "shared.txt").read_text().split()) == ["a", "b", "begin", "c", "d"]
    assert {path.name for path in root.glob("?.txt")} == {"a.txt", "b.txt", "c.txt", "d.txt"}
    assert git(root, "branch", "--list", "detent/*") == ""
    # What a kill left of a worktree that was just being made is set aside, since its contents are unknown.
    left = [path.name for path in (root / ".workflow/worktrees").glob("WFS-*")]
    assert [name for name in left if ".aside-" not in name] == []
    with opened(root) as project:
        assert check(project) == []


@pytest.mark.parametrize("mode", ["phase", "session"])
def test_a_run_ends_with_everything_merged_and_nothing_left(place, mode):
    root = place(mode)

    assert run(root).wait(60) == 0
    check_done(root)
    merges = git(root, "log", "--first-parent", "--merges", "--format=%s").splitlines()
    assert len(merges) == (4 if mode == "phase" else 1)


@pytest.mark.parametrize("mode", ["phase", "session"])
def test_by_default_the_work_is_on_a_branch_of_the_session_and_main_is_as_it_was(place, mode):
    root = place(mode, into="")
    before = git(root, "rev-parse", "main")

    assert run(root).wait(60) == 0

    assert (git(root, "rev-parse", "main"), status(root)) == (before, "")
    assert git(root, "branch", "--list", "detent/*", "--format=%(refname:short)") == "detent/WFS-try-it"
    assert sorted(git(root, "show", "detent/WFS-try-it:shared.txt").split()) == ["a", "b", "begin", "c", "d"]
    assert git(root, "worktree", "list").count("\n") == 0
    git(root, "merge", "--quiet", "detent/WFS-try-it")
    assert {path.name for path in root.glob("?.txt")} == {"a.txt", "b.txt", "c.txt", "d.txt"}


@pytest.mark.parametrize("mode", ["phase", "session"])
def test_a_branch_that_a_person_chose_gets_the_work_and_is_kept(place, mode):
    root = place(mode, into="")
    git(root, "branch", "release")
    before = git(root, "rev-parse", "main")
    worker = (root / "worker.sh").read_text().replace("detent/WFS-try-it", "release")
    (root / "worker.sh").write_text(worker)
    commit(root)
    git(root, "branch", "--force", "release")

    assert run(root, "--into", "release").wait(60) == 0

    assert git(root, "rev-parse", "main^") == before
    assert sorted(git(root, "show", "release:shared.txt").split()) == ["a", "b", "begin", "c", "d"]
    assert git(root, "branch", "--list", "detent/*") == ""


@pytest.mark.parametrize("blocked", ["pre-merge-commit", "agent"])
def test_a_run_that_was_killed_goes_on_in_its_worktrees(place, tmp_path, blocked):
    """Killed with all that it started, in the middle of the work of b, or of its merge."""
    block = f'if [ "$DETENT_PHASE" = b ] && mkdir "{tmp_path}/reached"; then sleep 60; fi\n'
    root = place("phase", (f"echo half > half.txt\n{block}" if blocked == "agent" else "") + WORKER)
    if blocked != "agent":
        hook = root / ".git/hooks/pre-merge-commit"
        hook.write_text(f"#!/bin/sh\n[ -e b.txt ] || exit 0\nif mkdir '{tmp_path}/reached'; then sleep 60; fi\n")
        hook.chmod(0o755)
    first = run(root)
    wait_until((tmp_path / "reached").exists)
    first.send_signal(signal.SIGKILL)
    first.wait()
    stop_everything_in(root)

    assert run(root).wait(90) == 0
    check_done(root)
    assert (root / "half.txt").exists() == (blocked == "agent")


CHECKED = """
[agents.worker]
adapter = "command"
command = "echo 'broken = 1' > shop.py; echo done"

[run]
agent = "worker"
workflow = "w"
isolation = "session"
attempts = 1
turns = 1

[workflows.w]
phases = [{{ key = "a", gates = [{{ kind = "command", command = "{check}", env = ["PYTHONPATH={root}"] }}] }}]
"""


def test_a_check_runs_the_code_of_the_worktree_and_not_an_installed_checkout(tmp_path):
    """`PYTHONPATH` leads to the person's checkout here, as a package that is installed in place does."""
    root = tmp_path / "shop"
    repository(root, CHECKED.format(check="python3 checks/run.py", root=root))
    (root / "shop.py").write_text("broken = 0\n")
    (root / "checks").mkdir()
    (root / "checks" / "run.py").write_text("import shop, sys\nsys.exit(shop.broken)\n")
    commit(root)

    assert run(root, "--no-wait").wait(60) != 0

    with opened(root) as project:
        assert project.session().state.phases["a"].status != "completed"
    assert (root / "shop.py").read_text() == "broken = 0\n"


@pytest.mark.parametrize("named", [".venv/bin/check", "{root}/.venv/bin/check", "check"])
def test_a_program_of_the_project_is_the_same_one_in_a_worktree(tmp_path, monkeypatch, named):
    root = tmp_path / "shop"
    monkeypatch.setenv("PATH", f"{root}/.venv/bin:{os.environ['PATH']}")
    settings = CHECKED.replace("[run]", '[run]\nlink = [".venv"]')
    repository(root, settings.format(check=named.format(root=root), root=root))
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/check").write_text("#!/bin/sh\nexit 0\n")
    (root / ".venv/bin/check").chmod(0o755)
    commit(root, __gitignore=".venv/\n")

    assert run(root, "--no-wait").wait(60) == 0


@pytest.mark.parametrize("installed", ["a link, as pipx makes it", "another installation"])
def test_the_work_is_merged_by_the_detent_that_runs_whichever_is_on_the_path(place, on_disk, monkeypatch, installed):
    program = on_disk / "detent"
    if "link" in installed:
        program.symlink_to(DETENT)
    else:
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    root = place("session")

    assert run(root).wait(60) == 0
    check_done(root)


APPROVED = """
[agents.worker]
adapter = "command"
command = "echo new > made.txt; echo done"

[run]
agent = "worker"
workflow = "w"
isolation = "session"

[workflows.w]
phases = [{ key = "a", gates = [{ kind = "approval" }] }]
"""


def test_what_is_approved_is_the_work_in_the_worktree_and_then_it_is_merged(tmp_path):
    root = repository(tmp_path / "shop", APPROVED)
    assert run(root, "--no-wait").wait(60) == 6

    with opened(root) as project:
        session = project.session()
        assert session.state.escalations == ()
        [waiting] = open_decisions(session.state, session.gates.judgements())
        assert waiting.kind == "vote"
        assert session.checkpoints.compare("PRE_a_v1").diff.added == ("made.txt",)
        tree = root / ".workflow/worktrees/WFS-try-it"
        statement = session.statement(lambda handle: handle.approve("read it"), approver="ada")
        assert statement.tree == project.working_on(session.id, "a").files().digest != project.files().digest

        def change(_):
            (tree / "made.txt").write_text("other")

        project.confirm = change
        with pytest.raises(Refused, match=r"changed meanwhile: made.txt"):
            session.approve("read it")
        project.confirm = is_confirmed
        session.approve("read it")

    assert run(root, "--no-wait").wait(60) == 0
    assert git(root, "show", "detent/WFS-try-it:made.txt") == "other"
