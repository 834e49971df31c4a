"""Seed 003, sessions: their files, names, markers, states and recovery."""

import json
import os
import re
import subprocess
import sys
from datetime import timedelta

import pytest

from detent.core.session.status import Status
from detent.core.task.document import new_document
from detent.core.task.row import TaskStatus
from detent.doctor.invariants import check, fix
from detent.doctor.markers import fix_markers
from detent.doctor.tasks import check_tasks, fix_tasks
from detent.engine.project import open_project
from detent.errors import DetentError, Invalid, NotFound, Refused

FLOW = "plan-implement-review"
SESSION_ID = re.compile(r"WFS-[a-z0-9]+(-[a-z0-9]+)*")
#: Detent's own, beside what the seed lists.
OWN = {"journal.jsonl", ".documents.json"}


def detent(root, *words):
    ran = subprocess.run(
        [sys.executable, "-m", "detent", "-C", str(root), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def shell(disk, script):
    """The seed's own commands, run where it runs them."""
    return subprocess.run(
        ["bash", "-c", script], cwd=disk.directory.parent, capture_output=True, text=True, timeout=60, check=True
    ).stdout


def in_directory(disk, name):
    return {path.name for path in (disk.directory / name).iterdir()}


def opened(project, topic="Try it", tasks=()):
    handle = project.start(FLOW, topic)
    for title in tasks:
        handle.tasks.add(title)
    project.flush()
    return handle


# File structure


@pytest.mark.req("003-file-1", "003-file-3")
def test_a_session_begins_with_four_entries(root, disk):
    detent(root, "start", FLOW, "User Auth System")

    assert in_directory(disk, "WFS-user-auth-system") - OWN == {
        "workflow-session.json",
        "IMPL_PLAN.md",
        "TODO_LIST.md",
        ".task",
    }
    folder = disk.directory / "WFS-user-auth-system"
    assert [path.name for path in (folder / ".task").iterdir() if path.name.startswith("IMPL")] == []
    assert "# Implementation Plan" in (folder / "IMPL_PLAN.md").read_text().splitlines()
    assert "# Tasks: User Auth System" in (folder / "TODO_LIST.md").read_text().splitlines()


@pytest.mark.req("003-file-3")
def test_folders_of_notes_appear_with_the_first_note(root, disk):
    detent(root, "start", FLOW, "User Auth System")
    there = []
    for kind in ("ideas", "chat", "analysis"):
        detent(root, "note", f"About {kind}", "--kind", kind)
        there.append(in_directory(disk, "WFS-user-auth-system") & {".chat", ".brainstorming"})
    assert there == [{".brainstorming"}, {".chat", ".brainstorming"}, {".chat", ".brainstorming"}]

    session = disk.directory / "WFS-user-auth-system"
    assert (session / ".brainstorming/1.md").read_text() == "About ideas\n"
    assert sorted(path.name for path in (session / ".chat").iterdir()) == ["analysis-1.md", "chat-1.md"]


@pytest.mark.req("003-file-2", "003-file-3", "003-file-5")
def test_summaries_appear_with_the_first_done_task(project, disk):
    handle = opened(project, tasks=("One", "Two"))
    handle.tasks.start("IMPL-1")
    project.flush()
    assert ".summaries" not in in_directory(disk, handle.id)

    handle.tasks.done("IMPL-1", "What was done.")
    project.flush()

    summaries = disk.directory / handle.id / ".summaries"
    assert [path.name for path in summaries.iterdir()] == ["IMPL-1-summary.md"]
    assert handle.tasks.summary("IMPL-1") == "What was done.\n"
    assert not {".chat", ".brainstorming"} & in_directory(disk, handle.id)
    (summaries / "IMPL-2.md").write_text("The older name.\n")
    assert handle.tasks.summary("IMPL-2") == "The older name.\n"


@pytest.mark.req("003-file-4")
def test_files_of_subtasks_come_with_the_decomposition(project, disk):
    handle = opened(project, tasks=("One",))
    folder = disk.directory / handle.id / ".task"
    assert {path.name for path in folder.glob("IMPL*")} == {"IMPL-1.json"}

    handle.tasks.split("IMPL-1", ["First half", "Second half"])
    project.flush()

    assert {path.name for path in folder.glob("IMPL*")} == {"IMPL-1.json", "IMPL-1.1.json", "IMPL-1.2.json"}
    assert json.loads((folder / "IMPL-1.1.json").read_text())["context"]["parent"] == "IMPL-1"


@pytest.mark.req("003-json-1")
def test_the_session_file_has_the_fields_of_the_seed(project, disk):
    handle = opened(project, "feature description", tasks=("One", "Two"))
    handle.tasks.start("IMPL-1")
    handle.tasks.start("IMPL-2")
    project.flush()

    document = disk.session(handle.id)

    expected = {
        "session_id": "WFS-feature-description",
        "project": "feature description",
        "type": "simple",
        "current_phase": "IMPLEMENT",
        "status": "active",
        "progress": {"completed_phases": ["PLAN"], "current_tasks": ["IMPL-1", "IMPL-2"]},
    }
    assert {key: document[key] for key in expected} == expected


# Names


@pytest.mark.req("003-slug-1")
@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("User Auth System", "WFS-user-auth-system"),
        ("oauth integration", "WFS-oauth-integration"),
        ("  Fix: bug #123!  ", "WFS-fix-bug-123"),
        ("Überarbeitung für Zürich", "WFS-uberarbeitung-fur-zurich"),
        ("A  --  B", "WFS-a-b"),
    ],
)
def test_the_topic_becomes_lower_case_words_with_hyphens(project, topic, expected):
    assert project.start(FLOW, topic).id == expected


