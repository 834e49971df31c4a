"""Files that hold secrets by their names are in no checkpoint, unless a person says so."""

import subprocess

import pytest

from detent.engine.project import open_project
from tests.support.project import build_project, write
from tests.support.values import row

SECRET_FILES = (
    *(".env", ".env.local", "deploy/.env.production", "prod.env", ".envrc", "key.pem", "tls/server.key", "id_rsa"),
    *("deploy/id_ed25519", "store.p12", "store.pfx", "app.jks", ".netrc", ".pgpass", ".pypirc", ".htpasswd"),
    *("prod.tfvars", ".aws/credentials", ".docker/config.json", "credentials.json", ".git-credentials"),
)
HARMLESS_FILES = (
    ".env.example",
    ".env.sample",
    ".env.template",
    "environment.py",
    "keys.py",
    "id_rsa.pub",
    "src/key.ts",
)
CONTENT = "TOP=hunter2-the-secret"


@pytest.fixture
def place(tmp_path):
    build_project(tmp_path, files=dict.fromkeys((*SECRET_FILES, *HARMLESS_FILES), CONTENT))
    return tmp_path


def opened(place):
    return open_project(place, actor="tester")


def captured(project):
    return set(project.checkpoints.files(project.session().checkpoints.all()[-1].event.tree.manifest))


def test_they_are_not_captured_and_a_person_is_told_once(place):
    with opened(place) as project:
        project.start(row("a", "b"), "try it")

        assert captured(project) == set(HARMLESS_FILES)
        [told] = [notice for notice in project.notices if "may hold secrets" in notice]
        project.session().finish("done")
        project.session().begin("b")
        assert [notice for notice in project.notices if "may hold secrets" in notice] == [told]
        assert f"and {len(SECRET_FILES) - 5} more" in told
        assert "name them in secrets of [checkpoint] in detent.toml" in told
        position = project.session().checkpoints.all()[-1]
        left_out = project.checkpoints.contents(position.event.tree.manifest).left_out
    assert left_out == dict.fromkeys(SECRET_FILES, "it may hold secrets")


def test_no_content_of_them_is_stored(place):
    for name in HARMLESS_FILES:
        (place / name).unlink()
    with opened(place) as project:
        project.start(row("a"), "try it").checkpoints.take("here")

    for path in (place / ".workflow").rglob("*"):
        assert not path.is_file() or b"the-secret" not in path.read_bytes(), path


def test_a_person_names_those_that_are_captured_all_the_same(place):
    write(place, "detent.toml", 'gates = "off"\n[checkpoint]\nsecrets = [".env", "tls/*.key"]\n')
    with opened(place) as project:
        project.start(row("a"), "try it")

        assert captured(project) == {*HARMLESS_FILES, ".env", "tls/server.key"}


def test_the_setting_holds_for_files_that_were_captured_before(place):
    write(place, "detent.toml", 'gates = "off"\n[checkpoint]\nsecrets = ["*.pem"]\n')
    with opened(place) as project:
        project.start(row("a", "b"), "try it")
        assert "key.pem" in captured(project)
    write(place, "detent.toml", 'gates = "off"\n')
    with opened(place) as project:
        project.session().checkpoints.take("here")
        assert "key.pem" not in captured(project)


def test_an_agent_cannot_declare_one(place):
    with opened(place) as project:
        project.start(row("a", "b"), "try it").finish("done", artifacts=[".env", "keys.py"])

        assert ".env" not in captured(project)
        assert "keys.py" in captured(project)


def test_what_git_tracks_is_in_the_repository_anyway(place):
    for command in (["init", "-q"], ["add", "key.pem"]):
        subprocess.run(["git", *command], cwd=place, check=True)
    with opened(place) as project:
        project.start(row("a"), "try it")

        assert "key.pem" in captured(project)
        assert ".env" not in captured(project)


def test_what_git_ignores_is_left_out_without_a_word(place):
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    write(place, ".gitignore", "\n".join(SECRET_FILES))
    with opened(place) as project:
        project.start(row("a"), "try it")

        assert not any("may hold secrets" in notice for notice in project.notices)


def test_a_rollback_leaves_them_alone(place):
    with opened(place) as project:
        session = project.start(row("a", "b"), "try it")
        write(place, ".env", "CHANGED=1")
        write(place, "new.pem", "new")
        write(place, "keys.py", "changed")
        session.finish("done")
        session.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    assert (place / ".env").read_text() == "CHANGED=1"
    assert (place / "new.pem").read_text() == "new"
    assert (place / "keys.py").read_text() == CONTENT
