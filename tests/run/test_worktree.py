"""Worktrees: made from what is committed, used again after a kill, removed only when nothing in them can be lost."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from detent.config.place import find
from detent.core.actor import as_runner
from detent.core.gate.evidence import Result, Verdict
from detent.engine.project import init_project, open_project
from detent.errors import Refused
from detent.run.merging import merge
from detent.run.worktree import Worktrees, ensure, remove
from tests.support.repository import (
    commit,
    git,
    hook,
    log,
    opened,
    repository,
    session,
    status,
    stop_everything_in,
    write,
)
from tests.support.values import workflow
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("nobody")


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path / "my project é")


@pytest.fixture
def project(root):
    with opened(root) as made:
        yield made


def tree_of(root, name="WFS-trial.a"):
    return root / ".workflow" / "worktrees" / name


# Making


@pytest.fixture
def linking(tmp_path):
    """A function that makes a project with ignored files, and opens it with these links."""

    def make(*patterns):
        root = repository(tmp_path / "linking", f"[run]\nlink = {list(patterns)}\n")
        commit(root, "ignore", __gitignore=".venv/\n*.mo\n")
        for path in (".venv/bin/python", ".venv/lib/site.py", "locale/de/a.mo", "locale/fr/a.mo", "other.mo"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(path)
        return root, opened(root)

    return make


def test_a_worktree_has_links_to_the_ignored_files_that_the_settings_name(linking):
    root, project = linking(".venv", "locale/*/*.mo", "gone")
    with project:
        session(project)
        path, notices = ensure(project, "WFS-trial", "a")

        tree = Path(path)
        assert (tree / ".venv/bin/python").read_text() == ".venv/bin/python"
        assert sorted(str(each.relative_to(tree)) for each in tree.rglob("*.mo")) == [
            "locale/de/a.mo",
            "locale/fr/a.mo",
        ]
        assert notices == [f"link names gone, and {root} has no such file"]
        git(path, "add", "--all")
        assert status(path) == ""
        merge(project, "WFS-trial", "a")
        assert remove(project, "WFS-trial", "a") == []
    assert (root / ".venv/lib/site.py").read_text() == ".venv/lib/site.py"


@pytest.mark.parametrize("pattern", ["code.py", "../other", "/etc", ".git", ".workflow/.lock"])
def test_a_link_that_a_commit_could_take_along_or_that_leaves_the_project_is_refused(linking, pattern):
    _, project = linking(pattern)
    with project:
        session(project)
        with pytest.raises(Refused, match="link names"):
            ensure(project, "WFS-trial", "a")
        with pytest.raises(Refused, match="link names"):
            ensure(project, "WFS-trial", "a")


def test_a_worktree_has_what_is_committed_on_a_branch_of_its_own(root, project):
    session(project)
    path, notices = ensure(project, "WFS-trial", "a")

    assert path == str(tree_of(root))
    assert notices == []
    assert git(path, "branch", "--show-current") == "detent/WFS-trial.a"
    assert git(path, "rev-parse", "HEAD") == git(root, "rev-parse", "HEAD")
    assert (tree_of(root) / "code.py").read_text() == "one\ntwo\nthree\n"
    assert status(root) == ""


def test_what_is_not_committed_is_not_in_it_and_that_is_said(root, project):
    session(project)
    write(root, code__py="changed\n", new__txt="new\n")
    path, notices = ensure(project, "WFS-trial", "a")

    assert (tree_of(root) / "code.py").read_text() == "one\ntwo\nthree\n"
    assert not (tree_of(root) / "new.txt").exists()
    assert notices == [f"2 files of the project have uncommitted changes; {path} does not have them"]


def test_hooks_that_are_not_committed_are_missed(root, project):
    session(project)
    write(root, **{".claude/settings__json": "{}"})
    _, notices = ensure(project, "WFS-trial", "a")

    assert ".claude/settings.json is not committed" in notices[1]


def test_ensuring_twice_keeps_what_was_written(root, project):
    session(project)
    ensure(project, "WFS-trial", "a")
    write(tree_of(root), work__txt="half done\n")

    assert ensure(project, "WFS-trial", "a") == (str(tree_of(root)), [])
    assert (tree_of(root) / "work.txt").read_text() == "half done\n"


def test_one_that_has_nothing_of_its_own_begins_where_the_project_is(root, project):
    session(project)
    ensure(project, "WFS-trial", "a")
    commit(root, code__py="newer\n")
    ensure(project, "WFS-trial", "a")

    assert (tree_of(root) / "code.py").read_text() == "newer\n"


def test_one_with_work_is_left_as_it_is_when_the_project_moves_on(root, project):
    session(project)
    ensure(project, "WFS-trial", "a")
    write(tree_of(root), work__txt="mine\n")
    commit(root, code__py="newer\n")
    ensure(project, "WFS-trial", "a")

    assert (tree_of(root) / "code.py").read_text() == "one\ntwo\nthree\n"


def test_a_directory_that_is_no_worktree_is_set_aside(root, project):
    session(project)
    write(tree_of(root), precious__txt="by hand\n")
    path, notices = ensure(project, "WFS-trial", "a")

    assert git(path, "branch", "--show-current") == "detent/WFS-trial.a"
    assert notices == [f"{path} was not a complete worktree; its files are in {path}.aside-1"]
    assert (tree_of(root, "WFS-trial.a.aside-1") / "precious.txt").read_text() == "by hand\n"


def test_a_worktree_whose_directory_is_gone_is_made_anew(root, project):
    session(project)
    ensure(project, "WFS-trial", "a")
    subprocess.run(["rm", "-rf", tree_of(root)], check=True)
    path, _ = ensure(project, "WFS-trial", "a")

    assert status(path) == ""
    assert (tree_of(root) / "code.py").exists()


def test_a_branch_with_work_that_is_not_merged_is_gone_on_with(root, project):
    session(project)
    ensure(project, "WFS-trial", "a")
    commit(tree_of(root), "work", work__txt="done\n")
    subprocess.run(["rm", "-rf", tree_of(root)], check=True)
    path, notices = ensure(project, "WFS-trial", "a")

    assert (tree_of(root) / "work.txt").read_text() == "done\n"
    assert notices == [f"{path} continues branch detent/WFS-trial.a, which has unmerged work"]


def test_a_branch_that_stands_in_the_way_of_all_branches_of_detent_is_named(root, project):
    session(project)
    git(root, "branch", "detent")

    with pytest.raises(Refused, match=r"could not create the worktree .* on branch detent/WFS-trial\.a") as refused:
        ensure(project, "WFS-trial", "a")
    assert "git branch -m detent" in refused.value.way_out


def test_a_branch_that_the_project_has_checked_out_is_not_taken_away(root, project):
    session(project)
    git(root, "checkout", "--quiet", "-b", "detent/WFS-trial.a")

    with pytest.raises(Refused, match=r"already (checked out|used)") as refused:
        ensure(project, "WFS-trial", "a")
    assert refused.value.way_out == "check out another branch in the project"


def test_without_a_repository_there_is_no_isolation(tmp_path):
    init_project(tmp_path)
    with opened(tmp_path) as project:
        session(project)
        with pytest.raises(Refused, match="is not in a git repository") as refused:
            ensure(project, "WFS-trial", "a")
    assert 'isolation = "none"' in refused.value.way_out


def test_without_a_commit_there_is_no_isolation(tmp_path):
    git(tmp_path, "init", "--quiet")
    init_project(tmp_path)
    with opened(tmp_path) as project:
        session(project)
        with pytest.raises(Refused, match="has no commit yet"):
            ensure(project, "WFS-trial", "a")


def test_a_kill_while_a_worktree_is_made_leaves_nothing_that_is_worked_in(root, project):
    """A hook of the person runs while the files are there and git has not finished: that is where the kill comes."""
    session(project)
    write(root, **{".git/hooks/post-checkout": "#!/bin/sh\ntouch reached\nexec sleep 60\n"})
    (root / ".git/hooks/post-checkout").chmod(0o755)
    script = (
        "from detent.engine.project import open_project; from detent.run.worktree import ensure\n"
        f"ensure(open_project({str(root)!r}), 'WFS-trial', 'a')"
    )
    child = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    wait_until((tree_of(root) / "reached").exists)
    child.kill()
    child.wait()
    stop_everything_in(tree_of(root))
    (root / ".git/hooks/post-checkout").unlink()
    (tree_of(root) / "code.py").unlink()

    path, notices = ensure(project, "WFS-trial", "a")

    assert "was not a complete worktree" in notices[0]
    assert status(path) == ""


# Where commands and hooks find the project


def test_inside_a_worktree_the_project_is_the_outer_one_with_another_base(root, project):
    session(project)
    path, _ = ensure(project, "WFS-trial", "a")
    os.makedirs(f"{path}/deep/er")

    for start in (path, f"{path}/deep/er"):
        place, settings = find(start)
        assert place == (str(root), None, path, str(root / ".workflow"))
        assert settings == project.settings
    assert find(str(root / ".workflow/worktrees"))[0].base == str(root)


def test_settings_are_those_of_the_project_whatever_the_worktree_says(root, project):
    session(project)
    path, _ = ensure(project, "WFS-trial", "a")
    write(path, detent__toml='gates = "off"\n')

    assert find(path)[1].gates == "strict"


def test_a_worktree_of_a_project_that_has_its_state_in_git_uses_the_real_state(root):
    with opened(root) as project:
        session(project)
        (root / ".workflow/.gitignore").unlink()
        commit(root, "with its state")
        path, _ = ensure(project, "WFS-trial", "a")

        assert os.path.exists(f"{path}/.workflow")
        assert find(path)[0].state == str(root / ".workflow")
        assert find(f"{path}/.workflow")[0].state == str(root / ".workflow")
        assert "worktrees" not in status(root)


def test_a_project_of_its_own_inside_a_worktree_stays_one(root, project):
    session(project)
    path, _ = ensure(project, "WFS-trial", "a")
    write(path, **{"fixture/detent__toml": ""})

    assert find(f"{path}/fixture")[0].root == f"{path}/fixture"


def test_a_project_below_the_top_of_the_repository_is_found_below_the_worktree(tmp_path):
    repository(tmp_path)
    commit(tmp_path, **{"sub/detent__toml": "", "sub/in__txt": "x", "other/x__txt": "x"})
    init_project(tmp_path / "sub")
    with opened(tmp_path / "sub") as project:
        session(project)
        path, _ = ensure(project, "WFS-trial", "a")
        for start in (path, f"{path}/sub", f"{path}/other"):
            assert find(start)[0][:3] == (str(tmp_path / "sub"), None, f"{path}/sub")
        write(path, **{"sub/in__txt": "changed", "other/x__txt": "changed"})
        merge(project, "WFS-trial", "a")
    assert (tmp_path / "sub/in.txt").read_text() == "changed"
    assert (tmp_path / "other/x.txt").read_text() == "changed"


def test_a_package_of_a_monorepo_has_its_own_worktrees(tmp_path):
    settings = 'default_project = "web"\n[projects.web]\npath = "web"\n[projects.api]\npath = "services/api"\n'
    repository(tmp_path, settings)
    commit(tmp_path, **{"web/x__txt": "x", "services/api/x__txt": "x"})
    for name in ("web", "api"):
        with open_project(tmp_path, project=name) as project:
            session(project)
            path, _ = ensure(project, "WFS-trial", "a")
            assert path.endswith(f"/worktrees/{name}.WFS-trial.a")
            assert find(path, project=name)[0].state == str(tmp_path / ".workflow/projects" / name)
    assert find(path)[0].project == "web"
    assert find(f"{path}/services/api")[0][1:3] == ("api", f"{path}/services/api")


def test_a_package_that_is_not_committed_is_refused(tmp_path):
    repository(tmp_path, '[projects.web]\npath = "web"\n')
    (tmp_path / "web").mkdir()
    with open_project(tmp_path, project="web") as project:
        session(project)
        with pytest.raises(Refused, match="HEAD has nothing in web"):
            ensure(project, "WFS-trial", "a")


# Gates and checkpoints


def test_gates_and_checkpoints_of_a_phase_are_about_its_worktree(root, project):
    session(project)
    trees = Worktrees(project, "WFS-trial", "phase")
    inside = project.beside(trees.place("a"), as_runner(project.actor)).session("WFS-trial")
    write(tree_of(root), made__txt="by the agent\n")
    receipt = inside.gates.check("merge", phase="a")
    inside.gates.record("merge", phase="a", receipt=receipt)
    (judged,) = inside.gates.judgements("a")["a"]
    write(tree_of(root), made__txt="changed\n")

    assert (receipt.result, judged.verdict) == (Result.PASSED, Verdict.PASS)
    assert inside.gates.judgements("a")["a"][0].verdict is Verdict.STALE
    assert "made.txt" in project.checkpoints.files(inside.checkpoints.take().tree.manifest)
    trees.close()


def test_what_one_base_has_seen_is_never_taken_for_the_other(root, project):
    """Both have the same paths with the same sizes, and look at them in turn, each as a process of its own would."""
    session(project)
    path, _ = ensure(project, "WFS-trial", "a")
    write(path, code__py="ONE\nTWO\nTHREE\n")
    stamp = time.time() - 100
    for place in (root, path):
        os.utime(os.path.join(place, "code.py"), (stamp, stamp))

    seen = []
    for _ in range(3):
        for place in (root, path):
            with opened(Path(place)) as again:
                seen.append(again.checkpoints.capture("look").files["code.py"].digest)
    assert len(set(seen)) == 2
    assert seen == seen[:2] * 3


# Removing


def test_a_worktree_goes_when_all_of_it_is_merged(root, project):
    session(project)
    ensure(project, "WFS-trial", "a")
    write(tree_of(root), made__txt="done\n")
    merge(project, "WFS-trial", "a")

    assert remove(project, "WFS-trial", "a") == []
    assert set(os.listdir(root / ".workflow/worktrees")) == {".gitignore", ".lock"}
    assert git(root, "branch", "--list", "detent/*") == ""
    assert git(root, "worktree", "list").count("\n") == 0
    assert remove(project, "WFS-trial", "a") == []


@pytest.mark.parametrize("how", ["uncommitted", "committed", "on another branch"])
def test_a_worktree_with_work_that_is_not_merged_stays(root, project, how):
    session(project)
    ensure(project, "WFS-trial", "a")
    merge(project, "WFS-trial", "a")
    if how == "on another branch":
        git(tree_of(root), "checkout", "--quiet", "-b", "elsewhere")
    write(tree_of(root), made__txt="late\n")
    if how != "uncommitted":
        commit(tree_of(root))

    (notice,) = remove(project, "WFS-trial", "a")

    assert "detent merge a --session WFS-trial" in notice
    assert (tree_of(root) / "made.txt").read_text() == "late\n"


def test_what_detent_generates_in_a_worktree_is_no_work(root, project):
    session(project)
    ensure(project, "WFS-trial", "a")
    generated = {".claude/state/workflow__json": "{}", ".claude/workflow_state_system__md": "x"}
    write(tree_of(root), **generated, y__txt="y")
    merge(project, "WFS-trial", "a")

    assert git(root, "show", "--name-only", "--format=", "HEAD^2") == "y.txt"
    assert remove(project, "WFS-trial", "a") == []


# As the runner uses them


def test_phases_side_by_side_begin_with_what_they_need_and_end_merged(root, project):
    session(project)
    trees = Worktrees(project, "WFS-trial", "phase")
    for layer in (("a",), ("b", "c"), ("d",)):
        for phase in layer:
            handle = project.beside(trees.place(phase), as_runner(project.actor)).session("WFS-trial")
            if phase != "a":
                handle.begin(phase)
            write(trees.place(phase).base, **{f"{phase}__txt": phase})
        for phase in layer:
            handle = project.beside(trees.place(phase), as_runner(project.actor)).session("WFS-trial")
            outcome = handle.gates.run("merge", phase=phase)
            assert handle.gates.judgements(phase)[phase][0].verdict is Verdict.PASS, outcome
            handle.finish(f"{phase} is done", phase=phase)
            trees.done(phase)
        if layer == ("b", "c"):
            assert {path.name for path in root.glob("?.txt")} == {"a.txt", "b.txt", "c.txt"}
    trees.close()

    assert {path.name for path in root.glob("?.txt")} == {f"{key}.txt" for key in "abcd"}
    assert project.notices == []
    assert git(root, "branch", "--list", "detent/*") == ""


def test_a_phase_begins_with_the_work_of_those_it_needs(root, project):
    session(project)
    trees = Worktrees(project, "WFS-trial", "phase")
    write(trees.place("a").base, a__txt="a")
    merge(project, "WFS-trial", "a")

    assert os.path.exists(os.path.join(trees.place("b").base, "a.txt"))
    trees.close()


def test_a_session_has_one_worktree_which_goes_when_the_session_is_over(root, project):
    session(project, "session")
    trees = Worktrees(project, "WFS-trial", "session")

    assert trees.place("a") == trees.place("d")
    write(trees.place("a").base, a__txt="a")
    trees.done("a")
    assert tree_of(root, "WFS-trial").exists()
    merge(project, "WFS-trial")
    project.session("WFS-trial").cancel("enough")
    trees.close()
    assert not tree_of(root, "WFS-trial").exists()
    assert (root / "a.txt").exists()


def test_what_a_cancelled_session_did_not_merge_stays_in_its_worktree(tmp_path):
    repository(tmp_path, 'gates = "off"\n')
    with opened(tmp_path) as project:
        session(project, "session")
        trees = Worktrees(project, "WFS-trial", "session")
        write(trees.place("a").base, a__txt="a")
        project.session().cancel("not wanted")
        trees.close()

        assert "was not removed" in project.notices[0]
        assert (tree_of(tmp_path, "WFS-trial") / "a.txt").exists()
        assert not (tmp_path / "a.txt").exists()


def test_without_gates_the_work_of_a_finished_phase_is_merged_all_the_same(tmp_path):
    repository(tmp_path, 'gates = "off"\n')
    with opened(tmp_path) as project:
        session(project)
        trees = Worktrees(project, "WFS-trial", "phase")
        write(trees.place("a").base, a__txt="a")
        project.beside(trees.place("a"), as_runner(project.actor)).session("WFS-trial").finish("done", phase="a")
        trees.done("a")
        trees.close()

        assert (tmp_path / "a.txt").exists()
        assert not tree_of(tmp_path).exists()


def test_many_threads_make_and_merge_their_worktrees_at_once(root, project):
    keys = [f"p{number}" for number in range(6)]
    session(project, graph=workflow(dict.fromkeys(keys, ())))
    hook(root, "pre-merge-commit", "sleep 0.2")
    trees = Worktrees(project, "WFS-trial", "phase")
    failed = []

    def work(key):
        try:
            write(trees.place(key).base, **{f"{key}__txt": key})
            with opened(root) as own:
                merge(own, "WFS-trial", key)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trees.close()

    assert failed == []
    assert {path.stem for path in root.glob("p?.txt")} == set(keys)
    assert sum(line.startswith("Merge ") for line in log(root)) == 6