@pytest.mark.req("003-slug-2")
@pytest.mark.parametrize("topic", ["ログイン機能", "!!!", "数据库"])
def test_a_topic_without_ascii_gets_a_name_of_its_own(project, topic):
    name = project.start(FLOW, topic).id

    assert re.fullmatch(r"WFS-session-[0-9a-f]{8}", name)
    assert project.session(name).state.task == topic


@pytest.mark.req("003-slug-3")
def test_a_number_is_added_only_on_conflict(project, disk):
    first = opened(project, "payment integration")
    second = opened(project, "payment integration")
    second.complete(force=True)
    project.flush()
    project.sessions.archive(second.id)

    third = opened(project, "Payment Integration")

    assert [first.id, second.id, third.id] == [
        "WFS-payment-integration",
        "WFS-payment-integration-002",
        "WFS-payment-integration-003",
    ]


@pytest.mark.req("003-slug-4")
def test_names_are_never_longer_than_50_characters(project):
    topic = "a really long description of what has to be done here and everywhere else"
    names = [project.start(FLOW, topic).id for _ in range(3)] + [project.start(FLOW, "x" * 300).id]

    assert len(set(names)) == 4
    assert all(len(name) <= 50 and SESSION_ID.fullmatch(name) for name in names)
    assert names[1].endswith("-002")


# Markers


@pytest.mark.req("003-mark-1", "003-mark-2")
def test_the_seed_finds_the_active_session(project, disk):
    opened(project, "oauth integration")
    opened(project, "user profile")

    script = """
        active_session=$(find .workflow -name ".active-*" | head -1)
        [ -n "$active_session" ] && basename "$active_session" | sed 's/^\\.active-//'
        ls -d .workflow/.active-*
    """
    assert shell(disk, script).splitlines() == ["WFS-user-profile", ".workflow/.active-WFS-user-profile"]
    assert disk.session("WFS-oauth-integration")["status"] == "paused"
    assert disk.session("WFS-user-profile")["status"] == "active"


@pytest.mark.req("003-mark-3")
def test_the_switch_of_the_seed_switches(project, disk):
    first = opened(project, "oauth integration", tasks=("One",))
    second = opened(project, "user profile", tasks=("One",))
    second.tasks.start("IMPL-1")
    project.flush()

    shell(disk, f'find .workflow -name ".active-*" -delete && touch .workflow/.active-{first.id}')
    project.reconcile()

    assert project.active() == first.id
    assert [disk.session(name)["status"] for name in (first.id, second.id)] == ["active", "paused"]
    fix_markers(project)
    assert second.tasks.row("IMPL-1").status is TaskStatus.PENDING


@pytest.mark.req("003-mark-4")
def test_a_file_deeper_in_the_tree_is_no_marker(project, disk):
    first = opened(project, "first")
    opened(project, "second")
    (disk.directory / first.id / f".active-{first.id}").write_bytes(b"")

    assert project.active() == "WFS-second"


# The session's states


@pytest.mark.req("003-state-1")
def test_start_pauses_the_session_before(project, disk):
    first = opened(project, "first", tasks=("One",))
    first.tasks.start("IMPL-1")
    project.flush()

    second = opened(project, "second")

    assert disk.markers() == [f".active-{second.id}"]
    assert disk.session(first.id)["status"] == "paused"
    assert disk.session(first.id)["progress"]["current_tasks"] == []
    assert first.tasks.row("IMPL-1").status is TaskStatus.PENDING


