"""Each verb as people use it, in processes of their own."""

import re
from pathlib import Path

import pytest

from detent.cli.app import VERBS
from tests.support.command import make_project, next_command, normalised
from tests.support.golden_file import check_golden

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def parallel(detent, once):
    return once(make_parallel, detent)


def make_parallel(project):
    make_project(project)
    project("start", "canonical", "Make the page faster").ok()
    project("finish", "-m", "Understood", "--context", "mind the cache").ok()
    project("begin").ok()
    project("finish", "-m", "Planned", "--artifact", "plan.md").ok()
    project("begin", "data").ok()
    project("begin", "architecture").ok()


SHOWN = {
    "status": ["status"],
    "why": ["why"],
    "why-phase": ["why", "qa"],
    "log": ["log"],
    "graph": ["graph"],
    "begin": ["redo", "data", "--reason", "again"],
    "finish": ["finish", "data", "-m", "Tables and indexes", "--artifact", "schema.sql"],
    "fail": ["fail", "data", "-m", "the dump is broken"],
    "skip": ["skip", "data", "--reason", "there is no data"],
    "cancel": ["cancel", "--reason", "not wanted"],
}


@pytest.mark.parametrize("name", SHOWN)
def test_looks_as_it_did(parallel, name):
    check_golden(GOLDEN / f"{name}.txt", normalised(parallel(*SHOWN[name]).ok().out).rstrip("\n"))


def test_typing_what_status_says_completes_a_session(project):
    project("start", "adhoc", "Parse it", "--phase", "Write the parser:developer", "--phase", "Check it").ok()
    typed = []
    for _ in range(9):
        command = next_command(project("status").ok().out)
        if command[0] == "start":
            break
        typed.append(command[0])
        project(*command).ok()
        if "No session is active" in project("status").ok().out:
            break
    assert typed == ["finish", "begin", "finish"]
    entry = project("history", "--json").ok().json()["history"][0]
    assert (entry["status"], entry["description"]) == ("completed", "Parse it")
    assert project("doctor").ok().out == "all is well\n"


def test_finish_says_what_to_type(session):
    finished = session("finish", "-m", "Touches 3 modules").ok()
    assert next_command(finished.out) == ["begin", "03-architecture"]
    begun = session(*next_command(finished.out)).ok()
    token = re.search(r"token +(\S+)", begun.out)[1]
    assert "from       2 of 8 Impact analysis (02-impact-analysis): Touches 3 modules" in begun.out
    session("finish", "--token", token, "-m", "Drawn").ok()


def test_the_token_may_come_from_the_environment(session):
    token = session("status", "--json").json()["phases"][1]["token"]
    session("finish", "-m", "Done", DETENT_TOKEN=token).ok()


def test_everything_that_finish_takes(session):
    (session.directory / "a.md").touch()
    (session.directory / "sub").mkdir()
    (session.directory / "sub" / "b.md").touch()
    finished = session(
        *["-C", "sub", "finish", "02-impact-analysis", "-m", "Done", "--artifact", "a.md", "--artifact", "b.md"],
        *["--deliverable", "a list", "--deliverable", "a drawing", "--context", "mind the cache"],
        *["--tokens-in", "1200", "--tokens-out", "340", "--json"],
    ).ok()
    phase = finished.json()["session"]["phases"][1]
    assert finished.json()["warnings"] == []
    assert phase["artifacts"] == ["a.md", "sub/b.md"]
    assert phase["deliverables"] == ["a list", "a drawing"]
    assert phase["tokens"] == {"input": 1200, "output": 340}
    assert session("begin", "--json").ok().json()["handover"]["passed"][0]["context"] == "mind the cache"


def test_a_summary_from_standard_input(session):
    session("finish", "-m", "-", stdin="Größe gemessen".encode()).ok()
    assert session("status", "--json").json()["phases"][1]["summary"] == "Größe gemessen"


def test_start_with_a_size_a_name_a_branch_and_a_discovery(project):
    (project.directory / "found.md").write_text("It is a shop.")
    started = project(
        *["start", "feature", "Add login", "--size", "light", "--name", "login", "--branch", "feature/login"],
        *["--discovery", "found.md", "--json"],
    ).ok()
    session = started.json()["session"]
    assert session["session"] == "WFS-login"
    assert session["branch"] == "feature/login"
    assert session["progress"] == {"completed": 0, "total": 6, "skipped": 2}
    project("finish", "-m", "Done").ok()
    assert project("begin", "--json").ok().json()["handover"]["discovery"] == "It is a shop."


