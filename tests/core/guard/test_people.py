"""An agent runs no verb that only a person may run, whatever the command is made of."""

import pytest

from detent.core.guard.rules import GuardInput, guard


def reason(command):
    call = {"kind": "shell", "tool": "Bash", "command": command, "cwd": "/r", "home": "/h", "agent": "", "prompt": ""}
    return guard(GuardInput(None, call, "/r", lambda path: False, {"config": (), "document": ()}))[0]


@pytest.mark.parametrize(
    "command",
    [
        "detent approve a -m fine",
        "cd x && sudo env A=1 detent approve a",
        "python3 -m detent approve a",
        "timeout 5 uv run detent skip a",
        "echo a | xargs -I{} detent approve {}",
        "python3 -c \"import os; os.system('detent approve a')\"",
        "python3 -c \"import os; os.system('detent import old.json')\"",
        'node -e \'require("child_process").execFileSync("detent", ["approve", "a"])\'',
        "detent approve a; " + ": " * 40_000,
    ],
)
def test_a_person_decides(command):
    assert "a person's decision" in reason(command)


@pytest.mark.parametrize(
    "command",
    [
        "detent status",
        "detent rollback --dry-run x",
        "echo detent approve a",
        "git commit -m 'detent approve'",
        "python3 -c 'print(\"approve\")'",
    ],
)
def test_anybody_may_look_and_speak_of_it(command):
    assert reason(command) is None


@pytest.mark.parametrize(
    "command",
    [
        'python3 -c \'import detent; detent.open().session().approve("b", who="ada")\'',
        "python3 -c 'from detent import open; print(open)'",
        "python3 -c 'import detent.engine'",
        "python3 - <<'A'\nimport subprocess\nsubprocess.run(['.venv/bin/detent', verb])\nA",
        "awk 'BEGIN { system(\"detent \" v) }'",
        'detent "$VERB" a',
        "$(which detent) approve a",
    ],
)
def test_code_that_names_detent_and_a_verb_that_cannot_be_read_are_denied(command):
    assert reason(command) is not None


@pytest.mark.parametrize(
    "command",
    [
        "unshare -r detent approve a",
        "tmux new -d 'detent approve a'",
        "systemd-run --user detent approve a",
        "docker exec box sh -c 'detent approve a'",
        "ssh localhost detent approve a",
        "expect -c 'spawn detent approve a'",
        "git -c alias.ok='!detent approve a' ok",
        "git config alias.ok '!detent approve a'",
        "echo 'detent approve a' | at now",
        "prlimit --nproc=9 .venv/bin/detent approve a",
    ],
)
def test_a_wrapper_that_is_not_known_hides_no_verb(command):
    assert "a person's decision" in reason(command)
