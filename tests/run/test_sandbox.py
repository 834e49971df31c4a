"""What agents, checks and steps of a run cannot do in its sandbox."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import click
import msgspec
import pytest

import detent
from tests.support import hostile_agent
from tests.support.run_process import SESSION, TASK, Scene, ended
from tests.support.sandboxed import use_sandbox

NOBODY = 65534
GATED = '{ key = "a", gates = [{ kind = "approval", name = "look" }] }'
HOSTILE = "$PYTHON agent.py"
#: The agent knows the number of the process that runs it.
RUN = f'RUNNER=$$ exec $PYTHON -P -m detent run "{TASK}" --yes --no-wait'


@contextmanager
def listening(*paths):
    """Sockets of programs that would do what they are told."""
    with ExitStack() as stack:
        listeners = []
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.bind(str(path))
            one.listen()
            path.chmod(0o777)
            one.setblocking(False)
            listeners.append(one)
        yield listeners


def was_reached(listener):
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@pytest.fixture(scope="module", params=["own", "ordinary"])
def tried(request):
    """A run whose agent tries every trick: as the account of the tests, and as one without rights."""
    if request.param == "ordinary" and os.getuid() != 0:
        pytest.skip("the account of the tests is an ordinary one")
    account = NOBODY if request.param == "ordinary" else os.getuid()
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(prefix="d", dir=_outside()) as directory,
        tempfile.TemporaryDirectory(prefix="d") as temporary,
    ):
        use_sandbox(patch)
        home = Path(directory, "h")
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        for name in ("state/detent/page/opening.html", ".ssh/id_ed25519", ".gnupg/key", ".bashrc", ".cache/x"):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text("secret")
        scene = Scene(Path(directory, "p"), GATED, HOSTILE, run='sandbox = "required"\n')
        prepare(scene)
        agent, tmux, docker, other = [home / name for name in ("agent", "tmux", "run/docker", "other")]
        x11 = Path(temporary, "x11")
        Path(directory).chmod(0o755)
        Path(temporary).chmod(0o755)
        env = {
            **interpreter(account, directory),
            "HOME": str(home),
            "SSH_AUTH_SOCK": str(agent),
            "TMUX": f"{tmux},1,0",
            "DOCKER_HOST": f"unix://{docker}",
            "AGENT_SOCKET": str(agent),
            "TMUX_SOCKET": str(tmux),
            "DOCKER_SOCKET": str(docker),
            "OTHER_SOCKET": str(other),
            "X11_SOCKET": str(x11),
        }
        with listening(agent, tmux, docker, other, x11) as listeners:
            for path in (Path(directory), *Path(directory).rglob("*")):
                os.chown(path, account, account, follow_symlinks=False)
            before = _guarded(scene, home)
            ran = _run(scene, env, account)
            yield SimpleNamespace(
                scene=scene,
                ran=ran,
                outcomes=outcomes_of(scene),
                before=before,
                after=_guarded(scene, home),
                reached=[was_reached(listener) for listener in listeners],
            )
        scene.clear()


def interpreter(account, directory):
    """The variables with a Python that the account can start, and that finds Detent."""
    if _starts(account, sys.executable, "import detent"):
        return {"PYTHON": sys.executable}
    system, library = "/usr/bin/python3", Path(directory, "lib")
    for module in (detent, msgspec, click):
        shutil.copytree(os.path.dirname(str(module.__file__)), library / module.__name__)
    for path in (library, *library.rglob("*")):
        path.chmod(0o755)
    if not _starts(account, system, "import detent.engine.project", PYTHONPATH=str(library)):
        pytest.skip(f"no Python of account {account} finds Detent")
    return {"PYTHON": system, "PYTHONPATH": str(library)}


def _starts(account, python, code, **env):
    script = f"{python} -c '{code}'"
    started = subprocess.run(["sh", "-c", script], check=False, user=account, env=os.environ | env, capture_output=True)
    return started.returncode == 0


def _run(scene, env, account):
    started = subprocess.Popen(
        ["bash", "-c", RUN],
        cwd=scene.directory,
        env={**scene.environment, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        user=account if account != os.getuid() else None,
    )
    return ended(started, 120)


def prepare(scene):
    (scene.directory / "agent.py").write_text(Path(hostile_agent.__file__).read_text())
    (scene.directory / "approvers.toml").write_text("")
    (scene.directory / ".claude").mkdir()
    (scene.directory / ".claude/settings.json").write_text("{}")
    subprocess.run(["git", "init", "-q"], cwd=scene.directory, check=True)


def outcomes_of(scene):
    return json.loads((scene.directory / "outcomes.json").read_text())


def _outside():
    """A directory that is not for temporary files: those are the sandbox's own."""
    candidates = ("/srv", "/opt", os.path.expanduser("~"))
    return next(path for path in candidates if os.path.isdir(path) and os.access(path, os.W_OK))


def _guarded(scene, home):
    """The files that no agent may change, with their content."""
    paths = [
        *(scene.directory / name for name in ("detent.toml", "approvers.toml", ".claude", ".git/config", ".git/hooks")),
        *(home / name for name in (".bashrc", ".ssh", ".gnupg")),
    ]
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*")))]
    return {str(file): file.read_bytes() for file in files if file.is_file()}


@pytest.mark.parametrize("trick", hostile_agent.TRICKS)
def test_a_hostile_agent_cannot(tried, trick):
    assert tried.outcomes[trick] != "worked"


def test_nothing_that_counts_has_changed_after_all_tricks(tried):
    assert tried.after == tried.before
    assert tried.reached == [False] * 5
    assert tried.ran.exit_code == 6, tried.ran
    assert tried.scene.findings() == []
    state = [path for path in Path(tried.scene.state).rglob("*") if path.is_file()]
    assert not [path for path in state if hostile_agent.SPOILT.encode() in path.read_bytes()]


def test_the_record_says_that_the_agent_was_in_the_sandbox(tried):
    session = tried.scene.session()

    assert [each.sandboxed for each in session.phases["a"].delegations] == [True]
    assert "- Sandbox: on\n" in Path(tried.scene.state, SESSION, "REPORT.md").read_text()


#: Tricks that do harm in the project of the test only.
HARMLESS = (
    *("append to detent.toml", "replace detent.toml", "append to approvers.toml", "append to the settings of git"),
    *("make a hook of git", "move the git directory away", "append to the hooks of a client"),
    *("move the directory of a client away", "see the runner", "signal the runner", "append to the journal"),
)


def test_without_the_sandbox_the_tricks_work(play):
    """So that none of them fails for another reason."""
    scene = play(HOSTILE, GATED, run='sandbox = "off"\n')
    prepare(scene)
    ended(scene.start(RUN, argv=("bash", "-c"), TRICKS=",".join(HARMLESS), PYTHON=sys.executable), 60)

    assert outcomes_of(scene) == dict.fromkeys(HARMLESS, "worked")