def test_start_needs_phases_for_adhoc_only(project):
    assert project("start", "adhoc", "x").error()[0] == 2
    assert project("start", "feature", "x", "--phase", "a").error()[0] == 2


def test_a_paused_session_can_be_named(session):
    session("start", "fix", "Something urgent").ok()
    paused = session("status", "--session", "add-login-with-passkeys").ok()
    assert "paused" in paused.out
    session(*next_command(paused.out)).ok()
    assert "2 of 8" in session("status", "--session", "WFS-add-login-with-passkeys").ok().out
    assert "Something urgent" in session("status").ok().out


def test_redo_with_a_cascade(session):
    code, message, way_out = session("redo", "01-requirements").error()
    assert (code, way_out) == (1, "detent redo 01-requirements --cascade")
    assert "02-impact-analysis built on 01-requirements" in message
    session("redo", "01-requirements", "--cascade", "--reason", "they changed").ok()
    assert session("status", "--json").json()["in_progress"] == ["01-requirements"]


def test_complete_refuses_what_is_open_and_can_be_forced(session):
    code, message, way_out = session("complete").error()
    assert (code, "7 of 8 phases" in message, "--force" in way_out) == (1, True, True)
    assert "completed by force" in session("complete", "--force", "--merged-commit", "1a2b3c4").ok().out
    assert session("history", "--json").json()["history"][0]["merged_commit"] == "1a2b3c4"


def test_the_phases_of_a_workflow_and_of_the_session(session):
    assert session("graph", "canonical").ok().out.count("○") == 12
    assert "▸ 2 Impact analysis  02-impact-analysis" in session("graph").ok().out
    assert session("graph", "--mermaid").ok().out.startswith("flowchart TD\n")
    assert session("graph", "--json").json()["phases"][0] == {
        "phase": "01-requirements",
        "status": "completed",
        "needs": [],
    }


def test_what_is_exported_can_be_imported(session, tmp_path_factory):
    written = session("export", "state", "-o", "out.json", "--json").ok().json()["written"]
    assert Path(session.directory / written).exists()
    other = type(session)(tmp_path_factory.mktemp("other"))
    other("init").ok()
    data = (session.directory / "out.json").read_bytes()
    imported = other("import", "-", stdin=data).ok()
    assert "02-impact-analysis" in imported.out
    assert other("status", "--json").json()["in_progress"] == ["02-impact-analysis"]
    assert other("doctor").ok().out == "all is well\n"


@pytest.mark.parametrize("kind", ["state", "session", "workflow", "history", "log"])
def test_an_export_to_standard_output_is_json_and_nothing_else(session, kind):
    exported = session("export", kind).ok()
    assert exported.err == ""
    lines = exported.out.splitlines() if kind in ("history", "log") else [exported.out]
    assert len(lines) == {"history": 0, "log": 3}.get(kind, 1)


def test_an_export_that_cannot_be_written(session):
    code, message, _ = session("export", "state", "-o", "nowhere/out.json").error()
    assert (code, "nowhere/out.json" in message) == (1, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(detent, shell):
    assert "_DETENT_COMPLETE" in detent("completion", shell).ok().out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("detent fin", ["finish"]),
        ("detent begin 08", ["08-code-review"]),
        ("detent start fu", ["full-lifecycle"]),
        ("detent status --session ", ["WFS-add-login-with-passkeys"]),
        ("detent status", ["status"]),
    ],
)
def test_completion_knows_verbs_phases_workflows_and_sessions(session, words, offered):
    answered = session(
        _DETENT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(words.split(" ")) - 1)
    ).ok()
    assert answered.out.split() == [f"plain,{word}" for word in offered]


def test_init_twice_changes_nothing(session):
    before = session.digest()
    assert session("init", "--json").ok().json()["created"] is False
    assert session.digest() == before


def test_help_lists_every_verb(detent):
    shown = detent("--help").ok().out
    for verb, told in VERBS.items():
        assert re.search(rf"^  {verb} +{re.escape(told)}$", shown, re.MULTILINE)
    assert detent().ok().out == shown


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(detent, verb):
    shown = detent(verb, "--help").ok().out
    assert VERBS[verb] in shown
    if verb in ("gate", "flow"):
        shown += detent(verb, "run", "--help").ok().out
    assert re.search(r"Example:\n +.*detent", shown)
    assert "--json" in shown
