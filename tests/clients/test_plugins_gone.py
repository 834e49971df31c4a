"""A plugin whose Detent is gone or damaged: the client works on, and the person reads one clear line."""

import shutil

import pytest

from tests.clients import codex
from tests.clients.plugins import install_plugin, lay_out_program, without_record
from tests.clients.scripts import do, say
from tests.clients.workplace import results


def never_installed(stage):
    """No person recorded a program, and PATH has none."""
    without_record(stage)
    return {}, "Detent is not installed, so its plugin does nothing"


def interpreter_removed(stage):
    without_record(stage)
    program = lay_out_program(stage.client.home / "bin")
    program.write_text(f"#!{stage.client.home}/gone/python\n")
    return _path(stage), "Detent is not installed, so its plugin does nothing"


def record_leads_nowhere(stage):
    record = stage.client.home / ".local/state/detent/programs"
    record.write_text(record.read_text().replace("/python", "/gone"))
    return {}, "Detent is not installed, so its plugin does nothing"


def state_removed(stage):
    shutil.rmtree(stage.project / ".workflow")
    return {}, "the record is gone"


def broken_settings(stage):
    (stage.project / "detent.toml").write_text("gates = [\n")
    return {}, ""


def program_of_the_project(stage):
    """A program in the project that no person recorded is not started, wherever it stands on PATH."""
    without_record(stage)
    program = lay_out_program(stage.project / "bin")
    program.write_text("#!/bin/sh\ntouch was-started\n")
    return {
        "PATH": f"{stage.project}/bin:{_path(stage)['PATH']}"
    }, "Detent is not installed, so its plugin does nothing"


def _path(stage):
    from tests.clients.client import environment_of

    return {"PATH": f"{stage.client.home}/bin:{environment_of(stage.client, stage.server)['PATH']}"}


@pytest.fixture(autouse=True)
def _own_catalogues(stage):
    yield
    stage.server.outward.clear()


@pytest.mark.parametrize(
    "damage",
    [
        never_installed,
        interpreter_removed,
        record_leads_nowhere,
        state_removed,
        broken_settings,
        program_of_the_project,
    ],
)
def test_work_goes_on_and_the_person_is_told(stage, damage):
    install_plugin(stage)
    stage.detent("init")
    stage.detent("start", "plan-implement-review", "Add login")
    env, message = damage(stage)

    run = stage.play("[[S:main]] go", {"main": [do(stage.kind.shell("echo hi > made.txt")), say("done")]}, env=env)

    assert run.exit_code == 0, run.stderr
    assert (stage.project / "made.txt").read_text() == "hi\n"
    assert results(stage)[0].is_error is False
    assert not (stage.project / "was-started").exists()
    said = run.stdout + run.stderr + stage.server.told("main")
    if message and stage.kind is not codex:  # Codex shows such messages only on its own screen.
        assert message in said
    if message == "the record is gone":
        assert message in said


def test_a_program_on_path_is_found_without_a_record(stage):
    install_plugin(stage)
    stage.detent("init")
    stage.detent("start", "plan-implement-review", "Add login")
    without_record(stage)
    lay_out_program(stage.client.home / "bin")

    stage.play(
        "[[S:main]] go",
        {"main": [do(stage.kind.shell("echo x > detent.toml")), say("held back")]},
        env=_path(stage),
    )

    assert "configuration of Detent or of its hooks" in results(stage)[0].text
    assert "Detent holds this work to the workflow" in stage.server.told("main")
