"""A bundle is brought where CI finds it, and the user's repository stays as it is."""

from pathlib import Path

import pytest

from detent.doctor.verification import verify_bundle
from detent.engine.bundles.publishing import publish_file, publish_ref
from detent.engine.project import open_project
from detent.errors import Refused
from tests.support.project import build_project
from tests.support.repository import git
from tests.support.values import TickingClock, row

REMOTE = '[publish]\nremote = "origin"\n'


@pytest.fixture
def tmp_path(quick_path, nobody):
    """In memory: git syncs a lot."""
    return quick_path


@pytest.fixture
def make(tmp_path):
    def making(settings=""):
        root = tmp_path / "project"
        build_project(root, f'gates = "off"\n{settings}', files={"a.txt": "one\n"})
        git(tmp_path, "init", "--quiet", "--bare", "remote.git")
        git(root, "init", "--quiet")
        git(root, "remote", "add", "origin", str(tmp_path / "remote.git"))
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "-m", "first")
        hook = root / ".git" / "hooks" / "pre-push"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        project = open_project(root, actor="tester", clock=TickingClock())
        session = project.start(row("a"), "In git")
        session.finish("done")
        project.flush()
        return project, session

    return making


def content(directory):
    return {str(path): path.read_bytes() for path in sorted(Path(directory).rglob("*")) if path.is_file()}


def test_a_bundle_is_written_into_the_repository_and_not_committed(make):
    project, session = make()
    with project:
        before = content(f"{project.place.root}/.git")

        path, bundle = publish_file(project, session.id)
        publish_file(project, session.id)

        assert path == f"{project.place.root}/.detent/{session.id}.bundle"
        assert content(f"{project.place.root}/.git") == before
        assert git(project.place.root, "status", "--porcelain") == "?? .detent/"
        assert not bundle.with_files
        assert verify_bundle(path).is_sound


def test_a_published_bundle_is_no_file_of_the_project(make):
    project, session = make()
    with project:
        publish_file(project, session.id)

        assert not [name for name in project.files().files if ".detent" in name]


def test_nothing_is_pushed_unless_a_person_named_the_remote(make, tmp_path):
    project, session = make()
    with project, pytest.raises(Refused, match="no remote is set") as refused:
        publish_ref(project, session.id)

    assert '[publish] remote = "origin"' in str(refused.value.way_out)
    assert git(tmp_path / "remote.git", "for-each-ref") == ""


def test_a_ref_of_the_remote_gets_the_bundle_and_the_repository_nothing(make, tmp_path):
    project, session = make(REMOTE)
    root, remote = project.place.root, tmp_path / "remote.git"
    with project:
        before = content(f"{root}/.git")

        pushed = publish_ref(project, session.id)
        again = publish_ref(project, session.id)

        assert pushed.commit == again.commit
        assert content(f"{root}/.git") == before
        assert git(remote, "for-each-ref", "--format=%(refname) %(objectname)") == (
            f"refs/detent/{session.id} {pushed.commit}"
        )
        git(root, "fetch", "--quiet", "origin", pushed.ref)
        git(root, "worktree", "add", "--quiet", "--detach", str(tmp_path / "fetched"), "FETCH_HEAD")
        result = verify_bundle(tmp_path / "fetched" / f"{session.id}.bundle")
        assert result.is_sound
        assert result.commits == session.state.version

        session.checkpoints.take("later")
        assert publish_ref(project, session.id).commit != pushed.commit
        assert git(remote, "rev-list", "--count", "--all") == "1"


def test_a_remote_that_is_no_name_or_cannot_be_reached_is_said(make, tmp_path):
    project, session = make('[publish]\nremote = "--receive-pack=touch pwned"\n')
    with project, pytest.raises(Refused, match="git -c push"):
        publish_ref(project, session.id)

    assert not list(tmp_path.rglob("pwned"))
