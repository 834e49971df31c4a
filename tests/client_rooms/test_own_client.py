"""A client in one module, registered with one line: installed, guarded, observed, run and removed like the others."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

SETTINGS = """
[workflows.row]
phases = [{ key = "06-implementation", gates = [{ kind = "tests" }] }, "08-code-review"]
[workflows.short]
phases = [{ key = "one" }, { key = "two" }]
"""
CONF = ".acme/agent.conf"
BEFORE = b"colour = blue\n\n# mine\n"


class Workplace:
    """A project, the client's program on PATH, and a `detent` that imports the client's module first."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "project"
        (self.root / ".acme").mkdir(parents=True)
        (self.root / CONF).write_bytes(BEFORE)
        (self.root / "detent.toml").write_text(SETTINGS)
        plugins, programs = directory / "plugins", directory / "bin"
        plugins.mkdir()
        programs.mkdir()
        (plugins / "acme.py").write_text((Path(__file__).parents[1] / "support/acme.py").read_text())
        self.launcher = directory / "launcher.py"
        self.launcher.write_text(
            f"import sys\nsys.path.insert(0, {str(plugins)!r})\nimport acme\n"
            "from detent.cli.main import main\nsys.exit(main())\n"
        )
        program = programs / "acme"
        program.write_text('#!/bin/sh\necho "$@" >> "$ACME_LOG"\ncat > /dev/null\necho working\necho done\n')
        program.chmod(0o755)
        self.log = directory / "acme.log"
        self.env = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(directory),
            "USER": "ann",
            "ACME_LOG": str(self.log),
        }

    def detent(self, *arguments, code=0, **env):
        done = subprocess.run(
            [sys.executable, str(self.launcher), *arguments],
            cwd=self.root,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def hook(self, event, tool="", given=None, **fields):
        """The answer of the installed hook, started as the line in the client's configuration says."""
        [line] = [line for line in (self.root / CONF).read_text().splitlines() if line.startswith("hook = ")]
        payload = {"event": event, "dir": str(self.root), "talk": "t-1", "do": [tool, given or {}], **fields}
        done = subprocess.run(
            shlex.split(line.removeprefix("hook = ")),
            cwd=self.root,
            env={"PATH": "/usr/bin:/bin", "HOME": self.env["HOME"]},
            input=json.dumps(payload).encode(),
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert done.stderr == b""
        return json.loads(done.stdout or b"{}")


@pytest.fixture
def place(tmp_path):
    made = Workplace(tmp_path)
    made.detent("init", "--agent", "acme")
    return made


def test_it_is_installed_and_removed_byte_for_byte(place):
    assert (place.root / CONF).read_bytes().startswith(BEFORE + b"hook = ")
    assert "wrote" not in place.detent("init", "--agent", "acme")  # nothing is left to do
    assert place.detent("doctor").startswith("all is well\n")

    (place.root / CONF).write_bytes(BEFORE)
    assert "the hook line is missing" in place.detent("doctor", code=1)
    place.detent("init", "--agent", "acme")
    place.detent("uninstall")

    assert (place.root / CONF).read_bytes() == BEFORE
    assert not (place.root / ".workflow/install").exists()


@pytest.mark.parametrize(
    ("tool", "given", "reason"),
    [
        ("sh", {"command": "echo {} > .workflow/state.json"}, "a document of Detent"),
        ("sh", {"command": f"rm {CONF}"}, "configuration of Detent or of its hooks"),
        ("put", {"path": CONF}, "configuration of Detent or of its hooks"),
        ("put", {"path": ".codex/hooks.json"}, "configuration of Detent or of its hooks"),
        ("sh", {"command": "detent skip 08-code-review"}, "a person's decision"),
        ("helper", {"agent": "qa-engineer", "task": "look"}, "qa-engineer works on phase 08-code-review"),
    ],
)
def test_a_call_in_its_dialect_is_denied_in_its_dialect(place, tool, given, reason):
    place.detent("start", "row", "Add search")

    answer = place.hook("before", tool, given)

    assert list(answer) == ["no"]
    assert reason in answer["no"]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("sh", {"command": "ls -la src"}),
        ("put", {"path": "src/a.py"}),
        ("helper", {"agent": "software-developer", "task": "go"}),
        ("look", {"path": CONF}),
    ],
)
def test_an_ordinary_call_goes_on(place, tool, given):
    place.detent("start", "row", "Add search")

    assert place.hook("before", tool, given) == {}


def test_what_its_agent_does_is_observed(place):
    place.detent("start", "row", "Add search")

    place.hook("after", "sh", {"command": "pytest -q"}, came='{"out": "1 passed in 0.1s", "code": 0}')

    # The run is recorded behind the client, and the agent hears of it with its next call.
    wait_until(lambda: any((place.root / ".workflow").glob("**/.told/*")))
    heard = place.hook("after", "look", {"path": "src/a.py"}, came="{}")
    assert heard["at"] == "after"
    assert "tests of 06-implementation is PASS" in heard["hear"]
    assert "06-implementation" in place.hook("hello")["hear"]


def test_a_run_drives_it(place):
    told = place.detent("run", "Add search", "--workflow", "short", "--agent", "acme")

    assert place.log.read_text().splitlines() == ["--version", "--work", "--work"]
    assert "1 one               working" in told
    assert "run completed" in told


def test_its_shell_is_known_for_an_agents(place):
    place.detent("start", "row", "Add search")

    told = place.detent("skip", "06-implementation", "--reason", "dull", code=1, ACME_SHELL="1")

    assert "this is an agent's shell (ACME_SHELL is set)" in told
    place.detent("skip", "06-implementation", "--reason", "dull")
