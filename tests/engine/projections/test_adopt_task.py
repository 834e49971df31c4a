"""Task files that people write: adopted or refused, and never a byte of it lost."""

import json
import os
import time

import pytest

from detent.core.task.document import new_document
from detent.core.task.row import TaskStatus
from detent.doctor.tasks import check_tasks
from detent.engine.outside import pending_edits
from detent.engine.project import open_project

FLOW = "plan-implement-review"


@pytest.fixture
def handle(project):
    handle = project.start(FLOW, "Try it")
    for title in ("One", "Two", "Three"):
        handle.tasks.add(title)
    project.flush()
    return handle


@pytest.fixture
def files(project, handle):
    return Files(f"{project.place.state}/{handle.id}/.task")


@pytest.fixture(autouse=True)
def _clean_and_kept(project, files):
    """After every test the doctor has nothing to say, a further look changes nothing, and every text is still there."""
    yield
    project.reconcile()
    project.flush()
    for name in project.store.sessions():
        assert list(check_tasks(project, name)) == []
    assert project.reconcile() == []
    kept = b"\0".join(everything(project.place.state))
    journal = [
        json.dumps(json.loads(line), sort_keys=True) for line in kept.split(b"\n") if line.startswith(b'{"version"')
    ]
    for text in files.written:
        assert text in kept or in_journal(text, journal), f"{text[:60]!r} is lost"


def everything(directory):
    for inside, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(inside, name), "rb") as file:
                yield file.read()


def in_journal(text, journal):
    """A text that was adopted is no longer there letter by letter, but everything that it says is."""
    try:
        document = json.loads(text)
    except ValueError:
        return False
    told = {"title": document["title"], "context": document["context"]}
    return all(any(json.dumps(value, sort_keys=True) in line for line in journal) for value in told.values())


class Files:
    def __init__(self, folder):
        self.folder = folder
        #: What a person wrote; all of it has to be found again.
        self.written = []

    def document(self, task):
        with open(f"{self.folder}/{task}.json", "rb") as file:
            return json.load(file)

    def write(self, stem, data, *, age_s=0):
        """Write to a temporary file and move it there, as `jq … > temp && mv temp …` does."""
        text = data if isinstance(data, bytes) else json.dumps(data, indent=3, ensure_ascii=False).encode()
        temporary = f"{self.folder}/../../../temp"
        with open(temporary, "wb") as file:
            file.write(text)
        if age_s:
            then = time.time() - age_s
            os.utime(temporary, (then, then))
        os.replace(temporary, f"{self.folder}/{stem}.json")
        self.written.append(text)
        return text

    def edit(self, task, **changes):
        document = self.document(task)
        for key, value in changes.items():
            *path, last = key.split("__")
            at = document
            for part in path:
                at = at[part]
            at[last] = value
        return self.write(task, document)

    def names(self):
        return sorted(name for name in os.listdir(self.folder) if name.endswith(".json") and not name.startswith("."))


def settled(project):
    """What became of the edits, by file."""
    return {adoption.document.rpartition("/")[2].removesuffix(".json"): adoption for adoption in project.reconcile()}


def assert_refused(project, handle, task, *words):
    """The edit of `task` was refused, with a reason that has the words in it, and the task is as it was."""
    before = handle.state
    adoption = settled(project)[task]
    assert not adoption.adopted
    reasons = " ".join(adoption.reasons)
    assert all(word in reasons for word in words), reasons
    assert adoption.kept
    assert handle.state == before


# Adopted


@pytest.mark.parametrize(
    ("commands", "status"),
    [
        ((), "active"),
        ((), "blocked"),
        (("start",), "completed"),
        (("start",), "failed"),
        (("start",), "blocked"),
        (("start",), "pending"),
        (("start", "done"), "pending"),
    ],
)
def test_a_status_that_the_table_allows_is_adopted(project, handle, files, commands, status):
    for command in commands:
        getattr(handle.tasks, command)("IMPL-1")
    project.flush()
    files.edit("IMPL-1", status=status)

    assert settled(project)["IMPL-1"].adopted

    assert str(handle.tasks.row("IMPL-1").status) == status
    assert files.document("IMPL-1")["status"] == status
    assert ("IMPL-1" in handle.state.claims) == (status == "active")


