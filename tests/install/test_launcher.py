"""The launcher of the plugins, and the plugins as `make plugins` makes them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from detent.clients.installing.plans import HOOK
from detent.clients.installing.programs import forget_program, record_program
from integrations.generate import differences, trees
from tests.support.command import Tool

LAUNCHER = Path(__file__).parents[2] / "integrations/launch.sh"
RUN_S_MAX = 60
SAYS = '#!/bin/sh\necho "$0 $*"\n'


class Machine:
    """A home, a project in it, and programs that say their own name when they are started."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "home/work/project"
        self.bin, self.inside = root / "bin", self.project / "bin"
        for directory in (self.project / ".workflow", self.project / "deep/er", self.bin):
            directory.mkdir(parents=True)
        self.state = self.home / ".local/state/detent"

    def program(self, path: Path, text: str = SAYS) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def launch(self, *arguments: str, cwd: Path | None = None, path: str | None = None) -> str:
        done = subprocess.run(
            ["/bin/sh", str(LAUNCHER), *arguments],
            cwd=cwd or self.project / "deep/er",
            env={"PATH": path or f"{self.inside}:relative::{self.bin}:/usr/bin:/bin", "HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            check=False,
        )
        assert done.returncode == (1 if arguments[0] == "mcp" and not done.stdout else 0), done
        return done.stdout + done.stderr


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_the_program_on_path_is_started_and_not_one_of_the_project(machine):
    machine.program(machine.inside / "detent")
    link = machine.home / "links/detent"
    link.parent.mkdir()
    link.symlink_to(machine.inside / "detent")
    found = machine.program(machine.bin / "detent")
    path = f"{machine.inside}:{link.parent}:{machine.bin}:/usr/bin:/bin"

    assert machine.launch("hook", "codex", "Stop", path=path) == f"{found} hook codex --plugin\n"
    assert machine.launch("mcp", path=path) == f"{found} mcp\n"


def test_a_state_directory_that_an_agent_made_below_the_project_hides_nothing(machine):
    machine.program(machine.inside / "detent")
    (machine.project / "deep/er/.workflow").mkdir()
    own = machine.program(machine.project / ".venv/bin/python")
    hook = machine.program(machine.home / "lib/detent/hooks/fast.py")

    assert "not installed" in machine.launch("hook", "codex", "SessionStart")
    record_program(str(machine.state), str(machine.project), python=str(own), hook=str(hook))
    assert machine.launch("mcp") == f"{own} -P -E -m detent mcp\n"


def test_a_program_of_the_project_does_not_hide_detent(machine):
    machine.program(machine.inside / "readlink", f"#!/bin/sh\necho {machine.inside}/detent\n")
    found = machine.program(machine.bin / "detent")

    assert machine.launch("mcp") == f"{found} mcp\n"


def test_a_home_that_is_a_repository_is_no_project(machine):
    (machine.home / ".git").mkdir()
    found = machine.program(machine.home / ".local/bin/detent")
    path = f"{found.parent}:/usr/bin:/bin"

    assert machine.launch("mcp", path=path) == f"{found} mcp\n"
    assert machine.launch("mcp", path=path, cwd=machine.home) == f"{found} mcp\n"


def test_a_repository_without_a_state_directory_is_a_project_too(machine):
    repository = machine.home / "other"
    (repository / ".git").mkdir(parents=True)
    machine.program(repository / "bin/detent")

    assert "not installed" in machine.launch(
        "hook", "codex", "SessionStart", cwd=repository, path=f"{repository}/bin:/usr/bin:/bin"
    )


def test_what_a_person_recorded_comes_first_and_for_the_project_before_the_account(machine):
    machine.program(machine.bin / "detent")
    hook = machine.program(machine.home / "lib/detent/hooks/fast.py")
    account = machine.program(machine.home / "lib/python")
    own = machine.program(machine.project / ".venv/bin/python")

    record_program(str(machine.state), str(machine.project), python=str(account), hook=str(hook))
    assert machine.launch("hook", "codex", "Stop") == f"{account} -I -S {hook} codex --plugin\n"

    record_program(str(machine.state), str(machine.project), python=str(own), hook=str(hook))
    assert machine.launch("hook", "codex", "Stop") == f"{own} -I -S {hook} codex --plugin\n"
    assert machine.launch("mcp") == f"{own} -P -E -m detent mcp\n"
    elsewhere = machine.home / "elsewhere"
    elsewhere.mkdir()
    assert machine.launch("mcp", cwd=elsewhere) == f"{account} -P -E -m detent mcp\n"

    forget_program(str(machine.state), str(machine.project))
    assert machine.launch("mcp") == f"{account} -P -E -m detent mcp\n"
    hook.unlink()
    assert machine.launch("mcp") == f"{machine.bin}/detent mcp\n"


@pytest.mark.parametrize("text", [None, "#!/nowhere/python\n"])
def test_without_detent_nothing_is_blocked_and_one_line_says_so(machine, text):
    if text is not None:
        machine.program(machine.bin / "detent", text)

    for event in ("SessionStart", "UserPromptSubmit", "BeforeAgent"):
        told = machine.launch("hook", "codex", event)
        assert "is not installed, so its plugin does nothing" in json.loads(told[told.index("{") :])["systemMessage"]
    for event in ("PreToolUse", "Stop", "SessionEnd", ""):
        assert "{" not in machine.launch("hook", "codex", event)
    assert "detent: Detent is not installed" in machine.launch("mcp")
    outside = machine.home / "plain"
    outside.mkdir()
    assert "{" not in machine.launch("hook", "codex", "BeforeAgent", cwd=outside)


def test_init_records_the_program_for_a_person_and_not_for_an_agent(tmp_path):
    tool, state = Tool(tmp_path), Path(os.environ["XDG_STATE_HOME"], "detent/programs")
    state.unlink(missing_ok=True)

    tool("init", CLAUDECODE="1").ok()
    assert not state.exists()

    tool("init").ok()
    assert state.read_text() == f"*\t{os.path.abspath(sys.executable)}\t{HOOK}\n"
    assert state.stat().st_mode & 0o077 == 0


def test_the_plugins_are_current():
    assert differences() == []


@pytest.mark.parametrize(
    ("word", "part"), [("slash commands", "commands/"), ("roles", "agents/"), ("a skill", "skills/")]
)
def test_the_readme_of_a_plugin_names_the_parts_that_it_has(word, part):
    for files in trees().values():
        [readme] = [content.decode() for path, content in files.items() if path.endswith("README.md")]

        assert (word in readme) is any(f"/{part}" in f"/{path}" for path in files)


def test_what_an_extension_tells_in_every_project_says_where_it_counts():
    told = trees()["gemini"]["GEMINI.md"].decode()

    assert told.startswith("This is about projects with a directory `.workflow`")
    assert "this block" not in told


def test_every_plugin_has_the_hooks_of_its_client_and_the_launcher():
    for client, files in trees().items():
        [hooks] = [content for path, content in files.items() if path.endswith("hooks/hooks.json")]
        [launcher] = [content for path, content in files.items() if path.endswith("launch.sh")]
        assert launcher == LAUNCHER.read_bytes()
        for event, groups in json.loads(hooks)["hooks"].items():
            for handler in (handler for group in groups for handler in group["hooks"]):
                text = " ".join([handler["command"], *handler.get("args", [])])
                assert text.replace('"', "").endswith(f"/launch.sh hook {client} {event}")
