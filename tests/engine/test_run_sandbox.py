"""What the sandboxes of a run make writable, read-only and hidden."""

import os
import socket
import subprocess
import sys

import pytest

from detent.config.place import at_root
from detent.config.settings import SandboxSettings
from detent.engine.sandbox import RunSandbox, check_available, why_off
from detent.errors import Refused
from detent.process.sandbox import Access
from tests.support.project import build_project

WRITE, READ, HIDE = Access.WRITE, Access.READ, Access.HIDE


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home, in which nothing of the account's own is found."""
    directory = tmp_path / "home"
    directory.mkdir()
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.setenv("XDG_STATE_HOME", str(directory / "state"))
    for name in ("XDG_CACHE_HOME", "SSH_AUTH_SOCK", "TMUX", "CLAUDE_CONFIG_DIR", "DOCKER_HOST"):
        monkeypatch.delenv(name, raising=False)
    return directory


@pytest.fixture
def root(tmp_path):
    directory = build_project(tmp_path / "project")
    subprocess.run(["git", "init", "-q"], cwd=directory, check=True)
    return directory


def made(root, tmp_path, **settings):
    private = tmp_path / "private"
    private.mkdir(exist_ok=True)
    return RunSandbox(at_root(str(root)), SandboxSettings(**settings), str(private))


def agent(root, tmp_path, adapter="command", env=None, **settings):
    return made(root, tmp_path, **settings).for_agent(at_root(str(root)), adapter, env or dict(os.environ))


def accesses(sandbox):
    return {mount.path: mount.access for mount in sandbox.mounts}


def test_the_project_is_writable_and_what_decides_in_it_is_not(home, root, tmp_path):
    (root / "approvers.toml").write_text("")
    (root / ".claude").mkdir()
    found = accesses(agent(root, tmp_path))

    assert found[str(root)] is WRITE
    assert found[str(root / ".git")] is WRITE
    for name in (".workflow", "detent.toml", "approvers.toml", ".claude", ".git/config", ".git/hooks"):
        assert found[str(root / name)] is READ, name


def test_temporary_files_are_those_of_the_run(home, root, tmp_path):
    mounts = {mount.path: mount for mount in agent(root, tmp_path).mounts}

    assert mounts["/tmp"].access is WRITE
    assert mounts["/tmp"].source.startswith(str(tmp_path / "private"))


def test_directories_above_a_protected_file_cannot_be_renamed(home, root, tmp_path):
    module = root / ".git/modules/vendor/lib"
    module.mkdir(parents=True)
    (module / "config").write_text("")
    found = accesses(agent(root, tmp_path))

    assert found[str(module / "config")] is READ
    for directory in (module, module.parent, module.parent.parent):
        assert found[str(directory)] is WRITE


def test_an_agent_has_the_directory_of_its_client_without_the_settings_in_it(home, root, tmp_path):
    (home / ".codex").mkdir()
    found = accesses(agent(root, tmp_path, "claude-code"))

    assert found[str(home / ".claude")] is WRITE
    assert found[str(home / ".claude/settings.json")] is READ
    assert (home / ".claude/settings.json").read_text() == "{}\n"
    assert found[str(home / ".claude/skills")] is READ
    assert str(home / ".codex") not in found


def test_a_check_has_no_directory_of_a_client(home, root, tmp_path):
    (home / ".claude").mkdir()
    found = accesses(made(root, tmp_path).for_check(at_root(str(root))))

    assert str(home / ".claude") not in found
    assert found[str(home / ".cache/detent/bytecode")] is WRITE
    assert accesses(agent(root, tmp_path))[str(home / ".cache/detent")] is READ


def test_keys_and_sockets_are_hidden_unless_they_are_allowed(home, root, tmp_path, monkeypatch):
    for name in (".ssh", ".gnupg", "keys"):
        (home / name).mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(home)
        listener.bind("agent")
        listener.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(home / "agent"))
        closed = agent(root, tmp_path, hide=("~/keys",))
        opened = agent(root, tmp_path, allow=("$SSH_AUTH_SOCK", "~/.ssh"))

    found = accesses(closed)
    assert {found[str(home / name)] for name in (".ssh", ".gnupg", "keys", "agent")} == {HIDE}
    assert found["/run"] is HIDE
    assert "SSH_AUTH_SOCK" in closed.without
    assert accesses(opened)[str(home / ".ssh")] is WRITE
    assert accesses(opened)[str(home / "agent")] is WRITE
    assert "SSH_AUTH_SOCK" not in opened.without


def test_what_is_allowed_opens_nothing_inside_of_it(home, root, tmp_path):
    found = accesses(agent(root, tmp_path, allow=(str(tmp_path), ".")))

    assert found[str(tmp_path)] is WRITE
    assert found[str(root / ".workflow")] is READ
    assert found[str(root / "detent.toml")] is READ


def test_the_python_of_detent_is_read_only_in_the_project_too(home, root, tmp_path, monkeypatch):
    (root / ".venv").mkdir()
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))

    assert accesses(agent(root, tmp_path))[str(root / ".venv")] is READ
    assert accesses(agent(root, tmp_path, allow=(".venv",)))[str(root / ".venv")] is WRITE


def test_a_link_in_place_of_settings_is_put_back(home, root, tmp_path):
    (tmp_path / "shared.toml").write_text("")
    (root / "approvers.toml").symlink_to(tmp_path / "shared.toml")
    sandbox = made(root, tmp_path)
    found = accesses(sandbox.for_check(at_root(str(root))))
    (root / "approvers.toml").unlink()
    (root / "approvers.toml").write_text("mine")
    sandbox.set_aside()

    assert found[str(tmp_path / "shared.toml")] is READ
    assert (root / "approvers.toml").readlink() == tmp_path / "shared.toml"
    assert (root / "approvers.toml.aside-1").read_text() == "mine"


def test_a_sandbox_that_must_be_is_refused_where_there_is_none():
    with pytest.raises(Refused, match="must be in a sandbox"):
        check_available(SandboxSettings(mode="required"))

    check_available(SandboxSettings(mode="auto"))
    assert why_off(SandboxSettings(mode="off")) == "detent.toml says so"


def test_the_project_around_a_worktree_can_be_read_wherever_it_is(home, root, tmp_path):
    tree = root / ".workflow/worktrees/WFS-x"
    tree.mkdir(parents=True)
    place = at_root(str(root))._replace(base=str(tree))
    found = accesses(made(root, tmp_path).for_check(place))

    assert found[str(root)] is READ
    assert found[str(tree)] is WRITE
    assert accesses(made(root, tmp_path).for_check(place, merges=True))[str(root)] is WRITE