def test_what_a_task_asks_for_is_adopted_and_unknown_keys_stay(project, handle, files):
    files.edit("IMPL-1", title="Better", context__acceptance=["it works"], mine={"a": [1, None]}, meta__agent="me")

    assert settled(project)["IMPL-1"].adopted

    document = handle.tasks.document("IMPL-1")
    assert (document["title"], document["context"]["acceptance"]) == ("Better", ["it works"])
    assert (document["mine"], document["meta"]["agent"]) == ({"a": [1, None]}, "me")
    assert files.document("IMPL-1")["mine"] == {"a": [1, None]}


def test_text_and_status_can_be_changed_in_one_edit(project, handle, files):
    files.edit("IMPL-1", title="Better", status="active")

    assert settled(project)["IMPL-1"].adopted

    row = handle.tasks.row("IMPL-1")
    assert (row.title, row.status) == ("Better", TaskStatus.ACTIVE)


def test_layout_alone_is_no_change(project, handle, files):
    version = handle.state.version
    files.edit("IMPL-1")

    project.reconcile()

    assert handle.state.version == version


def test_a_new_file_is_a_new_task(project, handle, files):
    files.write("IMPL-7", new_document("IMPL-7", "By hand", depends_on=["IMPL-1"]))

    assert settled(project)["IMPL-7"].adopted

    assert handle.tasks.row("IMPL-7").depends_on == ("IMPL-1",)
    assert handle.tasks.add("The next one").events[0].task == "IMPL-8"
    project.flush()
    with open(f"{files.folder}/../TODO_LIST.md", encoding="utf-8") as view:
        assert "By hand" in view.read()


def test_a_file_with_leading_zeros_keeps_its_name(project, handle, files):
    files.write("IMPL-009", new_document("IMPL-9", "By hand") | {"id": "IMPL-009"})
    files.write("IMPL-009.01", new_document("IMPL-9.1", "A part") | {"id": "IMPL-009.01"})
    document = files.document("IMPL-009") | {"status": "container"}
    files.write("IMPL-009", document)

    assert all(adoption.adopted for adoption in project.reconcile())

    assert [row.id for row in handle.tasks.rows()] == ["IMPL-1", "IMPL-2", "IMPL-3", "IMPL-9", "IMPL-9.1"]
    project.flush()
    named = ["IMPL-009.01.json", "IMPL-009.json"]
    assert [name for name in files.names() if "9" in name] == named
    with open(f"{files.folder}/../TODO_LIST.md", encoding="utf-8") as view:
        assert "**IMPL-009.01**: A part → [📋](./.task/IMPL-009.01.json)" in view.read()

    handle.tasks.start("IMPL-9.1")
    project.flush()
    assert files.document("IMPL-009.01")["status"] == "active"
    assert files.document("IMPL-009.01")["id"] == "IMPL-009.01"
    files.edit("IMPL-009.01", title="Better")
    assert settled(project)["IMPL-009.01"].adopted
    os.unlink(f"{files.folder}/IMPL-009.01.json")
    assert settled(project)["IMPL-009.01"].reasons
    handle.tasks.release("IMPL-9.1")
    handle.tasks.remove("IMPL-9.1")
    project.flush()
    assert [name for name in files.names() if "9" in name] == ["IMPL-009.json"]


def test_a_container_and_its_parts_are_adopted_as_one_change(project, handle, files):
    files.write("IMPL-4.1", new_document("IMPL-4.1", "A part", depends_on=["IMPL-5"]))
    files.write("IMPL-4.2", new_document("IMPL-4.2", "Another part"))
    files.write("IMPL-4", new_document("IMPL-4", "Whole") | {"status": "container"})
    files.write("IMPL-5", new_document("IMPL-5", "Comes first"))
    files.edit("IMPL-1", context__depends_on=["IMPL-4.2"])
    version = handle.state.version

    adoptions = settled(project)

    assert {task for task, adoption in adoptions.items() if adoption.adopted} == {
        *("IMPL-1", "IMPL-4", "IMPL-4.1", "IMPL-4.2", "IMPL-5"),
    }
    assert handle.state.tasks.children("IMPL-4") == ("IMPL-4.1", "IMPL-4.2")
    assert handle.tasks.row("IMPL-4.1").depends_on == ("IMPL-5",)
    assert handle.tasks.row("IMPL-1").depends_on == ("IMPL-4.2",)
    assert handle.state.version == version + 1


