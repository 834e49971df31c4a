"""An agent that tries to get out of its sandbox. It notes for each trick whether it worked.

It is copied into the project and run there, so it knows nothing of the tests but its environment. A trick that works
must do no harm: whatever lies outside of the directories of the test is only opened, and a mount is taken away at once.
"""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT, HOME = Path.cwd(), Path.home()
STATE = Path(os.environ.get("DETENT_STATE", ""))
SESSION = STATE / os.environ.get("DETENT_SESSION", "")
SPOILT = "spoilt by the agent\n"
_LAZILY = 2


def appended(path: Path) -> None:
    """Only in directories of the test."""
    with path.open("a") as file:
        file.write(SPOILT)


def opened(path: Path) -> None:
    """Open a file for writing, and write nothing."""
    with path.open("a"):
        pass


def replaced(path: Path) -> None:
    fresh = ROOT / "fresh"
    fresh.write_text(SPOILT)
    os.replace(fresh, path)


def moved(path: Path) -> None:
    """Move a directory away, and put a copy in its place that can be written."""
    os.rename(path, f"{path}-moved")
    shutil.copytree(f"{path}-moved", path)


def made(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SPOILT)


def read(path: Path) -> None:
    if "secret" not in path.read_text():
        raise OSError("there is nothing in it")


def connected(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)


def shell(command: str) -> None:
    subprocess.run(["bash", "-ec", command], check=True, capture_output=True)


def signalled() -> None:
    os.kill(int(os.environ["RUNNER"]), 0)


def ended() -> None:
    """The process that reports to the runner, by the number that it has outside."""
    os.kill(int(os.environ["RUNNER"]), signal.SIGCONT)


def seen() -> None:
    if os.environ["RUNNER"] not in os.listdir("/proc"):
        raise ProcessLookupError("the runner is not among the processes")


def mounted() -> None:
    """Cover the state with an empty directory in memory, for a moment."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", bytes(STATE), b"tmpfs", 0, None) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    libc.umount2(bytes(STATE), _LAZILY)


def asked(*arguments: str) -> None:
    """Something that the runner should not carry out, past the program that would not ask for it."""
    from detent.engine.agents.forward import forward

    if forward(list(arguments)) != 0:
        raise PermissionError("the runner refuses")


def typed(*arguments: str) -> None:
    subprocess.run([sys.executable, "-P", "-m", "detent", *arguments], check=True, capture_output=True)


def approved_by_library() -> None:
    import detent

    with detent.open(ROOT) as project:
        project.session().approve("yes", gate="look")


def own_program() -> Path:
    import detent

    return Path(str(detent.__file__))


def second_copy() -> Path:
    return next(Path(os.environ["XDG_STATE_HOME"]).rglob("*.jsonl"))


JOURNAL = SESSION / "journal.jsonl"
KEY = HOME / ".ssh/id_ed25519"
ENTER = f"nsenter -t 1 -m touch {STATE}/x && test -e {STATE}/x"
TRICKS: dict[str, Callable[[], object]] = {
    "append to the journal": lambda: appended(JOURNAL),
    "replace the journal": lambda: replaced(JOURNAL),
    "remove the journal": JOURNAL.unlink,
    "move the state away": lambda: moved(STATE),
    "write the state document": lambda: replaced(STATE / "state.json"),
    "append to the second copy": lambda: appended(second_copy()),
    "write the lease of the run": lambda: appended(SESSION / ".process/runner.json"),
    "append to detent.toml": lambda: appended(ROOT / "detent.toml"),
    "replace detent.toml": lambda: replaced(ROOT / "detent.toml"),
    "append to approvers.toml": lambda: appended(ROOT / "approvers.toml"),
    "append to the hooks of a client": lambda: appended(ROOT / ".claude/settings.json"),
    "add further hooks of a client": lambda: made(ROOT / ".claude/settings.local.json"),
    "move the directory of a client away": lambda: moved(ROOT / ".claude"),
    "append to the settings of git": lambda: appended(ROOT / ".git/config"),
    "make a hook of git": lambda: made(ROOT / ".git/hooks/post-checkout"),
    "move the git directory away": lambda: moved(ROOT / ".git"),
    "write into the home": lambda: opened(HOME / ".bashrc"),
    "change Detent itself": lambda: opened(own_program()),
    "change bytecode of checks": lambda: opened(HOME / ".cache/detent/bytecode/x.pyc"),
    "read a token of the page": lambda: read(Path(os.environ["XDG_STATE_HOME"], "detent/page/opening.html")),
    "read an SSH key": lambda: read(KEY),
    "read a GPG key": lambda: read(HOME / ".gnupg/key"),
    "signal the runner": signalled,
    "continue the runner": ended,
    "see the runner": seen,
    "read the environment of the runner": lambda: Path(f"/proc/{os.environ['RUNNER']}/environ").read_bytes(),
    "reach the SSH agent": lambda: connected(os.environ["AGENT_SOCKET"]),
    "reach tmux": lambda: connected(os.environ["TMUX_SOCKET"]),
    "reach X11": lambda: connected(os.environ["X11_SOCKET"]),
    "reach docker": lambda: connected(os.environ["DOCKER_SOCKET"]),
    "reach any other program": lambda: connected(os.environ["OTHER_SOCKET"]),
    "remount the state": lambda: shell(f"mount -o remount,rw {STATE}"),
    "unmount the state": lambda: shell(f"umount {STATE}"),
    "mount over the state": mounted,
    "unmount in namespaces of its own": lambda: shell(f"unshare -Urm umount {STATE}"),
    "remount in namespaces of its own": lambda: shell(f"unshare -Urm mount -o remount,rw,bind {STATE}"),
    "enter the namespace of the first process": lambda: shell(ENTER),
    "use the root of the first process": lambda: appended(Path(f"/proc/1/root{JOURNAL}")),
    "approve by command": lambda: typed("approve", "-m", "yes"),
    "approve by the library": approved_by_library,
    "have the runner approve": lambda: asked("approve", "-m", "yes"),
    "have the runner roll back": lambda: asked("rollback", "PRE_a_v1", "--yes"),
    "have the runner accept": lambda: asked("gate", "accept", "look", "--all", "-m", "yes"),
    "have the runner work elsewhere": lambda: asked("note", "x", "-C", "/"),
    "have the runner read a key": lambda: asked("task", "add", "--file", str(KEY)),
    "have the runner write a file": lambda: asked("checkpoint", "export", str(HOME / "bundle")),
    "have the runner load a module": lambda: asked("hook", "claude-code", "--module", str(ROOT / "evil.py")),
    "have the runner open an editor": lambda: asked("task", "edit", "IMPL-1"),
}


def main() -> None:
    chosen = os.environ["TRICKS"].split(",") if os.environ.get("TRICKS") else list(TRICKS)
    if "TRICKS" not in os.environ and "DETENT_SOCKET" not in os.environ:
        raise SystemExit("this is no sandbox, and tricks are not chosen")
    outcomes = {}
    for name in chosen:
        try:
            TRICKS[name]()
            outcomes[name] = "worked"
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any failure is one
            outcomes[name] = f"{type(error).__name__}: {error}"
    (ROOT / "outcomes.json").write_text(json.dumps(outcomes, indent=1))


if __name__ == "__main__":
    main()
