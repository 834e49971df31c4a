"""A project that Detent holds, as a person sets it up: `detent init --agent`, a workflow, a session.

Hooks, instructions and agent definitions are those that Detent installs, untouched.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.clients import claude_code, codex, gemini_cli
from tests.clients.client import Run
from tests.clients.scripts import Call, Result, Scenario, Step, do
from tests.clients.stage import Stage

DETENT = f"{sys.executable} -m detent"


def set_up(stage: Stage, *start: str, toml: str = "") -> None:
    """Make the stage's project one of Detent's, with hooks in the client and a session that has begun."""
    if toml:
        (stage.project / "detent.toml").write_text(toml)
    stage.detent("init", "--agent", stage.kind.NAME)
    stage.detent("start", *start)


def play(stage: Stage, prompt: str, scenario: Scenario, **options: Any) -> Run:
    """Play the scenario, and see to it that no hook crashed on the way."""
    run = stage.play(prompt, scenario, **options)
    failures = stage.project / ".workflow/hook-failures.log"
    assert not failures.exists(), failures.read_text()
    assert run.exit_code == 0, run.stderr
    return run


def delegate(stage: Stage, phase: str, agent: str, prompt: str, *, background: bool = False) -> list[Step]:
    """Give the phase to its agent, in the client's way of it.

    Claude Code has the agents that Detent installs. Codex and Gemini know none of them, so the text names the phase.
    """
    if stage.kind is claude_code:
        asked = {"description": "scripted", "prompt": prompt, "subagent_type": agent}
        return [do(Call("Agent", {**asked, "run_in_background": background}))]
    return stage.kind.delegate(f"{prompt}\nPhase key: {phase}", background=background and stage.kind is codex)


def results(stage: Stage, conversation: str = "main") -> tuple[Result, ...]:
    """What the client told the model about each call, when the model was last asked."""
    return stage.server.conversation(conversation)[-1].results


def state(stage: Stage) -> dict[str, Any]:
    return json.loads((stage.project / ".workflow/state.json").read_text())


def statuses(stage: Stage) -> dict[str, str]:
    return state(stage)["active_workflow"]["phase_status"]


def session_folder(stage: Stage) -> Path:
    return next((stage.project / ".workflow").glob("WFS-*"))


def journal(stage: Stage) -> list[dict[str, Any]]:
    """The events of the session, oldest first."""
    lines = (session_folder(stage) / "journal.jsonl").read_text().splitlines()
    return [event for line in lines for event in json.loads(line)["events"]]


def settings_path(stage: Stage) -> str:
    """Where Detent put the client's hooks."""
    return str(stage.kind.PROJECT_SETTINGS)


def read(stage: Stage, path: str) -> Call | None:
    """The client's own tool for reading, where it has one."""
    absolute = os.path.join(stage.project, path)
    if stage.kind is claude_code:
        return Call("Read", {"file_path": absolute})
    return Call("read_file", {"file_path": path}) if stage.kind is gemini_cli else None