def test_of_files_written_together_those_that_cannot_be_taken_do_not_hold_the_others(project, handle, files):
    files.write("IMPL-4", new_document("IMPL-4", "Needs a later one", depends_on=["IMPL-6"]))
    files.write("IMPL-5", new_document("IMPL-5", "Lost", depends_on=["IMPL-99"]))
    files.write("IMPL-6", new_document("IMPL-6", "Later"))
    files.write("IMPL-7", new_document("IMPL-7", "Whole") | {"status": "container"})

    adopted = {task: adoption.adopted for task, adoption in settled(project).items()}

    assert adopted == {"IMPL-4": True, "IMPL-5": False, "IMPL-6": True, "IMPL-7": False}


def test_a_task_is_broken_down_by_hand(project, handle, files):
    files.edit("IMPL-2", status="container", title="Both halves")
    for part in (1, 2):
        files.write(f"IMPL-2.{part}", new_document(f"IMPL-2.{part}", f"Half {part}"))

    assert all(adoption.adopted for adoption in settled(project).values())

    assert handle.tasks.row("IMPL-2").status is TaskStatus.CONTAINER
    assert handle.tasks.row("IMPL-2").title == "Both halves"
    assert handle.state.tasks.children("IMPL-2") == ("IMPL-2.1", "IMPL-2.2")


def test_a_task_becomes_the_container_of_parts_that_were_written_for_it(project, handle, files):
    files.write("IMPL-2.1", new_document("IMPL-2.1", "A part"))

    assert settled(project)["IMPL-2.1"].adopted

    assert handle.tasks.row("IMPL-2").status is TaskStatus.CONTAINER
    assert handle.tasks.row("IMPL-2").title == "Two"


def test_a_task_that_is_worked_on_gets_no_parts_by_hand(project, handle, files):
    handle.tasks.start("IMPL-2")
    project.flush()
    files.write("IMPL-2.1", new_document("IMPL-2.1", "A part"))

    assert_refused(project, handle, "IMPL-2.1", "IMPL-2, which is active")


def test_a_container_that_is_missing_is_rebuilt_from_its_parts(project, handle, files):
    files.write("IMPL-9.1", new_document("IMPL-9.1", "A part"))

    assert settled(project)["IMPL-9.1"].adopted

    assert handle.tasks.row("IMPL-9").status is TaskStatus.CONTAINER
    project.flush()
    assert files.document("IMPL-9")["title"] == "Parts of IMPL-9"


def test_a_container_that_was_removed_is_not_rebuilt(project, handle, files):
    handle.tasks.remove("IMPL-3")
    project.flush()
    files.write("IMPL-3.1", new_document("IMPL-3.1", "A part"))

    assert_refused(project, handle, "IMPL-3.1", "IMPL-3, which does not exist")


def test_of_two_new_files_of_one_number_one_is_adopted(project, handle, files):
    files.write("IMPL-009", new_document("IMPL-9", "One") | {"id": "IMPL-009"})
    files.write("IMPL-9", new_document("IMPL-9", "Other"))

    adopted = {task: adoption.adopted for task, adoption in settled(project).items()}

    assert sorted(adopted.values()) == [False, True]


def test_whoever_only_looks_is_told_of_an_edited_task_file(project, handle, files):
    assert pending_edits(project) == []
    files.edit("IMPL-1", title="Better")
    files.write("IMPL-7", new_document("IMPL-7", "New"))

    assert pending_edits(project) == [f"{handle.id}/.task/{task}.json" for task in ("IMPL-1", "IMPL-7")]


