"""`detent merge`: what agents and gates are told, and that a refusal leaves everything as it was."""

import pytest

from detent.config.place import find
from detent.core.actor import as_runner
from detent.core.gate.evidence import Verdict
from detent.run.worktree import ensure
from tests.support.command import Tool
from tests.support.repository import ENVIRONMENT, commit, git, hook, opened, repository, session, status, write

pytestmark = pytest.mark.usefixtures("nobody")


@pytest.fixture
def root(tmp_path):
    """With the worktrees of two phases that run side by side."""
    root = repository(tmp_path / "shop")
    with opened(root) as project:
        session(project)
        for phase in "bc":
            ensure(project, "WFS-trial", phase)
    return root


@pytest.fixture
def detent(root):
    tool = Tool(root)
    tool.environment |= ENVIRONMENT
    return tool


def tree(root, phase):
    return root / f".workflow/worktrees/WFS-trial.{phase}"


def test_a_merge_says_what_went_where(root, detent):
    write(tree(root, "b"), b__txt="b\n")
    done = detent("merge", "b").ok()

    head = git(root, "rev-parse", "HEAD")
    assert done.out == f"merged detent/WFS-trial.b into main as {head[:12]}\n"
    assert (root / "b.txt").read_text() == "b\n"


def test_in_json(root, detent):
    write(tree(root, "b"), b__txt="b\n")
    done = detent("merge", "b", "--json").ok().json()

    assert done["commit"] == git(root, "rev-parse", "HEAD")
    assert detent("merge", "b", "--json").ok().json()["commit"] is None


def test_by_default_a_merge_goes_to_the_branch_of_the_session(tmp_path):
    root = repository(tmp_path / "shop")
    before = git(root, "rev-parse", "main")
    with opened(root) as project:
        session(project, into=None)
        ensure(project, "WFS-trial", "b")
    tool = Tool(root)
    tool.environment |= ENVIRONMENT
    write(tree(root, "b"), b__txt="b\n")

    done = tool("merge", "b").ok()

    assert done.out.startswith("merged detent/WFS-trial.b into detent/WFS-trial as ")
    assert (git(root, "rev-parse", "main"), status(root)) == (before, "")
    assert git(root, "show", "detent/WFS-trial:b.txt") == "b"

    assert tool("merge", "--into", "main").ok().out.startswith("merged detent/WFS-trial into main as ")
    assert (root / "b.txt").exists()


def test_an_agent_does_not_choose_the_branch(detent):
    assert "is a person's decision" in detent("merge", "b", "--into", "main", CLAUDECODE="1").error()[1]


def test_nothing_to_merge_is_no_error(detent):
    assert detent("merge", "b").ok().out == "detent/WFS-trial.b has nothing to merge\n"


def test_conflicts_are_listed_and_the_project_stays_as_it_was(root, detent):
    write(tree(root, "b"), code__py="one\nb\nthree\n", b__txt="b\n")
    write(tree(root, "c"), code__py="one\nc\nthree\n")
    detent("merge", "b").ok()
    head = git(root, "rev-parse", "HEAD")

    code, message, way_out = detent("merge", "c").error()

    assert (code, message) == (3, "detent/WFS-trial.c and main both changed code.py")
    assert way_out == f"cd {tree(root, 'c')} && git merge main; resolve the conflicts there and git commit"
    assert git(root, "rev-parse", "HEAD") == head
    assert status(root) == ""
    assert (root / "code.py").read_text() == "one\nb\nthree\n"


def test_an_agent_that_does_what_it_is_told_gets_its_conflict_merged(root, detent):
    write(tree(root, "b"), code__py="one\nb\nthree\n")
    write(tree(root, "c"), code__py="one\nc\nthree\n")
    detent("merge", "b").ok()
    assert detent("merge", "c").code == 3
    git(tree(root, "c"), "merge", "main", check=False)

    code, message, way_out = detent("merge", "c").error()
    assert (code, way_out) == (3, "resolve them there, git add, git commit")
    assert message == f"code.py in {tree(root, 'c')} still has conflicts"
    write(tree(root, "c"), code__py="one\nb and c\nthree\n")
    git(tree(root, "c"), "add", "code.py")
    detent("merge", "c").ok()

    assert (root / "code.py").read_text() == "one\nb and c\nthree\n"
    assert status(root) == ""


@pytest.mark.parametrize("name", ["code.py", "new.txt"])
def test_what_a_person_has_not_committed_is_never_overwritten(root, detent, name):
    write(tree(root, "b"), **{name: "by the agent\n", "b__txt": "b\n"})
    write(root, **{name: "by hand\n"})
    before = status(root)

    code, message, way_out = detent("merge", "b").error()

    assert code == 3
    assert message == (f"{name} in {root} has changes that are not committed, and detent/WFS-trial.b changes it too")
    assert "a person should commit or stash them" in way_out
    assert (root / name).read_text() == "by hand\n"
    assert status(root) == before


