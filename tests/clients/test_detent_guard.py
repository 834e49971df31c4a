"""What Detent and its hooks rest on cannot be written by an agent, and a person's decisions cannot be made by one."""

import shlex

from detent.core.guard.rules import WAY_ROUND
from tests.clients import claude_code, codex
from tests.clients.scripts import Call, do, say
from tests.clients.workplace import DETENT, delegate, play, read, results, session_folder, set_up, settings_path, state

GATED = """\
[workflows.release]
phases = [{ key = "release", agent = "release-manager", gates = [{ kind = "approval" }] }]
"""


def test_detents_own_files_and_its_hooks_can_be_read_but_not_written(stage):
    set_up(stage, "plan-implement-review", "Add login", toml="gates = 'strict'\n")
    session = session_folder(stage).name
    paths = [f".workflow/{session}/journal.jsonl", "detent.toml", settings_path(stage)]
    before = {path: (stage.project / path).read_bytes() for path in paths}
    looks = [do(stage.kind.shell("cat " + " ".join(paths)))]
    if stage.kind is claude_code:  # it refuses by itself to write what it has not read
        looks.append(do(*(call for path in paths if (call := read(stage, path)))))

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                *looks,
                *(do(stage.kind.write(path, "{}\n")) for path in paths),
                *(do(stage.kind.shell(f"echo '{{}}' > {shlex.quote(path)}")) for path in paths),
                say("held back"),
            ]
        },
    )

    told = results(stage)
    assert '"session_started"' in told[0].text  # the journal was read
    for path, result in zip([*paths, *paths], told[-6:], strict=True):
        assert f"would write {stage.project}/{path}" in result.text
        assert WAY_ROUND in result.text
    assert {path: (stage.project / path).read_bytes() for path in paths} == before


def test_the_directory_of_a_call_hides_nothing(stage):
    """Codex and Gemini CLI let the model choose the directory of a command. In Claude Code the model goes there."""
    set_up(stage, "plan-implement-review", "Add login", toml="gates = 'strict'\n")
    path = stage.project / settings_path(stage)
    files = [stage.project / "detent.toml", path]
    before = [file.read_bytes() for file in files]
    options = {}
    if stage.kind is claude_code:
        options = {"extra_args": ("--add-dir", "/tmp")}
        calls = [stage.kind.shell(f"echo >> {file}") for file in files]
    elif stage.kind is codex:
        calls = [Call("exec_command", {"cmd": f"echo >> {file}", "workdir": "/tmp"}) for file in files]
    else:
        fields = {"description": "scripted", "dir_path": path.parent.name}
        commands = ["echo >> ../detent.toml", f"echo >> {path.name}"]
        calls = [Call("run_shell_command", {"command": command, **fields}) for command in commands]

    first = [do(stage.kind.shell("cd /tmp")), do(stage.kind.shell("pwd"))] if stage.kind is claude_code else []

    play(stage, "[[S:main]] go", {"main": [*first, *map(do, calls), say("held back")]}, **options)

    told = results(stage)
    assert [result.text.strip() for result in told[1 : len(first)]] == ["/tmp"] * bool(first)
    assert all(WAY_ROUND in result.text for result in told[len(first) :])
    assert [file.read_bytes() for file in files] == before


def test_an_agent_cannot_approve(stage):
    set_up(stage, "release", "Ship it", toml=GATED)
    commands = [
        "detent approve release -m fine",
        f"{DETENT} approve release -m fine",
        "cd . && bash -c 'detent approve release -m fine'",
        "detent release --reason 'in a hurry'",
    ]
    before = state(stage)

    play(
        stage,
        "[[S:main]] go",
        {"main": [*(do(stage.kind.shell(command)) for command in commands), say("held back")]},
    )

    for result in results(stage):
        assert "is a person's decision; say what it is about and wait for the person" in result.text
    assert state(stage) == before


def test_a_sub_agent_is_guarded_as_well(stage):
    set_up(stage, "plan-implement-review", "Add login", toml="gates = 'strict'\n")

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [*delegate(stage, "PLAN", "planning-agent", "[[S:sub]] plan it"), say("planned")],
            "sub": [do(stage.kind.shell("echo \"gates = 'off'\" > detent.toml")), stage.kind.hand_back("no way")],
        },
    )

    assert "configuration of Detent or of its hooks" in results(stage, "sub")[0].text
    assert (stage.project / "detent.toml").read_text() == "gates = 'strict'\n"