def test_two_files_edited_at_once_are_both_adopted(project, handle, files):
    files.edit("IMPL-1", title="Better")
    files.edit("IMPL-2", status="blocked")

    assert {task: adoption.adopted for task, adoption in settled(project).items()} == {"IMPL-1": True, "IMPL-2": True}

    assert handle.tasks.row("IMPL-1").title == "Better"
    assert handle.tasks.row("IMPL-2").status is TaskStatus.BLOCKED


def test_of_two_edits_a_broken_one_does_not_hold_the_other(project, handle, files):
    files.write("IMPL-1", b"{")
    files.edit("IMPL-2", title="Better")

    assert {task: adoption.adopted for task, adoption in settled(project).items()} == {"IMPL-1": False, "IMPL-2": True}


@pytest.mark.parametrize("age_s", [0, 3600, 10**9])
def test_an_edit_is_seen_whatever_the_time_of_the_file(project, handle, files, age_s):
    time.sleep(0.05)
    files.write("IMPL-1", files.document("IMPL-1") | {"title": "Better"}, age_s=age_s)

    assert settled(project)["IMPL-1"].adopted

    assert handle.tasks.row("IMPL-1").title == "Better"


def test_an_edit_is_seen_though_other_tasks_were_published_since(project, handle, files):
    time.sleep(0.05)
    files.edit("IMPL-1", title="Better")
    time.sleep(0.05)
    handle.tasks.start("IMPL-2")
    project.flush()

    assert settled(project)["IMPL-1"].adopted


def test_an_edit_made_while_nobody_looked_is_seen_by_the_next_process(project, handle, files):
    time.sleep(0.05)
    files.edit("IMPL-1", title="Better")
    handle.tasks.add("Four")
    project.flush()
    with open_project(project.place.root, actor="another") as other:
        other.reconcile()

        assert other.session().tasks.row("IMPL-1").title == "Better"


# Refused

BROKEN = [
    b"",
    b"{",
    b"\xff\xfe{}",
    b"[]",
    b"null",
    b"3",
    b'"text"',
    b"{}",
    b"{" * 100_000,
    b'{"id": "IMPL-1"}',
    b"\0" * 100,
]


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: repr(text[:12]))
def test_what_is_no_task_is_set_aside_and_the_task_restored(project, handle, files, text):
    before = files.document("IMPL-1")
    files.write("IMPL-1", text)

    assert_refused(project, handle, "IMPL-1")

    after = files.document("IMPL-1")
    assert after | {"_detent": 0} == before | {"_detent": 0}


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: repr(text[:12]))
def test_a_new_file_that_is_no_task_is_set_aside(project, handle, files, text):
    files.write("IMPL-9", text)

    assert_refused(project, handle, "IMPL-9")

    assert files.names() == ["IMPL-1.json", "IMPL-2.json", "IMPL-3.json"]


@pytest.mark.parametrize(
    ("commands", "status"),
    [((), "completed"), ((), "failed"), ((), "container"), (("start", "done"), "active"), ((), "done"), ((), None)],
)
def test_a_status_that_the_table_does_not_allow_is_refused(project, handle, files, commands, status):
    for command in commands:
        getattr(handle.tasks, command)("IMPL-1")
    project.flush()
    files.edit("IMPL-1", status=status)

    assert_refused(project, handle, "IMPL-1")


def test_a_container_does_not_become_a_task_by_hand(project, handle, files):
    handle.tasks.split("IMPL-1", ["Left", "Right"])
    project.flush()
    files.edit("IMPL-1", status="pending")

    assert_refused(project, handle, "IMPL-1")


def test_a_task_that_waits_is_not_started_by_hand(project, handle, files):
    handle.tasks.replan("IMPL-2", {"context": {"depends_on": ["IMPL-1"]}}, reason="order")
    project.flush()
    files.edit("IMPL-2", status="active")

    assert_refused(project, handle, "IMPL-2", "waits for IMPL-1")


def test_a_circle_is_refused(project, handle, files):
    handle.tasks.replan("IMPL-2", {"context": {"depends_on": ["IMPL-1"]}}, reason="order")
    project.flush()
    files.edit("IMPL-1", context__depends_on=["IMPL-2"])

    assert_refused(project, handle, "IMPL-1", "circle")


