"""When hooks do not hold: what the clients do without an approval, and with a hook that does not answer."""

import json
import sys

import pytest

from detent.clients.installing import findings
from tests.clients import codex, gemini_cli
from tests.clients.scripts import do, say
from tests.clients.workplace import play, set_up, settings_path


@pytest.mark.parametrize("kind", [codex], ids=["codex"])
def test_codex_skips_hooks_that_nobody_approved_without_a_word_and_detent_says_so(stage, monkeypatch):
    """A limit, not a wish: nothing holds the agent then, and neither Codex nor the model is told."""
    given = codex.arguments
    monkeypatch.setattr(
        codex,
        "arguments",
        lambda *a, **k: [each for each in given(*a, **k) if each != "--dangerously-bypass-hook-trust"],
    )
    set_up(stage, "plan-implement-review", "Add login", toml="gates = 'strict'\n")

    run = play(
        stage,
        "[[S:main]] go",
        {"main": [do(stage.kind.shell("echo 'gates = \"off\"' > detent.toml")), say("done")]},
    )

    assert (stage.project / "detent.toml").read_text() == 'gates = "off"\n'
    assert "Detent holds this work" not in stage.server.told("main")
    assert "hook" not in (run.stdout + run.stderr).lower()
    told = findings(str(stage.project), environment={"CODEX_HOME": str(stage.client.home / ".codex")})
    assert any("no person has approved them" in one.message for one in told)


def test_a_hook_that_does_not_answer_in_time_lets_the_call_through(stage):
    """A limit of all three clients, which is why the hook must be fast."""
    set_up(stage, "plan-implement-review", "Add login", toml="gates = 'strict'\n")
    settings = stage.project / settings_path(stage)
    slow = {
        "type": "command",
        "command": f"{sys.executable} -I -S -c 'import time; time.sleep(5)'",
        "timeout": 1000 if stage.kind is gemini_cli else 1,
    }
    written = json.loads(settings.read_text())
    written["hooks"][stage.kind.HOOK_EVENTS["PreToolUse"]] = [{"hooks": [slow]}]
    settings.write_text(json.dumps(written))

    play(
        stage,
        "[[S:main]] go",
        {"main": [do(stage.kind.shell("echo \"gates = 'off'\" > detent.toml")), say("done")]},
    )

    assert (stage.project / "detent.toml").read_text() == "gates = 'off'\n"


def test_without_detent_the_client_works_and_the_person_is_told(stage):
    """As after `pip uninstall detent`: the file that the hooks start is gone."""
    set_up(stage, "plan-implement-review", "Add login", toml="gates = 'strict'\n")
    settings = stage.project / settings_path(stage)
    settings.write_text(settings.read_text().replace("/hooks/fast.py", "/hooks/gone.py"))

    run = play(stage, "[[S:main]] go", {"main": [do(stage.kind.shell("echo hi > made.txt")), say("done")]})

    assert (stage.project / "made.txt").read_text() == "hi\n"
    if stage.kind is not codex:  # Codex shows such messages only on its own screen.
        assert "this project is not guarded" in run.stdout + run.stderr
