"""The command line of a sandbox, and whether one works here."""

import os

import pytest

from detent.process import run
from detent.process.sandbox import Access, Mount, Sandbox, problem
from tests.support.sandboxed import NO_SANDBOX, use_sandbox


def write(path, source=""):
    return Mount(path=path, access=Access.WRITE, source=source)


def read(path):
    return Mount(path=path, access=Access.READ)


def test_mounts_of_longer_paths_are_made_later_and_so_cover_the_others():
    sandbox = Sandbox(mounts=(read("/p/.state"), write("/p/.state/tree"), write("/p"), write("/", "/elsewhere")))

    assert [mount.path for mount in sandbox.ordered()] == ["/", "/p", "/p/.state", "/p/.state/tree"]


def test_variables_that_lead_to_what_is_hidden_are_left_out():
    sandbox = Sandbox(without=frozenset({"TMUX"}))

    assert sandbox.environment({"TMUX": "/x", "HOME": "/h"}) == {"HOME": "/h"}


def test_a_program_that_fails_is_no_sandbox(monkeypatch):
    problem.cache_clear()

    assert problem() == f"bwrap does not work here: {NO_SANDBOX}"


def test_without_the_program_there_is_no_sandbox(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    problem.cache_clear()

    assert problem() == "bwrap is not on PATH"


@pytest.mark.parametrize("access", [Access.WRITE, Access.READ, Access.HIDE])
def test_a_process_sees_what_its_mounts_say(monkeypatch, tmp_path, access):
    use_sandbox(monkeypatch)
    (tmp_path / "file").write_text("content")
    sandbox = Sandbox(mounts=(Mount(path=str(tmp_path), access=access),))
    ran = run(f"cat {tmp_path}/file; echo more > {tmp_path}/other", cwd="/", timeout_s=30, sandbox=sandbox)

    assert ran.output.startswith("content") == (access is not Access.HIDE)
    assert (tmp_path / "other").exists() == (access is Access.WRITE)


def test_the_processes_and_the_account_of_a_sandbox(monkeypatch):
    use_sandbox(monkeypatch)
    ran = run(
        "id -u; echo $$; ls -d /proc/[0-9]* | wc -l; grep CapEff /proc/self/status",
        cwd="/",
        timeout_s=30,
        sandbox=Sandbox(),
    )

    account, pid, processes, capabilities = ran.output.split("\n")[:4]
    assert (account, pid) == (str(os.getuid()), "2")
    assert int(processes) < 10
    # Neither mounting (bit 21), nor devices (27), nor files by their number (2).
    assert not int(capabilities.split()[1], 16) & (1 << 21 | 1 << 27 | 1 << 2)


@pytest.fixture(autouse=True)
def fresh():
    yield
    problem.cache_clear()