@pytest.mark.req("003-state-2")
def test_pause_removes_the_marker_and_gives_tasks_back(project, disk):
    handle = opened(project, tasks=("One",))
    claimed = handle.tasks.start("IMPL-1")

    project.sessions.pause("lunch")
    project.flush()

    assert disk.markers() == []
    assert disk.session(handle.id)["status"] == "paused"
    row = handle.tasks.row("IMPL-1")
    assert (row.status, row.attempts) == (TaskStatus.PENDING, 1)
    with pytest.raises(Refused):
        handle.tasks.done("IMPL-1", fence=claimed.fence)
    with pytest.raises(NotFound):
        project.sessions.pause()
    assert check(project) == []


@pytest.mark.req("003-state-3")
def test_resume_takes_the_session_that_was_paused_last(project, disk, clock):
    names = []
    for topic in ("first", "second"):
        names.append(opened(project, topic, tasks=("One",)).id)
        clock.advance(minutes=1)
        project.sessions.pause()
        clock.advance(minutes=1)
    project.session(names[0]).tasks.add("Work by id does not make it the one that was paused last")

    assert project.sessions.resume().id == names[1]

    project.flush()
    assert disk.markers() == [f".active-{names[1]}"]
    assert project.sessions.resume(names[0]).id == names[0]
    project.flush()
    assert [disk.session(name)["status"] for name in names] == ["active", "paused"]


@pytest.mark.req("003-state-4")
def test_switch_knows_ids_parts_of_them_and_numbers(project, disk):
    names = [opened(project, topic).id for topic in ("user profile", "user login", "bug fix 123")]
    for text in (names[0], "user-profile", "profile", "PROFILE"):
        project.sessions.switch(names[2])
        assert project.sessions.switch(text).id == names[0]
    project.sessions.switch(names[2])
    listed = [one.id for one in project.sessions.sessions()]
    assert listed[0] == names[2]
    assert project.sessions.switch("3").id == listed[2]

    before = project.active()
    with pytest.raises(Invalid, match="user-profile") as refused:
        project.sessions.switch("user")
    assert "user-login" in refused.value.message
    with pytest.raises(NotFound):
        project.sessions.switch("nothing-like-it")
    assert project.active() == before
    version = project.session().state.version
    assert project.sessions.switch(before).id == before
    assert project.session().state.version == version


@pytest.mark.req("003-state-5")
@pytest.mark.parametrize("paused", [False, True])
def test_complete_refuses_while_leaves_are_open(project, disk, paused):
    handle = opened(project, tasks=("One", "Two"))
    if paused:
        project.sessions.pause()
    with pytest.raises(Refused, match="IMPL-2"):
        handle.complete()

    handle.complete(force=True)
    project.flush()

    document = disk.session(handle.id)
    assert (document["status"], document["completion_type"]) == ("completed", "forced")
    assert [row.status for row in handle.tasks.rows()] == [TaskStatus.PENDING] * 2
    assert disk.markers() == []
    assert (disk.directory / handle.id / ".task/IMPL-2.json").exists()


@pytest.mark.req("003-state-6", "003-state-7")
def test_a_completed_session_is_reopened_and_not_resumed(project, disk):
    handle = opened(project, tasks=("One",))
    handle.tasks.start("IMPL-1")
    handle.tasks.done("IMPL-1", "done")
    handle.finish("looked at")
    project.flush()
    assert disk.session(handle.id)["status"] == "completed"
    for command in (project.sessions.switch, project.sessions.resume):
        with pytest.raises(Refused) as refused:
            command(handle.id)
        assert refused.value.way_out == f"detent reopen {handle.id}"

    project.sessions.reopen(handle.id, "look again")
    project.flush()

    document = disk.session(handle.id)
    assert (document["status"], document["current_phase"]) == ("active", "REVIEW")
    assert disk.markers() == [f".active-{handle.id}"]


@pytest.mark.req("003-state-8")
def test_a_switch_from_a_session_that_just_ended_works(project, disk):
    first = opened(project, "first")
    second = opened(project, "second")
    second.complete(force=True)

    assert project.sessions.switch(first.id).id == first.id

    project.flush()
    assert disk.markers() == [f".active-{first.id}"]