def test_of_two_edits_that_make_a_circle_one_is_adopted(project, handle, files):
    files.edit("IMPL-1", context__depends_on=["IMPL-2"])
    files.edit("IMPL-2", context__depends_on=["IMPL-1"])

    assert sorted(adoption.adopted for adoption in settled(project).values()) == [False, True]
    assert handle.state.tasks.unordered == ()


@pytest.mark.parametrize(
    "change",
    [
        {"context__depends_on": ["IMPL-99"]},
        {"context__depends_on": ["IMPL-1"]},
        {"context__parent": "IMPL-2"},
        {"id": "IMPL-2"},
        {"id": "IMPL-9"},
        {"title": "two\nlines"},
        {"context__focus_paths": ["/etc/passwd"]},
        {"flow_control__pre_analysis": [{"step": "a"}]},
        {"flow_control__pre_analysis": [{"step": "a", "action": "b", "command": "bash(c"}]},
    ],
    ids=str,
)
def test_an_edit_that_breaks_a_rule_is_refused(project, handle, files, change):
    files.edit("IMPL-1", **change)

    assert_refused(project, handle, "IMPL-1")


@pytest.mark.parametrize("stem", ["IMPL-001", "IMPL-01"])
def test_a_second_file_of_the_same_task_is_refused(project, handle, files, stem):
    files.write(stem, new_document("IMPL-1", "A twin") | {"id": stem})

    assert_refused(project, handle, stem)

    assert files.names() == ["IMPL-1.json", "IMPL-2.json", "IMPL-3.json"]
    assert handle.tasks.row("IMPL-1").title == "One"


def test_the_number_of_a_removed_task_is_not_used_again(project, handle, files):
    handle.tasks.remove("IMPL-3")
    project.flush()
    files.write("IMPL-3", new_document("IMPL-3", "Again"))

    assert_refused(project, handle, "IMPL-3", "never used again")


def test_an_edit_of_a_task_that_changed_meanwhile_is_refused(project, handle, files):
    stale = files.document("IMPL-1")
    handle.tasks.replan("IMPL-1", {"title": "Newer"}, reason="better")
    project.flush()
    files.write("IMPL-1", stale | {"title": "From the old one"})

    assert_refused(project, handle, "IMPL-1", "version")

    assert files.document("IMPL-1")["title"] == "Newer"


@pytest.mark.parametrize("flushed", [False, True])
def test_an_edit_beside_a_command_on_the_same_task_is_refused_and_kept(project, handle, files, flushed):
    files.edit("IMPL-1", title="By hand")
    handle.tasks.start("IMPL-1")
    if flushed:
        project.flush()

    adoption = settled(project)["IMPL-1"]

    assert not adoption.adopted
    assert handle.tasks.row("IMPL-1").title == "One"


def test_an_edit_beside_a_command_on_another_task_is_adopted(project, handle, files):
    files.edit("IMPL-1", title="By hand")
    handle.tasks.start("IMPL-2")
    project.flush()

    assert settled(project)["IMPL-1"].adopted


def test_a_completed_task_is_reopened_before_it_is_changed(project, handle, files):
    handle.tasks.start("IMPL-1")
    handle.tasks.done("IMPL-1")
    project.flush()
    files.edit("IMPL-1", title="Rewriting history")

    assert_refused(project, handle, "IMPL-1", "reopen")


def test_a_task_that_was_removed_meanwhile_keeps_what_was_written(project, handle, files):
    files.edit("IMPL-1", title="By hand")

    handle.tasks.remove("IMPL-1")
    project.flush()

    assert "IMPL-1" not in {row.id for row in handle.tasks.rows()}


# Files that came from elsewhere


def test_a_file_that_was_deleted_is_written_again(project, handle, files):
    os.unlink(f"{files.folder}/IMPL-2.json")

    adoption = settled(project)["IMPL-2"]

    assert "detent task remove" in adoption.reasons[0]
    assert files.document("IMPL-2")["title"] == "Two"


