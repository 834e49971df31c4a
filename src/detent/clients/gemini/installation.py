"""Detent in Gemini CLI: hooks in its settings, slash commands, instructions."""

from collections.abc import Iterator
from functools import cache

from detent.clients.installing import texts
from detent.clients.installing.hook_settings import EVERY, HookSettings
from detent.clients.installing.installation import Checked, JsonInstallation
from detent.clients.installing.parts import sealed

_BEFORE = "^(run_shell_command|write_file|replace|invoke_agent|mcp_.*)$"
_AFTER = "^(run_shell_command|write_file|replace|invoke_agent|write_todos|mcp_.*)$"
_NAME = "detent"

_HOOKS = HookSettings(
    client="gemini",
    path=".gemini/settings.json",
    events={
        "SessionStart": EVERY,
        "BeforeAgent": EVERY,
        "BeforeTool": (_BEFORE,),
        "AfterTool": (_AFTER,),
        "AfterAgent": EVERY,
        "SessionEnd": EVERY,
    },
    session_end_timeout_s=5,
    timeout_units=1000,
    extra=(("name", _NAME),),
)


@cache
def _files() -> dict[str, bytes]:
    """Slash commands by path; `detent/status.toml` is `/detent:status` there."""
    return {
        f".gemini/commands/detent/{name}.toml": sealed(
            f"description = '{command.description}'\nprompt = '''\n{command.prompt}'''\n", comment=("# ", "")
        )
        for name, command in texts.commands("{{args}}").items()
    }


def _switches(checked: Checked) -> Iterator[tuple[str, str]]:
    config = checked.content.get("hooksConfig")
    if not isinstance(config, dict):
        return
    if config.get("enabled") is False:
        yield checked.form.path, "hooksConfig.enabled"
    disabled = config.get("disabled")
    if isinstance(disabled, list) and _NAME in disabled:
        yield checked.form.path, "hooksConfig.disabled"


INSTALLATION = JsonInstallation(
    hooks=_HOOKS, instructions="GEMINI.md", oldest=(0, 61, 0), files=_files, switches=_switches
)
