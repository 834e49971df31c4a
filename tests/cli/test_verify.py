"""`verify`, `publish` and `export bundle` as people and CI type them."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from detent.core.session.events import GateApproved
from detent.engine.bundles.publishing import publish_file
from detent.engine.project import open_project
from tests.support.command import Tool
from tests.support.gated import started
from tests.support.keys import list_approvers, make_ssh_key, ssh_signer
from tests.support.project import build_project
from tests.support.records import AGENT, append_by_hand
from tests.support.repository import git

SESSION = "WFS-try-it"


@pytest.fixture
def work(tmp_path, nobody):
    """A project with a session that is completed but for its last phase, in git."""
    project, session = started(tmp_path / "project", '{ kind = "command", command = "true" }, { kind = "approval" }')
    with project:
        session.gates.run("command", phase="work")
        session.approve("looked at it", gate="approval")
        session.finish("done")
        project.flush()
    git(tmp_path / "project", "init", "--quiet")
    return Tool(tmp_path / "project")


@pytest.fixture
def elsewhere(tmp_path):
    """Another directory, with no project around."""
    (tmp_path / "elsewhere").mkdir()
    return Tool(tmp_path / "elsewhere")


def forge(work):
    with open_project(work.directory, actor="ada") as project:
        event = GateApproved(phase="work", gate="approval", reason="ok")
        append_by_hand(project, SESSION, event, actor=AGENT)


def test_a_record_that_holds_is_exit_code_0_and_says_what_rests_on_the_word_of_the_machine(work, elsewhere):
    path = str(elsewhere.directory / "record.bundle")
    work("export", "bundle", "-o", path).ok()

    here, there = work("verify").ok(), elsewhere("verify", "record.bundle").ok()

    assert "everything that can be checked holds" in here.out
    assert "NOTE       attended decisions rest on the word of the machine that ran" in there.out
    assert "about git tree " in there.out
    told = elsewhere("verify", "record.bundle", "--json").json()
    assert (told["holds"], told["session"], told["gates"], told["finishes"]) == (True, SESSION, 2, 1)
    assert [one["decision"] for one in told["decisions"]] == ["approve"]
    assert {one["outcome"] for one in told["findings"]} == {"note"}


def test_a_forged_approval_is_exit_code_1_and_named_by_its_commit(work, elsewhere):
    forge(work)
    path = str(elsewhere.directory / "record.bundle")
    work("export", "bundle", "-o", path).ok()

    for ran in (work("verify"), elsewhere("verify", "record.bundle")):
        assert ran.code == 1
        assert "WRONG      commit 5: approve of work (approval) is a person's decision" in ran.out
        assert "it does not hold" in ran.out
    assert not elsewhere("verify", "record.bundle", "--json").json()["holds"]


def test_a_bundle_with_a_changed_byte_is_exit_code_1(work, elsewhere):
    path = elsewhere.directory / "record.bundle"
    work("export", "bundle", "-o", str(path)).ok()
    data = path.read_bytes()
    at = data.index(b"looked at it")
    path.write_bytes(data[:at] + b"L" + data[at + 1 :])

    ran = elsewhere("verify", "record.bundle")

    assert ran.code == 1
    assert "journal.jsonl does not have the SHA-256" in " ".join(ran.out.split())


def test_what_ci_asks_for_is_compared(work, elsewhere):
    path = str(elsewhere.directory / "record.bundle")
    work("export", "bundle", "-o", path).ok()
    (elsewhere.directory / "approvers.toml").write_text("")
    (elsewhere.directory / "base.toml").write_text('[decisions]\nassurance = "signed"\n')
    project = str(work.directory)

    asked = ("--approvers", "approvers.toml", "--settings", "base.toml", "--assurance", "signed", "--completed")
    ran = elsewhere("verify", "record.bundle", *asked, "--files", project)

    told = " ".join(ran.out.split())
    assert ran.code == 1
    assert "is attended, and signed is needed" in told
    assert "the session is active, not completed" in told
    assert "do not have the workflow of the session" in told
    assert "are not those of the last checkpoint" not in told
    (work.directory / "calc.py").write_text("slipped in\n")
    again = elsewhere("verify", "record.bundle", "--files", project)
    assert "are not those of the last checkpoint: calc.py" in " ".join(again.out.split())


def test_the_page_about_verifying_tells_what_to_type_in_ci(tmp_path, nobody):
    """The shell example of docs/verify.md, in a clone of a repository whose session a person signed for."""
    text = (Path(__file__).parents[2] / "docs" / "verify.md").read_text()
    [script] = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    work, clone = tmp_path / "work", tmp_path / "clone"
    key = make_ssh_key(tmp_path / "keys" / "ada")
    phases = 'phases = [{ key = "work", gates = [{ kind = "approval" }] }]'
    settings = f'[decisions]\nassurance = "signed"\n[workflows.short]\n{phases}\n'
    build_project(work, settings, files={"a.txt": "one\n"})
    list_approvers(work, ada=key)
    git(work, "init", "--quiet", "-b", "main")
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "-m", "first")
    git(work, "checkout", "--quiet", "-b", "login")
    with open_project(work, actor="ada") as project:
        session = project.start("short", "Add login")
        (work / "a.txt").write_text("two\n")
        project.signer = ssh_signer(tmp_path / "keys" / "ada")
        project.session().approve("looked at it")
        session.finish("done")
        publish_file(project, session.id)
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "-m", "login")
    git(tmp_path, "clone", "--quiet", "-b", "login", str(work), str(clone))

    def ran():
        return subprocess.run(["bash", "-c", script], cwd=clone, capture_output=True, text=True, check=False)

    done = ran()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "approve work approval by ada (signed, verified" in done.stdout
    (clone / "a.txt").write_text("slipped in\n")
    assert ran().returncode == 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ("verify nowhere.bundle", 1, "nowhere.bundle"),
        ("verify detent.toml", 1, "is not a bundle"),
        ("verify --approvers nowhere.toml", 1, "there is no file nowhere.toml"),
        ("verify --files nowhere", 1, "there is no directory nowhere"),
        ("verify x.bundle --session y", 2, "not both"),
        ("publish --to artifact", 2, "-o FILE belongs to --to artifact"),
        ("publish -o x", 2, "-o FILE belongs to --to artifact"),
        ("publish --to ref", 1, "no remote is set"),
    ],
)
def test_a_mistake_is_named(work, arguments, code, told):
    found = work(*arguments.split()).error()

    assert found[0] == code
    assert told in found[1]


def test_an_artifact_is_written_and_only_its_path_is_printed(work, elsewhere):
    path = str(elsewhere.directory / "out.bundle")

    assert work("publish", "--to", "artifact", "-o", path).ok().out == f"{path}\n"
    assert work("publish", "--to", "artifact", "-o", path, "--json").json()["written"] == path
    elsewhere("verify", "out.bundle").ok()


def test_a_file_is_published_with_the_commands_that_commit_it(work):
    told = work("publish").ok()

    assert (work.directory / ".detent" / f"{SESSION}.bundle").exists()
    assert f"  git add .detent/{SESSION}.bundle" in told.out
    assert work("publish", "--json").json()["written"].endswith(f".detent/{SESSION}.bundle")
    assert os.listdir(work.directory / ".detent") == [f"{SESSION}.bundle"]
    # It is no file of the project, so that nothing becomes stale by it.
    work("verify", f".detent/{SESSION}.bundle", "--files", ".").ok()