def test_a_file_that_was_renamed_is_written_again_and_the_other_one_kept(project, handle, files):
    os.rename(f"{files.folder}/IMPL-2.json", f"{files.folder}/IMPL-8.json")
    with open(f"{files.folder}/IMPL-8.json", "rb") as file:
        files.written.append(file.read())

    adoptions = settled(project)

    assert not adoptions["IMPL-8"].adopted
    assert files.names() == ["IMPL-1.json", "IMPL-2.json", "IMPL-3.json"]


def test_an_old_copy_does_not_take_a_task_back(project, handle, files):
    with open(f"{files.folder}/IMPL-1.json", "rb") as file:
        old = file.read()
    handle.tasks.replan("IMPL-1", {"title": "Newer"}, reason="better")
    project.flush()
    files.write("IMPL-1", old)

    project.reconcile()
    handle.tasks.replan("IMPL-1", {"context": {"acceptance": ["it works"]}}, reason="more")

    assert handle.tasks.document("IMPL-1")["title"] == "Newer"
    assert handle.tasks.row("IMPL-1").title == "Newer"


def test_a_copy_of_another_task_is_not_taken_for_this_one(project, handle, files):
    with open(f"{files.folder}/IMPL-1.json", "rb") as file:
        files.write("IMPL-2", file.read())

    project.reconcile()

    assert handle.tasks.document("IMPL-2")["id"] == "IMPL-2"
    assert files.document("IMPL-2")["title"] == "Two"


def test_the_folder_can_be_lost(project, handle, files):
    for name in os.listdir(files.folder):
        os.unlink(f"{files.folder}/{name}")
    os.rmdir(files.folder)

    project.reconcile()
    handle.tasks.add("Four")
    project.flush()

    assert files.names() == [f"IMPL-{number}.json" for number in (1, 2, 3, 4)]


@pytest.mark.parametrize("text", [b"", b"{", b'[5,100,"x"]', b'[1,3,"0000"]', b"null"])
def test_the_position_of_the_files_can_be_damaged(project, handle, files, text):
    with open(f"{files.folder}/.published.json", "wb") as file:
        file.write(text)

    project.reconcile()
    handle.tasks.add("Four")
    project.flush()

    assert files.document("IMPL-4")["title"] == "Four"


def test_edits_in_a_paused_session_wait_until_it_goes_on(project, handle, files):
    other = project.start(FLOW, "Another")
    files.edit("IMPL-1", title="By hand")
    files.write("IMPL-2", b"{")
    project.reconcile()
    other.tasks.add("Something else")
    project.flush()
    assert handle.tasks.row("IMPL-1").title == "One"

    project.sessions.switch(handle.id)
    project.reconcile()

    assert handle.tasks.row("IMPL-1").title == "By hand"
    assert files.document("IMPL-2")["title"] == "Two"


def test_other_files_in_the_folder_are_left_alone(project, handle, files):
    for name in ("notes.txt", ".hidden.json", "IMPL-1.json~", "IMPL-1.json.orig"):
        with open(f"{files.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(f"this is {name}")
        files.written.append(f"this is {name}".encode())

    assert project.reconcile() == []

    assert {"notes.txt", ".hidden.json", "IMPL-1.json~", "IMPL-1.json.orig"} <= set(os.listdir(files.folder))


def test_the_same_broken_text_twice_is_kept_once(project, handle, files):
    for _ in range(2):
        files.write("IMPL-1", b"{")
        project.reconcile()

    assert [name for name in os.listdir(files.folder) if "rejected" in name] == ["IMPL-1.json.rejected-1"]


def test_an_edit_does_not_complete_a_task_whose_criteria_nobody_told_as_met(project, handle, files):
    handle.tasks.replan("IMPL-1", {"context": {"acceptance": ["it works"]}}, reason="more")
    handle.tasks.start("IMPL-1")
    project.flush()
    files.edit("IMPL-1", status="completed")

    assert_refused(project, handle, "IMPL-1", "acceptance criteria: 1", "texts that say how each is met: 0")
