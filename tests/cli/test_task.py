"""Tasks as people and agents use them, in processes of their own."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from detent.cli.commands.task import task_verb
from detent.core.task.lifecycle import TRANSITIONS
from detent.core.task.row import TaskStatus
from detent.engine.project import open_project
from detent.engine.tasks.tasks import Tasks
from detent.render.terminal.canvas import columns_of
from tests.support.command import (
    DETENT,
    RUN_S_MAX,
    Ran,
    Tool,
    document,
    make_project,
    next_command,
    normalised,
    on_a_terminal,
    read_to_end,
    refused,
)
from tests.support.golden_file import check_golden

GOLDEN = Path(__file__).parent / "golden"
SESSION = "WFS-add-login-with-passkeys"


@pytest.fixture
def empty(detent, once) -> Tool:
    """A session without tasks, whose phases follow them."""
    return once(make_empty, detent)


def make_empty(tool: Tool) -> None:
    make_project(tool)
    tool("start", "plan-implement-review", "Add login with passkeys").ok()


def make_tasks(tool: Tool) -> None:
    make_empty(tool)
    for command in (
        ["task", "add", "Design the schema", "--require", "One table", "--accept", "Reviewed", "--focus", "db/a.sql"],
        ["task", "add", "Implement login", "--after", "impl-001", "--require", "Works without a mouse"],
        ["task", "add", "Test login end to end", "--after", "IMPL-2"],
        ["task", "split", "IMPL-2", "Write the form", "Check it on the server"],
        ["task", "add", "Keep the session", "--parent", "IMPL-2", "--after", "IMPL-2.2"],
        ["task", "add", "Write the manual"],
        ["task", "start", "IMPL-1", "--owner", "bob"],
        ["task", "done", "IMPL-1", "-m", "Three tables: users, keys, sessions.", "--met", "Ada looked at it"],
        ["task", "start", "IMPL-2.1", "--owner", "bob"],
        ["task", "fail", "IMPL-2.1", "-m", "the form does not render"],
        ["task", "block", "IMPL-2.2", "--reason", "needs the API key"],
        ["task", "start", "IMPL-4", "--owner", "eve", "--lease", "600"],
    ):
        tool(*command).ok()


@pytest.fixture
def work(detent, once) -> Tool:
    """One task done, a container with one part failed, one blocked and one waiting, and a task that waits for it."""
    return once(make_tasks, detent)


def file_of(tool: Tool, id_: str) -> Path:
    return tool.state / SESSION / ".task" / f"{id_}.json"


def row(tool: Tool, id_: str) -> dict[str, object]:
    return tool("task", "show", id_, "--json").ok().json()


def status_in_file(tool: Tool, id_: str) -> str:
    return json.loads((tool.state / SESSION / ".task" / f"{id_}.json").read_text())["status"]


def stable(text: str) -> str:
    """Without times and the name of the machine; the template may have been made a while ago."""
    text = re.sub(r" +\d+[smh](?: \d\d[ms])?(?=  |$| ago|\))", " 0s", normalised(text), flags=re.MULTILINE)
    text = re.sub(r"\(\d+[smh](?: \d\d[ms])?\)", "(0s)", text)
    return re.sub(r"for \d+[smh](?: \d\d[ms])?$", "for 0s", text, flags=re.MULTILINE).replace(
        os.uname().nodename, "HOST"
    )


SHOWN = {
    "task-list": ["task", "list"],
    "task-list-flat": ["task", "list", "--flat"],
    "task-show": ["task", "show", "IMPL-1"],
    "task-show-container": ["task", "show", "IMPL-2"],
    "task-show-active": ["task", "show", "IMPL-4"],
    "task-add": ["task", "add", "Translate it", "--after", "IMPL-4"],
    "task-split": ["task", "split", "IMPL-3", "On a phone", "On a desk"],
    "task-start": ["task", "resume", "IMPL-2.2", "--owner", "bob"],
    "task-done": ["task", "done", "IMPL-4", "-m", "Twelve pages"],
    "task-reopen": ["task", "reopen", "IMPL-1"],
    "task-remove": ["task", "remove", "IMPL-3"],
    "task-validate": ["task", "validate"],
    "task-export": ["task", "export", "--to", "markdown"],
    "task-status": ["status"],
}


@pytest.mark.parametrize("name", SHOWN)
def test_looks_as_it_did(work, name):
    check_golden(GOLDEN / f"{name}.txt", stable(work(*SHOWN[name]).ok().out).rstrip("\n"))


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_it_fits_the_terminal(work, columns):
    work("task", "add", "登录 " * 60, "--require", "x" * 300).ok()
    for arguments in (
        *(["task", "list"], ["task", "list", "--flat"], ["task", "show", "IMPL-5"], ["task", "show", "IMPL-2"]),
        *(["tasks"], ["status"], ["sessions"], ["task", "validate"], ["task", "next"]),
    ):
        if arguments[-1] == "next":
            work("task", "unblock", "IMPL-2.2").ok()
        text = on_a_terminal(work, *arguments, columns=columns, TERM="dumb")
        assert max(columns_of(line) for line in text.splitlines()) <= columns, arguments


def test_an_encoding_without_the_glyphs(work):
    work("task", "add", "Größe 登录").ok()
    text = work("task", "list", PYTHONIOENCODING="ascii").ok().out
    assert text.isascii()
    assert "! IMPL-2.1" in text
    assert "# IMPL-2.2" in text
    assert "Gr??e ??" in text


def test_a_title_cannot_drive_the_terminal(empty):
    empty("task", "add", "\x1b]0;owned\x07\x1b[2J\u202egnorw").ok()
    for arguments in (["task", "list"], ["task", "show", "IMPL-1"], ["task", "start"], ["status"], ["tasks"]):
        ran = empty(*arguments).ok()
        assert not {"\x1b", "\x07", "\u202e"} & set(ran.out + ran.err)


# From an empty plan to a session that is complete


def test_typing_what_it_says_does_every_task(empty):
    for title in ("Design it", "Build it", "Test it"):
        empty("task", "add", title, *(["--after", "IMPL-1"] if title != "Design it" else [])).ok()
    typed = []
    command = next_command(empty("task", "list").ok().out)
    while command[0] == "task":
        typed.append(command[1])
        answer = (
            empty(*command[: command.index("fail")], *command[command.index("fail") :]).ok().out
            if ("fail" in command)
            else empty(*command).ok().out
        )
        (first, *_) = re.findall(r"^ {2}detent (.*)$", answer, re.MULTILINE)
        command = next_command(f"  detent {first}")
    assert typed == ["start", "done"] * 3
    status = empty("status", "--json").ok().json()
    assert [phase["status"] for phase in status["phases"]] == ["completed", "completed", "in_progress"]
    assert status["tasks"]["completed"] == status["tasks"]["total"] == 3
    empty("finish", "-m", "Looked at it").ok()
    assert empty("doctor").ok().out == "all is well\n"


def test_the_first_start_moves_the_phase_and_the_last_done_too(empty):
    empty("task", "add", "Only one").ok()
    started = empty("task", "start").ok().out
    assert "finished PLAN: planned 1 task" in started
    assert "began IMPLEMENT" in started
    done = empty("task", "done", "IMPL-1", "-m", "x").ok().out
    assert "began REVIEW" in done
    assert next_command(done) == ["finish", "REVIEW", "-m", "SUMMARY"]


def test_every_move_of_the_table_is_carried_out_and_every_other_refused(empty):
    """Every verb is typed for a task of its own in each status."""
    ways: dict[TaskStatus, tuple[Any, ...]] = {
        TaskStatus.PENDING: (),
        TaskStatus.ACTIVE: (Tasks.start,),
        TaskStatus.COMPLETED: (Tasks.start, Tasks.done),
        TaskStatus.BLOCKED: (partial(Tasks.block, reason="why"),),
        TaskStatus.FAILED: (Tasks.start, partial(Tasks.fail, error="broken")),
    }
    more = {"fail": ["-m", "broken"], "block": ["--reason", "why"], "split": ["One", "Two"]}
    verbs = ("start", "done", "fail", "block", "unblock", "resume", "retry", "release", "reopen", "split")
    documents = [document(f"IMPL-{number}") for number in range(1, len(ways) * len(verbs) + 1)]
    empty("task", "add", "--file", "-", stdin=json.dumps(documents).encode()).ok()
    cases = dict(zip(product(ways, verbs), (one["id"] for one in documents), strict=True))
    tried = {}
    for (status, verb), id_ in cases.items():
        with open_project(empty.directory, actor="ada") as project:
            for step in ways[status]:
                step(project.session().tasks, id_)
        ran = empty("task", verb, id_, *more.get(verb, []))
        tried[status, verb] = status_in_file(empty, id_) if ran.code == 0 else None
        if ran.code and verb != "split":
            allowed = [action for (one, action) in TRANSITIONS if one is status]
            assert ran.error()[1].endswith(f"allowed: {', '.join(allowed)}\n") or "held by" in ran.err
    moves: dict[Any, TaskStatus] = dict(TRANSITIONS.items())
    expected = {(status, verb): moves.get((status, verb)) for status in ways for verb in verbs}
    assert tried == expected


# Claims


def test_a_second_session_says_which_claims_of_the_first_it_revokes_and_keeps_the_summary_of_the_worker(empty):
    empty("task", "add", "One").ok()
    held = empty("task", "start", "--json").ok().json()

    said = empty("start", "plan-implement-review", "Something else").ok()
    assert f"{SESSION} was paused, and these claims on its tasks are revoked: IMPL-1 of ada" in said.err
    assert f"detent switch {SESSION}" in said.err

    claim = ("--claim", str(held["claim"]))
    message = empty("task", "done", "IMPL-1", "-m", "all of it", *claim, "--session", SESSION).error()[1]
    assert (empty.state / SESSION / ".summaries" / "IMPL-1-summary.md.rejected-1").read_text() == "all of it\n"
    assert "IMPL-1-summary.md.rejected-1" in message


def test_the_summary_for_a_task_that_does_not_exist_is_kept(empty):
    message = empty("task", "done", "IMPL-7", "-m", "all of it").error()[1]

    assert (empty.state / SESSION / ".summaries" / "IMPL-7-summary.md.rejected-1").read_text() == "all of it\n"
    assert "IMPL-7-summary.md.rejected-1" in message


def test_a_claim_is_a_number_that_goes_with_the_work(empty):
    empty("task", "add", "One").ok()
    first = empty("task", "start", "--json").ok().json()
    assert (first["task"], first["owner"]) == ("IMPL-1", "ada")
    assert first["context"]["workflow"] == {"session": SESSION, "phase": "IMPLEMENT"}
    empty("task", "release", "IMPL-1", "--claim", str(first["claim"])).ok()
    second = empty("task", "next", "--claim", "--json").ok().json()
    assert second["claim"] > first["claim"]

    code, message, _ = empty("task", "done", "IMPL-1", "-m", "late", DETENT_CLAIM=str(first["claim"])).error()
    assert code == 1
    assert f"under claim {second['claim']}, not {first['claim']}" in message
    kept = empty.state / SESSION / ".summaries" / "IMPL-1-summary.md.rejected-1"
    assert kept.read_text() == "late\n"
    assert f"the summary is kept in {kept}" in message
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    empty("task", "done", "IMPL-1", "-m", "mine", DETENT_CLAIM=str(second["claim"])).ok()
    assert (empty.state / SESSION / ".summaries" / "IMPL-1-summary.md").read_text() == "mine\n"


def test_two_who_ask_get_two_tasks(empty):
    for title in ("One", "Two"):
        empty("task", "add", title).ok()
    both = [
        subprocess.Popen(
            [DETENT, "task", "start", "--json"], cwd=empty.directory, env=empty.environment, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    taken = [json.loads(process.communicate(timeout=RUN_S_MAX)[0])["task"] for process in both]
    assert sorted(taken) == ["IMPL-1", "IMPL-2"]
    code, message, way_out = refused(empty, "task", "start", "IMPL-1")
    assert (code, "held by ada" in message, bool(way_out)) == (1, True, True)


def test_the_task_of_a_process_that_ended_can_be_taken(empty):
    empty("task", "add", "One").ok()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    empty("task", "start", "--pid", str(gone.pid), "--owner", "bob").ok()
    assert empty("task", "release", "--abandoned", "--json").ok().json()["released"] == ["IMPL-1"]
    assert row(empty, "IMPL-1")["status"] == "pending"
    assert "every task in progress" in empty("task", "release", "--abandoned").ok().out


def test_a_lease_runs_out(empty):
    empty("task", "add", "One").ok()
    empty("task", "add", "Two").ok()
    empty("task", "start", "--lease", "1").ok()
    held = empty("task", "start", "IMPL-2", "--json").ok().json()
    time.sleep(1.1)
    taken = empty("task", "start", "IMPL-1", "--owner", "eve").ok().out
    assert "ada is gone" in taken
    assert "held by eve" in taken
    assert "held by ada" in refused(empty, "task", "start", "IMPL-2")[1]
    assert empty("task", "beat", "IMPL-2", DETENT_CLAIM=str(held["claim"])).ok()
    beat = (empty.state / SESSION / ".process" / "leases" / "IMPL-2").read_bytes()
    assert beat.split()[0] == str(held["claim"]).encode()
    assert refused(empty, "task", "beat", "IMPL-2", "--claim", str(held["claim"] + 99))[0] == 1
    empty("task", "release", "IMPL-2").ok()
    assert "is not claimed" in refused(empty, "task", "beat", "IMPL-2")[1]


@pytest.mark.parametrize("claim", [False, True])
def test_next_takes_over_a_task_whose_holder_is_gone_as_start_does(empty, claim):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    empty("task", "add", "One").ok()
    empty("task", "start", "--pid", str(gone.pid), "--owner", "bob").ok()

    shown = empty("task", "next", *(["--claim"] if claim else [])).ok().out

    assert "IMPL-1" in shown
    assert ("bob is gone" if claim else "its holder is gone") in shown
    if not claim:
        assert empty("task", "next", "--json").ok().json()["task"]["id"] == "IMPL-1"


def test_next_says_why_nothing_is_ready(work):
    work("task", "done", "IMPL-4").ok()
    code, message, way_out = refused(work, "task", "next")
    assert code == 1
    assert "no task is ready" in message
    assert "IMPL-2.1 failed: the form does not render" in message
    assert "IMPL-2.2 is blocked: needs the API key" in message
    assert "IMPL-3 waits for IMPL-2" in message
    assert way_out == "detent task retry IMPL-2.1"
    assert refused(work, "task", "next", "--claim")[1] == message
    assert work("task", "next", "--json").json()["error"]["kind"] == "not_found"


def test_next_without_tasks_and_after_all_of_them(empty):
    assert refused(empty, "task", "next")[1:] == ("there are no tasks", 'detent task add "TITLE"')
    empty("task", "add", "One").ok()
    assert empty("task", "next", "--json").ok().json()["task"]["id"] == "IMPL-1"
    empty("task", "start").ok()
    empty("task", "done", "IMPL-1").ok()
    assert "the only task is done" in refused(empty, "task", "next")[1]


# Looking


def test_the_list_can_be_narrowed(work):
    def ids(*arguments: str) -> list[str]:
        return [one["id"] for one in work("task", "list", *arguments, "--json").ok().json()["tasks"]]

    assert ids() == ["IMPL-1", "IMPL-2", "IMPL-2.1", "IMPL-2.2", "IMPL-2.3", "IMPL-3", "IMPL-4"]
    assert ids("--status", "failed", "--status", "blocked") == ["IMPL-2.1", "IMPL-2.2"]
    assert ids("--agent", "code-review-test-agent") == ["IMPL-3"]
    assert ids("--ready") == []
    assert ids("--flat") == ["IMPL-1", "IMPL-2.1", "IMPL-2.2", "IMPL-2.3", "IMPL-3", "IMPL-4"]
    assert ids("-n", "2") == ["IMPL-1", "IMPL-2"]
    assert ids("-n", "0") == ids()
    assert "and 5 more" in work("task", "list", "-n", "2").ok().out
    assert "no task matches" in work("task", "list", "--ready").ok().out
    assert refused(work, "task", "list", "--status", "nonsense")[0] == 2


def test_the_list_as_json_says_where_everything_stands(work):
    found = work("task", "list", "--json").ok().json()
    counts = {"total": 6, "completed": 1, "active": 1, "ready": 0, "waiting": 2, "blocked": 1, "failed": 1}
    assert found["counts"] == counts
    by_id = {one["id"]: one for one in found["tasks"]}
    assert (by_id["IMPL-2"]["status"], by_id["IMPL-2"]["state"]) == ("container", "failed")
    assert by_id["IMPL-2.3"]["waiting_for"] == ["IMPL-2.2"]
    assert by_id["IMPL-4"]["claim"]["owner"] == "eve"
    assert by_id["IMPL-2.1"]["reason"] == "the form does not render"
    assert found["complexity"] == "medium"


def test_show_gives_all_there_is(work):
    work("task", "retry", "IMPL-2.1").ok()
    shown = row(work, "impl-0002")
    assert shown["parts"] == ["IMPL-2.1", "IMPL-2.2", "IMPL-2.3"]
    assert shown["dependants"] == ["IMPL-3"]
    summary = "Three tables: users, keys, sessions.\n\nAccepted:\n- Reviewed: Ada looked at it\n"
    assert shown["dependency_summaries"] == {"IMPL-1": summary}
    assert row(work, "IMPL-1")["summary"] == summary
    context = work("task", "show", "IMPL-2", "--context").ok().json()
    assert {"task", "workflow", "paths", "dependency_summaries"} == set(context)
    assert context["task"] == shown["document"]
    assert "notices" not in work("task", "show", "IMPL-2", "--context", "--json").ok().json()


def test_nobody_reads_the_list_to_its_end(empty):
    documents = [document(f"IMPL-{number}") for number in range(1, 2001)]
    empty("task", "add", "--file", "-", stdin=json.dumps(documents).encode()).ok()
    ran = subprocess.run(
        f"{DETENT} task list | head -1",
        shell=True,
        cwd=empty.directory,
        env=empty.environment,
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.decode(), ran.stderr) == (0, "○ IMPL-1     ready      Something\n", b"")


@pytest.mark.parametrize("verb", ["task list", "task show IMPL-1", "task next", "task validate", "tasks", "sessions"])
def test_looking_changes_nothing(work, verb):
    work("task", "unblock", "IMPL-2.2").ok()
    before = work.digest()
    work(*verb.split()).ok()
    work(*verb.split(), "--json").ok()
    assert work.digest() == before


def test_completion_offers_the_ids(work):
    def offered(words: str) -> list[str]:
        environment = {"_DETENT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return [line.partition(",")[2] for line in work(**environment).out.splitlines()]

    assert offered("detent task done IMPL-2.") == ["IMPL-2.1", "IMPL-2.2", "IMPL-2.3"]
    assert offered("detent task add x --after impl-4") == ["IMPL-4"]
    assert "start" in offered("detent task st")


def test_every_word_has_an_example(empty):
    for name, command in task_verb.commands.items():
        assert f"detent task {name}" in (command.epilog or "")
        assert "Example:" in empty("task", name, "--help").ok().out
    assert "did you mean start?" in refused(empty, "task", "strat")[1]
    assert "split" in empty("task").ok().out


# Planning


def test_whole_documents_are_added_all_or_none(empty):
    good = [document("IMPL-7", "Seven"), document("IMPL-9", "Nine", depends_on=["IMPL-7"])]
    (empty.directory / "plan.json").write_text(json.dumps(good))
    added = empty("task", "add", "--file", "plan.json", "--json").ok().json()
    assert [one["id"] for one in added["tasks"]] == ["IMPL-7", "IMPL-9"]
    assert empty("task", "add", "Next", "--json").ok().json()["tasks"][0]["id"] == "IMPL-10"

    bad = [document("IMPL-11"), {**document("IMPL-12"), "status": "nope", "title": ""}, document("IMPL-7")]
    code, message, _ = refused(empty, "task", "add", "--file", "-", stdin=json.dumps(bad).encode())
    assert code == 1
    assert "IMPL-12: status" in message
    assert "IMPL-12: title" in message
    del bad[1]
    assert (
        "there is already a task IMPL-7"
        in refused(empty, "task", "add", "--file", "-", stdin=json.dumps(bad).encode())[1]
    )
    assert refused(empty, "task", "add", "--file", "plan.json", "--agent", "x")[0] == 2


def test_parts_from_a_file_keep_their_order(empty):
    empty("task", "add", "Big one", "--require", "Fast").ok()
    drafts = ["First", {"title": "Second", "after": [1], "acceptance": ["it is green"]}]
    empty("task", "split", "IMPL-1", "--file", "-", stdin=json.dumps(drafts).encode()).ok()
    second = row(empty, "IMPL-1.2")
    assert second["depends_on"] == ["IMPL-1.1"]
    assert second["document"]["context"]["inherited"] == {"from": "IMPL-1", "context": ["Fast"]}
    empty("task", "add", "Third", "--parent", "IMPL-1").ok()
    assert row(empty, "IMPL-1")["parts"] == ["IMPL-1.1", "IMPL-1.2", "IMPL-1.3"]
    for wrong in ([{"titel": "x"}], {"title": "x"}, [1], [""], []):
        assert refused(empty, "task", "split", "IMPL-1", "--file", "-", stdin=json.dumps(wrong).encode())[0] == 1


def test_replanning_adds_requirements_or_replaces_keys(work):
    work("task", "replan", "IMPL-3", "-m", "- With two browsers\n- On a phone\n", "--reason", "asked for").ok()
    (work.directory / "changes.json").write_text('{"title": "Test it all", "context": {"acceptance": ["green"]}}')
    (work.directory / "more.md").write_text("# And\n\n* in the dark\n")
    work("task", "replan", "IMPL-3", "--file", "changes.json", "--reason", "asked for").ok()
    work("task", "replan", "IMPL-3", "--file", "more.md", "--reason", "asked for").ok()
    shown = row(work, "IMPL-3")
    context = shown["document"]["context"]
    assert (shown["version"], shown["title"]) == (4, "Test it all")
    assert context["requirements"] == ["With two browsers", "On a phone", "And", "in the dark"]
    assert (context["acceptance"], context["depends_on"]) == (["green"], ["IMPL-2"])

    for vague in ("", "  ", "fix it", "Improve it!", "..."):
        assert refused(work, "task", "replan", "IMPL-3", "-m", vague, "--reason", "x")[0] == 1
    for id_ in ("IMPL-1", "IMPL-4"):
        assert "pending, blocked, failed" in refused(work, "task", "replan", id_, "-m", "Anew", "--reason", "x")[1]
    (work.directory / "x.yaml").write_text("a: b")
    assert "YAML" in refused(work, "task", "replan", "IMPL-3", "--file", "x.yaml", "--reason", "x")[1]
    assert refused(work, "task", "replan", "IMPL-3", "-m", "Anew", "--reason", " ")[0] == 1


def test_keys_are_set_one_by_one(work):
    work(
        *["task", "edit", "IMPL-3", "--set", "meta.agent=review-agent", "--set", 'context.focus_paths=["src"]'],
        *["--set", "context.requirements.0=a = b", "--set", "x.y.z=1"],
    ).ok()
    found = row(work, "IMPL-3")["document"]
    assert found["meta"]["agent"] == "review-agent"
    assert found["context"]["focus_paths"] == ["src"]
    assert found["context"]["requirements"] == ["a = b"]
    assert found["x"] == {"y": {"z": 1}}
    for wrong in ("status=active", "id=IMPL-9", "version=3", "title", "=x", "title.x=1", "context.requirements.9=x"):
        assert refused(work, "task", "edit", "IMPL-3", "--set", wrong)[0] == 1
    assert "circle" in refused(work, "task", "edit", "IMPL-2", "--set", 'context.depends_on=["IMPL-3"]')[1]
    assert "does not exist" in refused(work, "task", "edit", "IMPL-3", "--set", 'context.depends_on=["IMPL-99"]')[1]
    assert refused(work, "task", "edit", "IMPL-3")[0] == 2


def in_an_editor(tool: Tool, script: str, id_: str = "IMPL-3") -> tuple[int, str]:
    """Edit the task at a terminal; the editor is a Python script that gets the file's name."""
    editor = tool.directory / "editor.py"
    editor.write_text(f"import sys, json\npath = sys.argv[1]\n{script}\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [DETENT, "task", "edit", id_],
        cwd=tool.directory,
        env=tool.environment | {"EDITOR": f"{sys.executable} {editor}", "TERM": "dumb"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    text = read_to_end(ours)
    return process.wait(RUN_S_MAX), text.replace("\r\n", "\n")


def test_an_editor_at_a_terminal(work):
    change = "d = json.load(open(path)); d['title'] = 'Test it twice'; json.dump(d, open(path, 'w'))"
    assert in_an_editor(work, change) == (0, f"adopted the edit of {SESSION}/.task/IMPL-3.json\n")
    assert row(work, "IMPL-3")["title"] == "Test it twice"
    assert in_an_editor(work, "pass") == (0, "IMPL-3 was not changed\n")
    code, said = in_an_editor(work, "open(path, 'w').write('{')")
    assert code == 1
    assert "is kept as" in said
    assert (work.state / SESSION / ".task" / "IMPL-3.json.rejected-1").read_text() == "{"
    assert row(work, "IMPL-3")["title"] == "Test it twice"
    code, said = in_an_editor(work, "sys.exit(3)")
    assert (code, "exited with 3" in said) == (1, True)


def test_removing(work):
    assert "IMPL-3 depends on IMPL-2" in refused(work, "task", "remove", "IMPL-2")[1]
    assert "being worked on" in refused(work, "task", "remove", "IMPL-4")[1]
    work("task", "remove", "IMPL-3").ok()
    for part in ("IMPL-2.3", "IMPL-2.2", "IMPL-2.1"):
        work("task", "remove", part).ok()
    assert row(work, "IMPL-2")["status"] == "pending"
    assert "never used again" in refused(work, "task", "show", "IMPL-3")[1]
    assert not file_of(work, "IMPL-3").exists()


def test_complexity_only_rises(work):
    assert work("task", "complexity", "complex").ok().out == f"{SESSION} is complex\n"
    assert "only rises" in refused(work, "task", "complexity", "simple")[1]
    assert refused(work, "task", "complexity", "huge")[0] == 2


# Bad input


@pytest.mark.parametrize(
    ("named", "told", "way_out"),
    [
        ("IMPL-99", "there is no task IMPL-99", "the last one is IMPL-4; detent task list shows all"),
        ("IMPL-2.9", "there is no task IMPL-2.9", "IMPL-2 has IMPL-2.1 to IMPL-2.3"),
        ("IMPL-3.1", "there is no task IMPL-3.1", "IMPL-3 has no parts; detent task show IMPL-3"),
        ("2.1", "'2.1' is not a task id", "did you mean IMPL-2.1?"),
        ("IMPL2", "'IMPL2' is not a task id", "did you mean IMPL-2?"),
        ("login", "'login' is not a task id", "the last one is IMPL-4; detent task list shows all"),
        ("IMPL-2.1.1", "'IMPL-2.1.1' is not a task id", "did you mean IMPL-2.1?"),
        ("", "'' is not a task id", "the last one is IMPL-4; detent task list shows all"),
    ],
)
def test_a_task_that_is_not_there(work, named, told, way_out):
    for verb in ("show", "start", "done", "split", "remove", "retry"):
        code, message, out = refused(work, "task", verb, named, *(["x"] if verb == "split" else []))
        assert (code, message.startswith(told), out) == (1, True, way_out)
    assert refused(work, "task", "add", "x", "--after", named)[0] == 1


def test_titles_that_cannot_be_taken(empty):
    assert "was empty" in refused(empty, "task", "add", "")[1]
    assert "was empty" in refused(empty, "task", "add", " \n ")[1]
    assert "may have 1000 characters and this one has 10000" in refused(empty, "task", "add", "x" * 10_000)[1]
    assert "UTF-8" in refused(empty, b"task", b"add", b"caf\xe9")[1]
    assert "UTF-8" in refused(empty, "task", "add", "-", stdin=b"caf\xe9")[1]
    assert refused(empty, "task", "add")[0] == 2
    code, message, _ = refused(empty, "task", "add", "x", "--focus", "../y", "--focus", "*.py")
    assert (code, "[0]" in message, "[1]" in message) == (1, True, True)


def test_files_that_cannot_be_read(empty):
    (empty.directory / "broken.json").write_text('[\n  {"id": }\n]')
    (empty.directory / "latin.json").write_bytes(b'{"title": "caf\xe9"}')
    (empty.directory / "deep.json").write_text("[" * 100_000)
    for verb in (["add"], ["split", "IMPL-1"], ["replan", "IMPL-1", "--reason", "x"]):
        empty("task", "add", "One").ok() if verb == ["add"] else None
        code, message, way_out = refused(empty, "task", *verb, "--file", "broken.json")
        assert (code, "line 2, column 10" in message, bool(way_out)) == (1, True, True)
        assert "not UTF-8" in refused(empty, "task", *verb, "--file", "latin.json")[1]
        assert "there is no file none.json" in refused(empty, "task", *verb, "--file", "none.json")[1]
        assert refused(empty, "task", *verb, "--file", "deep.json")[0] == 1
        assert refused(empty, "task", *verb, "--file", ".")[0] == 1
    for wrong in (b"1", b"[]", b'["x"]', b"null"):
        assert refused(empty, "task", "add", "--file", "-", stdin=wrong)[0] == 1


def test_containers_and_levels(work):
    assert "is a container" in refused(work, "task", "start", "IMPL-2")[1]
    assert "two levels" in refused(work, "task", "split", "IMPL-2.3", "x")[1]
    assert "already broken down" in refused(work, "task", "split", "IMPL-2", "x")[1]
    assert "split IMPL-3" in refused(work, "task", "add", "x", "--parent", "IMPL-3")[2]
    assert "--parent IMPL-2" in refused(work, "task", "add", "x", "--parent", "IMPL-2.1")[2]
    assert "waits for IMPL-2" in refused(work, "task", "start", "IMPL-3")[1]


@pytest.mark.parametrize(
    "arguments",
    [
        "task add x",
        "task list",
        "task start",
        "tasks",
        "task validate",
        "task done IMPL-1",
        "task export --to markdown",
    ],
)
def test_without_a_session(project, arguments):
    code, message, way_out = refused(project, *arguments.split())
    assert (code, message, bool(way_out)) == (1, "no session is active", True)


@pytest.mark.parametrize(
    "arguments",
    [
        *("task add One", "task list", "task show IMPL-1", "task next", "task start IMPL-3", "task done IMPL-4"),
        *("task validate", "task complexity complex", "task export --to markdown", "task remove IMPL-3"),
        *("task edit IMPL-3 --set meta.type=docs", "task release IMPL-4", "task beat IMPL-4", "tasks"),
        *("task reopen IMPL-1", "task retry IMPL-2.1", "task unblock IMPL-2.2", "task resume IMPL-2.2"),
    ],
)
def test_with_json_every_answer_and_every_error_is_json(work, arguments):
    ran = work(*arguments.split(), "--json")
    answer = ran.json()
    assert ran.err == ""
    assert answer["notices"] == []
    if ran.code:
        assert set(answer["error"]) == {"kind", "message", "way_out"}


# Files edited by hand


def test_a_file_that_was_edited_is_adopted_or_set_aside(work):
    edited = json.loads(file_of(work, "IMPL-3").read_text())
    file_of(work, "IMPL-3").write_text(json.dumps({**edited, "title": "Test it by hand"}))
    ran = work("task", "list").ok()
    assert "Test login end to end" in ran.out
    ran = work("task", "retry", "IMPL-2.1").ok()
    assert f"adopted the edit of {SESSION}/.task/IMPL-3.json" in ran.err
    assert row(work, "IMPL-3")["title"] == "Test it by hand"

    file_of(work, "IMPL-3").write_text("{")
    file_of(work, "IMPL-4").unlink()
    ran = work("task", "unblock", "IMPL-2.2").ok()
    assert f"kept as {SESSION}/.task/IMPL-3.json.rejected-1" in ran.err
    assert "detent task remove IMPL-4" in ran.err
    assert "None" not in ran.err
    assert json.loads(file_of(work, "IMPL-3").read_text())["title"] == "Test it by hand"
    assert file_of(work, "IMPL-4").exists()


def test_validate_reports_everything_although_files_are_broken(work):
    def edit(id_: str, **keys: object) -> None:
        file_of(work, id_).write_text(json.dumps({**json.loads(file_of(work, id_).read_text()), **keys}))

    file_of(work, "IMPL-1").write_text("{")
    file_of(work, "IMPL-2.1").write_bytes(b"\xff")
    file_of(work, "IMPL-4").unlink()
    edit("IMPL-2.2", context={"depends_on": ["IMPL-2.3", "IMPL-99"], "parent": "IMPL-7"}, title="")
    steps = [{"step": "a", "action": "b", "command": "bash(ls", "output_to": "title"}]
    edit("IMPL-3", flow_control={"pre_analysis": steps}, status="nope")
    file_of(work, "IMPL-5").write_text(json.dumps(document("IMPL-6")))
    before = work.digest()
    ran = work("task", "validate", "--json")
    assert ran.code == 1
    assert work.digest() == before
    found = ran.json()
    problems = {(one["file"], one["rule"], one["path"], one["severity"]) for one in found["problems"]}
    expected = {
        (".task/IMPL-1.json", "json", "", "error"),
        (".task/IMPL-2.1.json", "json", "", "error"),
        (".task/IMPL-4.json", "file-name", "", "warning"),
        (".task/IMPL-2.2.json", "title", "title", "error"),
        (".task/IMPL-2.2.json", "parent", "context.parent", "error"),
        (".task/IMPL-2.2.json", "depends-on", "context.depends_on[1]", "error"),
        (".task/IMPL-3.json", "status", "status", "error"),
        (".task/IMPL-5.json", "file-name", "id", "error"),
    }
    assert expected <= problems
    assert any(rule == "cycle" for _, rule, _, _ in problems)
    assert any(file == ".task/IMPL-3.json" and "pre_analysis" in path for file, _, path, _ in problems)
    assert not any("IMPL-1," in one["message"] for one in found["problems"]), "what cannot be read does exist"
    assert found["errors"] + found["warnings"] == len(problems) == len(found["problems"])
    assert f"{found['errors']} errors" in Ran(work.run("task", "validate")).out


def test_validate_of_files_that_are_fine(empty):
    assert empty("task", "validate").ok().out == "0 files checked: all is well\n"
    empty("task", "add", "One").ok()
    assert empty("task", "validate").ok().out == "1 file checked: all is well\n"


# Other tools

CHECKLIST = """\
# Plan
- [ ] 1. Design the schema
  - [x] 1.1 Tables
  - [ ] 1.2 Indexes (depends on: 1.1)
- [ ] 2. Implement login (depends on: 1)
"""


def test_a_checklist_is_imported_and_exported_again(empty):
    (empty.directory / "PLAN.md").write_text(CHECKLIST)
    before = empty.digest()
    dry = empty("task", "import", "--from", "markdown", "PLAN.md", "--dry-run").ok().out
    assert "4 tasks would be added" in dry
    assert empty.digest() == before
    done = empty("task", "import", "--from", "markdown", "PLAN.md", "--json").ok().json()
    assert done["ids"] == {"1": "IMPL-1", "1.1": "IMPL-1.1", "1.2": "IMPL-1.2", "2": "IMPL-2"}
    assert row(empty, "IMPL-1.1")["status"] == "completed"
    exported = empty("task", "export", "--to", "markdown", "out.md").ok()
    assert "wrote 4 tasks to out.md" in exported.out
    assert "already" in refused(empty, "task", "export", "--to", "markdown", "out.md")[1]
    empty("task", "export", "--to", "markdown", "out.md", "--overwrite").ok()
    empty("task", "import", "--from", "markdown", "out.md").ok()
    assert row(empty, "IMPL-3.2")["depends_on"] == ["IMPL-3.1"]
    assert row(empty, "IMPL-4")["depends_on"] == ["IMPL-3"]


def test_an_export_of_failed_and_blocked_tasks_can_be_imported(work):
    text = work("task", "export", "--to", "markdown").ok().out
    ran = work("task", "import", "--from", "markdown", "-", stdin=text.encode()).ok()
    assert "warning: " in ran.out
    assert row(work, "IMPL-6.1")["status"] == "pending"
    assert row(work, "IMPL-6.2")["status"] == "blocked"


def test_dependencies_that_are_not_there(empty):
    stdin = b"- [ ] 1. One (depends on: 7)\n"
    assert "depends on 7" in refused(empty, "task", "import", "--from", "markdown", "-", stdin=stdin)[1]
    ran = empty("task", "import", "--from", "markdown", "-", "--drop-unknown", stdin=stdin).ok()
    assert "warning: 1 depends on 7" in ran.out
    assert row(empty, "IMPL-1")["depends_on"] == []


def test_tasks_of_other_tools(empty):
    todos = {"todos": [{"content": "Do this", "status": "completed"}, {"content": "Do that", "status": "pending"}]}
    claude = [{"id": "1", "subject": "First"}, {"id": "2", "subject": "Second", "blockedBy": ["1"]}]
    master = {
        "master": {"tasks": [{"id": 1, "title": "Master", "status": "done"}]},
        "other": {"tasks": [{"id": 1, "title": "Other"}]},
    }
    folder = empty.directory / "claude"
    folder.mkdir()
    for task in claude:
        (folder / f"{task['id']}.json").write_text(json.dumps(task))
    backlog = empty.directory / "backlog"
    backlog.mkdir()
    (backlog / "task-1.md").write_text(
        "---\nid: TASK-1\ntitle: From the backlog\nstatus: To Do\n---\n\n## Description\n\nx\n"
    )
    empty("task", "import", "--from", "claude", "-", stdin=json.dumps(todos).encode()).ok()
    empty("task", "import", "--from", "claude", "-", stdin=json.dumps(claude).encode()).ok()
    empty("task", "import", "--from", "claude", "claude").ok()
    for tag in ([], ["--tag", "other"]):
        empty("task", "import", "--from", "task-master", "-", *tag, stdin=json.dumps(master).encode()).ok()
    empty("task", "import", "--from", "backlog", "backlog").ok()
    titles = [one["title"] for one in empty("task", "list", "--json").ok().json()["tasks"]]
    assert titles == [
        *("Do this", "Do that", "First", "Second", "First", "Second", "Master", "Other", "From the backlog"),
    ]
    assert row(empty, "IMPL-6")["depends_on"] == ["IMPL-5"]


@pytest.mark.parametrize("source", ["markdown", "claude", "task-master", "backlog"])
def test_imports_that_cannot_be_read(empty, source):
    for stdin in (b"", b"{", b"[1, 2]", b"\xff\xfe", b"nothing to do here"):
        assert refused(empty, "task", "import", "--from", source, "-", stdin=stdin)[0] == 1
    assert refused(empty, "task", "import", "--from", source, "nowhere")[0] == 1
    (empty.directory / "none").mkdir()
    assert refused(empty, "task", "import", "--from", source, "none")[0] == 1
    assert refused(empty, "task", "import", "x")[0] == 2


# Live


def watching(tool: Tool, *arguments: str, terminal: bool = False) -> tuple[subprocess.Popen[bytes], int]:
    ours, theirs = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        [DETENT, "tasks", "--watch", *arguments],
        cwd=tool.directory,
        env=tool.environment | {"TERM": "xterm"},
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    return process, ours


def read_until(descriptor: int, wanted: str) -> str:
    text, end = b"", time.monotonic() + RUN_S_MAX
    while wanted not in text.decode(errors="replace"):
        ready, _, _ = select.select([descriptor], [], [], end - time.monotonic())
        assert ready, text
        text += os.read(descriptor, 65536)
    return text.decode(errors="replace")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_watch_shows_what_others_do_until_it_is_interrupted(work, terminal):
    process, descriptor = watching(work, terminal=terminal)
    first = read_until(descriptor, "1 of 6 tasks done")
    assert ("\x1b[2J" in first) == terminal
    work("task", "done", "IMPL-4", "-m", "Twelve pages").ok()
    read_until(descriptor, "2 of 6 tasks done" if terminal else "done IMPL-4")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=RUN_S_MAX)
    os.close(descriptor)
    assert (process.returncode, errors) == (0, b"")


def test_a_watch_as_json_has_an_object_per_line(work):
    process, descriptor = watching(work, "--json")
    read_until(descriptor, "\n")
    work("task", "done", "IMPL-4", "-m", "Twelve pages").ok()
    line = read_until(descriptor, "\n")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=RUN_S_MAX)
    os.close(descriptor)
    assert any(event["type"] == "task_moved" for event in json.loads(line)["events"])


# What others need to know


def test_status_without_tasks_loads_nothing_of_them(empty):
    from tests.support.command import loaded

    assert not {"detent.render.terminal.tasks", "detent.engine.tasks.tasks", "detent.render.terminal.task"} & loaded(
        empty, "status"
    )


def test_complete_names_what_is_open_and_marks_nothing_as_done(work):
    code, message, way_out = refused(work, "complete")
    assert code == 1
    assert "5 of 6 tasks are not done: IMPL-2.1 (failed), IMPL-2.2 (blocked)" in message
    assert "--force" in way_out
    work("complete", "--force").ok()
    assert work("status", "--session", SESSION, "--json").ok().json()["tasks"]["completed"] == 1
    assert work("task", "list", "--session", SESSION).ok().out.count("\n") > 7
    assert refused(work, "task", "start", "IMPL-3", "--session", SESSION)[0] == 1