def test_changes_that_are_not_in_the_way_stay_as_they_are(root, detent):
    write(tree(root, "b"), b__txt="b\n")
    write(root, code__py="by hand\n", note__txt="by hand\n")
    detent("merge", "b").ok()

    assert status(root).splitlines() == ["M code.py", "?? note.txt"]
    assert (root / "code.py").read_text() == "by hand\n"


def test_a_merge_of_a_person_that_is_not_finished_comes_first(root, detent):
    write(tree(root, "b"), b__txt="b\n")
    git(root, "checkout", "--quiet", "-b", "side")
    commit(root, code__py="side\n")
    git(root, "checkout", "--quiet", "main")
    commit(root, code__py="main\n")
    git(root, "merge", "side", check=False)
    before = git(root, "status", "--porcelain")

    assert detent("merge", "b").error()[:2] == (3, f"{root} is in the middle of a merge")
    assert git(root, "status", "--porcelain") == before


@pytest.mark.parametrize("name", ["pre-commit", "pre-merge-commit", "commit-msg"])
def test_hooks_of_the_person_decide_too(root, detent, name):
    write(tree(root, "b"), b__txt="b\n")
    refusing = hook(root, name, "echo 'not like this' >&2; exit 1")
    head = git(root, "rev-parse", "HEAD")

    code, message, _ = detent("merge", "b").error()

    assert code == 3
    assert "not like this" in message
    assert (git(root, "rev-parse", "HEAD"), status(root)) == (head, "")
    refusing.unlink()
    detent("merge", "b").ok()


def test_where_git_does_not_know_who_you_are_commits_are_by_detent(root, detent):
    git(root, "config", "user.useConfigOnly", "true")
    detent.environment = {name: value for name, value in detent.environment.items() if "_NAME" not in name}
    detent.environment = {name: value for name, value in detent.environment.items() if "_EMAIL" not in name}
    write(tree(root, "b"), b__txt="b\n")
    detent("merge", "b").ok()

    for made in ("HEAD", "HEAD^2"):
        names = git(root, "log", "-1", "--format=%an %ae %cn %ce", made)
        assert names == "Detent detent@localhost Detent detent@localhost"


def test_what_is_ignored_is_not_committed(root, detent):
    write(tree(root, "b"), **{".gitignore": "*.log\n", "x__log": "noise\n", "b__txt": "b\n"})
    detent("merge", "b").ok()

    assert (root / "b.txt").exists()
    assert not (root / "x.log").exists()


def test_in_a_worktree_it_is_about_that_worktree_whatever_session_is_active(root, detent):
    with opened(root) as project:
        project.start("feature", "something else", name="other")
    write(tree(root, "c"), c__txt="c\n")
    detent.directory = tree(root, "c")
    detent("merge").ok()

    assert (root / "c.txt").exists()
    assert git(root, "log", "-1", "--format=%s") == "Merge WFS-trial c: try it"


def test_a_phase_without_a_worktree_is_told_what_there_is(detent):
    code, message, way_out = detent("merge", "d").error()

    assert (code, message) == (1, "WFS-trial has no worktree for d, and no branch detent/WFS-trial.d")
    assert way_out == "detent merge b --session WFS-trial"
    assert "has no phase nonsense" in detent("merge", "nonsense").error()[1]


def test_a_directory_that_lost_its_git_is_not_taken_for_merged(root, detent):
    write(tree(root, "b"), b__txt="b\n")
    (tree(root, "b") / ".git").unlink()

    assert detent("merge", "b").error()[0] == 3
    assert not (root / "b.txt").exists()


def test_the_gate_of_the_phase_is_closed_until_its_work_is_merged(root):
    with opened(root) as project:
        handle = project.session()
        place, _ = find(ensure(project, "WFS-trial", "a")[0])
        inside = project.beside(place, as_runner(project.actor)).session("WFS-trial")
        write(tree(root, "a"), code__py="one\na\nthree\n")
        commit(root, code__py="one\nmain\nthree\n")
        inside.gates.run("merge", phase="a")
        (closed,) = inside.gates.judgements("a")["a"]
        assert closed.verdict is Verdict.FAIL
        git(tree(root, "a"), "add", "--all")
        git(tree(root, "a"), "commit", "--quiet", "--allow-empty", "-m", "mine")
        git(tree(root, "a"), "merge", "--strategy-option=ours", "main")
        inside.gates.run("merge", phase="a")
        (open_now,) = inside.gates.judgements("a")["a"]

        assert open_now.verdict is Verdict.PASS
        assert handle.state.phases["a"].gates["merge"].receipt.exit_code == 0
    assert (root / "code.py").read_text() == "one\na\nthree\n"