@pytest.mark.req("003-state-9")
def test_the_list_has_the_active_one_first(project, disk, clock):
    names = []
    for topic in ("first", "second", "third"):
        names.append(opened(project, topic).id)
        clock.advance(minutes=1)
    project.sessions.switch(names[0])
    project.flush()
    path = disk.journal_path(names[1])
    whole = path.read_bytes()
    path.write_bytes(b"nonsense\n")

    with open_project(disk.directory.parent, actor="tester") as fresh:
        listed = fresh.sessions.sessions()

    assert listed[0].id == names[0]
    assert [one.id for one in listed if one.problem] == [names[1]]
    assert {one.id: one.status for one in listed} == {
        names[0]: "active",
        names[1]: "damaged",
        names[2]: "paused",
    }
    path.write_bytes(whole)


@pytest.mark.req("003-phase-1", "003-phase-2", "003-phase-3")
def test_phases_follow_the_tasks(project, disk):
    handle = opened(project, tasks=("One", "Two"))
    phase = lambda: disk.session(handle.id)["current_phase"]  # noqa: E731
    assert phase() == "PLAN"

    handle.tasks.start("IMPL-1")
    project.flush()
    assert phase() == "IMPLEMENT"
    handle.tasks.done("IMPL-1")
    project.flush()
    assert phase() == "IMPLEMENT"
    handle.tasks.start("IMPL-2")
    handle.tasks.done("IMPL-2")
    project.flush()
    assert phase() == "REVIEW"
    assert disk.session(handle.id)["status"] == "active"

    handle.finish("all is well", phase="REVIEW")
    project.flush()
    assert disk.session(handle.id)["status"] == "completed"


@pytest.mark.req("003-phase-2")
def test_removing_the_last_open_task_begins_the_review(project):
    handle = opened(project, tasks=("One", "Two"))
    handle.tasks.start("IMPL-1")
    handle.tasks.done("IMPL-1")

    handle.tasks.remove("IMPL-2")

    assert handle.state.phases["REVIEW"].status is Status.IN_PROGRESS


# Recovery


@pytest.mark.req("003-rec-1")
def test_a_session_without_its_directory_stops_no_other(root, disk):
    """Detent can bring the session back; its marker goes when a person goes on elsewhere."""
    detent(root, "start", FLOW, "Lost")
    shell(disk, "rm -r .workflow/WFS-lost")
    assert disk.markers() == [".active-WFS-lost"]

    detent(root, "start", FLOW, "Next")

    assert json.loads(detent(root, "status", "--json"))["session"] == "WFS-next"
    detent(root, "forget", "--yes")
    detent(root, "doctor", "--fix")
    assert disk.markers() == [".active-WFS-next"]


@pytest.mark.req("003-rec-1")
def test_a_marker_without_its_directory_is_removed(project, disk):
    handle = opened(project)
    (disk.directory / ".active-WFS-gone").touch()
    script = """
        for marker in $(find .workflow -maxdepth 1 -name ".active-*"); do
          [ -d ".workflow/$(basename "$marker" | sed 's/^\\.active-//')" ] || echo orphaned
        done
    """
    assert shell(disk, script) == "orphaned\n"

    fix(project)

    assert shell(disk, script) == ""
    assert disk.markers() == [f".active-{handle.id}"]


@pytest.mark.req("003-rec-2")
def test_of_several_markers_the_newest_stays(project, disk):
    first = opened(project, "first")
    second = opened(project, "second")
    third = opened(project, "third")
    at = disk.directory.joinpath(f".active-{third.id}").stat().st_mtime
    for name, later in ((first.id, 20), (second.id, 10)):
        (disk.directory / f".active-{name}").touch()
        os.utime(disk.directory / f".active-{name}", (at + later, at + later))

    project.reconcile()
    fix_markers(project)

    assert disk.markers() == [f".active-{first.id}"]
    assert [disk.session(one.id)["status"] for one in (first, second, third)] == ["active", "paused", "paused"]


@pytest.mark.req("003-rec-3")
@pytest.mark.parametrize("text", [b"", b'{"session_id":', b"\xff\xfe", b"[]"])
def test_a_corrupted_session_file_is_kept_and_made_again(project, disk, text):
    handle = opened(project, tasks=("One",))
    path = disk.directory / handle.id / "workflow-session.json"
    path.write_bytes(text)

    fix_tasks(project, handle.id)

    assert disk.session(handle.id)["project"] == "Try it"
    assert text in [kept.read_bytes() for kept in path.parent.glob("workflow-session.json.*-1")]


@pytest.mark.req("003-rec-4")
def test_a_part_without_its_container_gets_one(project, disk):
    handle = opened(project, tasks=("One",))
    folder = disk.directory / handle.id / ".task"
    for part in ("IMPL-2.1", "IMPL-2.2"):
        (folder / f"{part}.json").write_text(json.dumps(new_document(part, f"Part {part}")))

    done = fix_tasks(project, handle.id)

    assert [line for line in done if "IMPL-2.1" in line] == [f"adopted the edit of {handle.id}/.task/IMPL-2.1.json"]
    assert handle.state.tasks.children("IMPL-2") == ("IMPL-2.1", "IMPL-2.2")
    assert json.loads((folder / "IMPL-2.json").read_text())["status"] == "container"
    assert list(check_tasks(project, handle.id)) == []


@pytest.mark.req("003-rec-4")
def test_a_broken_hierarchy_is_reconstructed(project, disk):
    handle = opened(project, tasks=("One",))
    handle.tasks.split("IMPL-1", ["First", "Second"])
    project.flush()
    folder = disk.directory / handle.id / ".task"
    (folder / "IMPL-1.json").unlink()
    child = json.loads((folder / "IMPL-1.1.json").read_text())
    child["context"]["parent"] = "IMPL-9"
    text = json.dumps(child).encode()
    (folder / "IMPL-1.1.json").write_bytes(text)

    fix_tasks(project, handle.id)

    assert json.loads((folder / "IMPL-1.json").read_text())["status"] == "container"
    assert json.loads((folder / "IMPL-1.1.json").read_text())["context"]["parent"] == "IMPL-1"
    assert text in [path.read_bytes() for path in folder.iterdir()]
    assert list(check_tasks(project, handle.id)) == []


@pytest.mark.req("003-rec-5")
def test_a_corrupt_task_file_is_restored(project, disk):
    handle = opened(project, tasks=("One", "Two"))
    path = disk.directory / handle.id / ".task/IMPL-1.json"
    path.write_bytes(b"\0\0\0")

    handle.tasks.start("IMPL-2")
    project.reconcile()

    assert json.loads(path.read_text())["title"] == "One"
    assert b"\0\0\0" in [kept.read_bytes() for kept in path.parent.iterdir()]
    handle.tasks.done("IMPL-2")


@pytest.mark.req("003-rec-6")
def test_a_task_of_a_dead_worker_is_given_back(project, clock):
    handle = opened(project, tasks=("One", "Two", "Three"))
    handle.tasks.start("IMPL-1", owner="dead", pid=2**22 + 1)
    handle.tasks.start("IMPL-2", owner="quiet", lease_s=60)
    handle.tasks.start("IMPL-3", owner="alive", pid=os.getpid())
    clock.advance(minutes=5)

    fix_tasks(project, handle.id)

    rows = {row.id: (str(row.status), row.attempts) for row in handle.tasks.rows()}
    assert rows == {"IMPL-1": ("pending", 1), "IMPL-2": ("pending", 1), "IMPL-3": ("active", 1)}
    handle.tasks.release("IMPL-3")


@pytest.mark.req("003-rec-6")
def test_the_next_worker_gets_the_task_of_a_dead_one(project):
    handle = opened(project, tasks=("One",))
    dead = handle.tasks.start(owner="dead", pid=2**22 + 1)

    taken = handle.tasks.start(owner="alive")

    assert (taken.task, taken.claim.owner) == ("IMPL-1", "alive")
    assert taken.fence > dead.fence
    with pytest.raises(Refused):
        handle.tasks.done("IMPL-1", "late", fence=dead.fence)
    assert handle.tasks.summary("IMPL-1") is None


@pytest.mark.req("003-rec-7")
def test_repairs_can_be_tried_out_first_and_made_twice(project, disk):
    handle = opened(project, tasks=("One",))
    (disk.directory / handle.id / ".task/IMPL-1.json").unlink()

    would = fix_tasks(project, handle.id, dry_run=True)

    assert not (disk.directory / handle.id / ".task/IMPL-1.json").exists()
    assert fix_tasks(project, handle.id) == would != []
    assert fix_tasks(project, handle.id) == []


@pytest.mark.req("003-ops-4")
def test_nothing_is_done_in_a_session_that_is_paused(project):
    first = opened(project, "first", tasks=("One",))
    opened(project, "second")

    with pytest.raises(DetentError):
        first.tasks.start("IMPL-1")

    project.sessions.switch(first.id)
    assert first.tasks.start("IMPL-1").task == "IMPL-1"


@pytest.mark.req("003-state-3")
def test_the_time_of_a_pause_counts_against_no_claim(project, clock):
    handle = opened(project, tasks=("One",))
    handle.tasks.start("IMPL-1", lease_s=60)
    project.sessions.pause()
    clock.advance(days=1)
    project.sessions.resume()

    assert handle.tasks.start("IMPL-1", lease_s=60).claim.since - clock.now == timedelta()
