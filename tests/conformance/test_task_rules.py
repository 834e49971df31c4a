"""Seed 003, tasks: their documents and rules, what may happen to them, and what is generated from them."""

import json
import re
import shlex
import subprocess
from itertools import product
from pathlib import Path

import pytest

from detent.core.flow.reference import task_properties
from detent.core.flow.step import step_problems
from detent.core.task.document import document_problems, new_document
from detent.core.task.row import TaskStatus
from detent.core.task.rules import plan_problems
from detent.core.task.split import ChildDraft
from detent.errors import DetentError, Invalid, NotFound, Refused
from detent.render.markdown.todo_list import GENERATED

FLOW = "plan-implement-review"
#: The seed's task, word for word but for the alternatives that it lists.
EXAMPLE = Path(__file__).parent / "seed_task.json"


@pytest.fixture
def handle(project):
    return project.start(FLOW, "User auth")


@pytest.fixture
def folder(disk, handle):
    return disk.directory / handle.id / ".task"


def document(id_="IMPL-1", title="A task", **changes):
    """A task as an author writes it; `context__parent="x"` changes one key inside `context`."""
    made = new_document(id_, title)
    for key, value in changes.items():
        *path, last = key.split("__")
        at = made
        for part in path:
            at = at[part]
        at[last] = value
    return made


def without(made, *path):
    *outer, last = path
    at = made
    for part in outer:
        at = at[part]
    del at[last]
    return made


def step(**changes):
    return {"step": "look", "action": "Look around", "command": "bash(ls)"} | changes


def by_hand(project, folder, made, stem=None):
    """Write the task as a file, and see what becomes of it."""
    project.flush()
    (folder / f"{stem or made.get('id', 'IMPL-1')}.json").write_text(json.dumps(made))
    (adoption,) = project.reconcile()
    return adoption


# The seed's own examples


@pytest.mark.req("003-json-2")
def test_the_task_of_the_seed_is_taken_whole(project, handle, folder):
    example = json.loads(EXAMPLE.read_text())
    assert [str(problem) for problem in document_problems(example) if problem.severity == "error"] == []
    parent = document("IMPL-1", "Authentication", status="container")

    handle.tasks.write([parent, document("IMPL-1.1", "Design tokens"), example])
    project.flush()

    on_disk = json.loads((folder / "IMPL-1.2.json").read_text())
    assert {key: on_disk[key] for key in example} == example
    assert list(on_disk)[:6] == ["id", "title", "status", "meta", "context", "flow_control"]
    assert handle.tasks.row("IMPL-1.2").depends_on == ("IMPL-1.1",)


@pytest.mark.req("003-json-3")
def test_the_flow_control_example_of_the_seed_has_no_errors():
    example = json.loads((EXAMPLE.parent / "seed_flow.json").read_text())
    made = document(flow_control=example)
    # Its `target_files` holds a sentence that explains the form.
    made["flow_control"]["target_files"] = ["file:function:1-2"]

    problems = [*document_problems(made), *step_problems(example, declared=task_properties(made))]

    assert [str(problem) for problem in problems if problem.severity == "error"] == []


# The integrity rules

MARKS = {
    "003-rule-2": pytest.mark.req("003-rule-2"),
    "003-rule-4": pytest.mark.req("003-rule-4"),
    "003-rule-5": pytest.mark.req("003-rule-5"),
    "003-rule-6": pytest.mark.req("003-rule-6"),
    "003-rule-7": pytest.mark.req("003-rule-7"),
    "003-rule-8": pytest.mark.req("003-rule-8"),
    "003-rule-9": pytest.mark.req("003-rule-9"),
    "003-rule-10": pytest.mark.req("003-rule-10"),
    "003-rule-13": pytest.mark.req("003-rule-13"),
    "003-rule-14": pytest.mark.req("003-rule-14"),
    "003-rule-15": pytest.mark.req("003-rule-15"),
    "003-rule-16": pytest.mark.req("003-rule-16"),
}
BROKEN = {
    "003-rule-2": [
        document() | {"id": "TASK-1"},
        document() | {"id": "IMPL-0"},
        document() | {"id": "IMPL-a"},
        document() | {"id": 7},
    ],
    "003-rule-4": [document() | {"id": "IMPL-1.2.3"}],
    "003-rule-5": [document() | {"status": "done"}, document() | {"status": None}],
    "003-rule-6": [without(document(), key) for key in ("title", "status", "meta", "context", "flow_control")],
    "003-rule-7": [
        document(context__focus_paths=[path])
        for path in ("/etc", "./src", "../other", "src/*", "src/[ab]", "src/{a,b}", "a?", "", "a/../../b")
    ]
    + [document(context__focus_paths="src"), document(context__focus_paths=[3])],
    "003-rule-8": [
        document(flow_control__pre_analysis=steps)
        for steps in (
            None,
            {},
            "ls",
            ["ls"],
            [without(step(), "step")],
            [without(step(), "action")],
            [without(step(), "command")],
            [step(command=3)],
        )
    ],
    "003-rule-9": [
        document(context__depends_on=needs) for needs in (["IMPL-9"], ["IMPL-1"], ["x"], "IMPL-2", ["IMPL-9.1"])
    ],
    "003-rule-10": [document("IMPL-3")],
    "003-rule-13": [
        document(flow_control__pre_analysis=[step(), step()]),
        document(flow_control__pre_analysis=[step(step="one", output_to="same"), step(step="two", output_to="same")]),
    ],
    "003-rule-14": [document(flow_control__pre_analysis=[step(output_to="focus_paths")])],
    "003-rule-15": [
        document(
            flow_control__pre_analysis=[
                step(step="one", command="bash(echo [late])"),
                step(step="two", output_to="late"),
            ]
        )
    ],
    "003-rule-16": [document(flow_control__pre_analysis=[step(command="bash(echo (")])],
}


@pytest.mark.parametrize(
    ("rule", "made"),
    [
        pytest.param(rule, made, id=f"{rule}-{at}", marks=MARKS[rule])
        for rule, broken in BROKEN.items()
        for at, made in enumerate(broken)
    ],
)
def test_a_file_that_breaks_a_rule_is_set_aside_with_the_reason(project, handle, folder, rule, made):
    stem = "IMPL-1"

    adoption = by_hand(project, folder, made, stem)

    assert not adoption.adopted
    assert adoption.reasons
    assert handle.tasks.rows() == []
    assert json.loads((folder.parent.parent / adoption.kept).read_text()) == made


@pytest.mark.parametrize(
    ("rule", "made"),
    [
        pytest.param(rule, made, id=f"{rule}-{at}", marks=MARKS[rule])
        for rule, broken in BROKEN.items()
        for at, made in enumerate(broken)
        if rule != "003-rule-10"
    ],
)
def test_a_document_that_breaks_a_rule_is_refused(handle, rule, made):
    version = handle.state.version

    with pytest.raises(Invalid):
        handle.tasks.write([made])

    assert handle.state.version == version


@pytest.mark.req("003-rule-1")
@pytest.mark.parametrize("twin", ["IMPL-001", "IMPL-01"])
def test_an_id_with_leading_zeros_is_the_same_id(project, handle, folder, twin):
    handle.tasks.add("The first")
    with pytest.raises(Invalid, match="already"):
        handle.tasks.write([document() | {"id": twin}], new=True)

    adoption = by_hand(project, folder, document(title="A twin") | {"id": twin})

    assert not adoption.adopted
    assert [row.title for row in handle.tasks.rows()] == ["The first"]
    assert [path.name for path in folder.glob("IMPL*.json")] == ["IMPL-1.json"]


@pytest.mark.req("003-rule-3")
def test_a_parent_must_exist_and_be_the_one_of_the_id(project, handle, folder):
    handle.tasks.add("No container")
    for made in (document("IMPL-9.1"), document("IMPL-1.1")):
        with pytest.raises(Invalid):
            handle.tasks.write([made])
    for made in (
        document("IMPL-1.1", context__parent="IMPL-2"),
        document("IMPL-1.1", context__parent=None),
        document("IMPL-2", context__parent="IMPL-1"),
    ):
        with pytest.raises(Invalid):
            handle.tasks.write([made])
        assert not by_hand(project, folder, made).adopted

    assert [row.id for row in handle.tasks.rows()] == ["IMPL-1"]


@pytest.mark.req("003-rule-3")
def test_a_missing_parent_is_rebuilt_from_a_part_written_by_hand(project, handle, folder):
    assert by_hand(project, folder, document("IMPL-9.1")).adopted

    assert [(row.id, row.status) for row in handle.tasks.rows()] == [("IMPL-9", "container"), ("IMPL-9.1", "pending")]


@pytest.mark.req("003-rule-11")
def test_a_container_has_parts_and_what_has_parts_is_a_container(project, handle, folder):
    handle.tasks.add("Whole")
    handle.tasks.add("Divided")
    handle.tasks.split("IMPL-2", ["Left", "Right"])
    with pytest.raises(Invalid):
        handle.tasks.write([document("IMPL-3", status="container")])
    project.flush()

    for task, status in (("IMPL-1", "container"), ("IMPL-2", "pending")):
        edited = json.loads((folder / f"{task}.json").read_text()) | {"status": status}
        assert not by_hand(project, folder, edited).adopted

    assert [str(row.status) for row in handle.tasks.rows()] == ["pending", "container", "pending", "pending"]


@pytest.mark.req("003-rule-12")
@pytest.mark.parametrize(
    "needs",
    [
        {"IMPL-1": ["IMPL-2"], "IMPL-2": ["IMPL-1"]},
        {"IMPL-1": ["IMPL-2"], "IMPL-2": ["IMPL-3"], "IMPL-3": ["IMPL-1"]},
        {"IMPL-4.1": ["IMPL-1"], "IMPL-1": ["IMPL-4"]},
        {"IMPL-4.1": ["IMPL-4.2"], "IMPL-4.2": ["IMPL-4.1"]},
        {"IMPL-2": ["IMPL-4.1"], "IMPL-4": ["IMPL-2"]},
        {"IMPL-4": ["IMPL-2"], "IMPL-2": ["IMPL-4.1"]},
    ],
    ids=["two", "three", "part and container", "parts", "container last", "container first"],
)
@pytest.mark.parametrize("way", ["library", "by hand", "at once"])
def test_tasks_never_wait_for_each_other_in_a_circle(project, handle, folder, needs, way):
    for number in range(4):
        handle.tasks.add(f"Task {number}")
    handle.tasks.split("IMPL-4", ["Left", "Right"])
    project.flush()
    *first, last = needs
    changed = {task: handle.tasks.document(task) for task in needs}
    for task, others in needs.items():
        changed[task]["context"]["depends_on"] = others
    if way == "at once":
        with pytest.raises(Invalid, match="circle"):
            handle.tasks.write(changed.values())
        assert not any(row.depends_on for row in handle.tasks.rows())
        return
    handle.tasks.write(changed[task] for task in first)

    if way == "library":
        with pytest.raises(Invalid, match="circle"):
            handle.tasks.write([changed[last]])
    else:
        adoption = by_hand(project, folder, changed[last])
        assert "circle" in " ".join(adoption.reasons)

    assert handle.state.tasks.unordered == ()


@pytest.mark.req("003-rule-17", "003-rule-18")
def test_all_problems_of_all_files_are_told_at_once(project, handle, folder):
    made = document(status="done", context__focus_paths=["/a", "b"], context__depends_on=["x"]) | {"title": ""}
    (folder / "IMPL-1.json").write_text(json.dumps(made))
    (folder / "IMPL-2.json").write_text("{")
    (folder / "IMPL-3.json").write_text(json.dumps(document("IMPL-3", "All right")))

    adoptions = {adoption.document.rpartition("/")[2]: adoption for adoption in project.reconcile()}

    reasons = adoptions["IMPL-1.json"].reasons
    for place in ("title", "status", "context.focus_paths[0]", "context.depends_on[0]"):
        assert any(reason.startswith(f"{place}:") for reason in reasons)
    assert not adoptions["IMPL-2.json"].adopted
    assert adoptions["IMPL-3.json"].adopted
    assert [row.id for row in handle.tasks.rows()] == ["IMPL-3"]


@pytest.mark.req("003-rule-18")
def test_circles_are_reported_even_if_there_are_other_problems(handle):
    from detent.core.task.row import row_of

    rows = [
        row_of(document("IMPL-1", context__depends_on=["IMPL-2", "IMPL-9"])),
        row_of(document("IMPL-2", context__depends_on=["IMPL-1"])),
        row_of(document("IMPL-3", status="container")),
    ]

    assert {problem.rule for problem in plan_problems(rows)} == {"depends-on", "cycle", "container"}


@pytest.mark.req("003-rule-7")
@pytest.mark.parametrize(
    "paths", [["src/auth", "tests/auth", "config/auth.json", "src/middleware/auth.ts"], ["migrations"]]
)
def test_the_focus_paths_of_the_seed_are_fine(handle, paths):
    handle.tasks.write([document(context__focus_paths=paths)])

    assert handle.tasks.document("IMPL-1")["context"]["focus_paths"] == paths


# What may happen to a task

#: Every way to where a task can stand, and every command with where it leads.
WAYS = {
    "pending": [],
    "active": ["start"],
    "completed": ["start", "done"],
    "failed": ["start", "fail"],
    "blocked": ["block"],
    "container": ["split"],
}
MOVES = {
    ("pending", "start"): "active",
    ("pending", "block"): "blocked",
    ("pending", "split"): "container",
    ("active", "done"): "completed",
    ("active", "fail"): "failed",
    ("active", "block"): "blocked",
    ("active", "release"): "pending",
    ("blocked", "unblock"): "pending",
    ("blocked", "resume"): "active",
    ("failed", "retry"): "pending",
    ("completed", "reopen"): "pending",
}
COMMANDS = ("start", "done", "fail", "block", "unblock", "resume", "retry", "release", "reopen", "split")


def move(handle, command, task="IMPL-1"):
    told = {"fail": ("it broke",), "block": ("ask first",), "split": (["Left", "Right"],)}
    return getattr(handle.tasks, command)(task, *told.get(command, ()))


@pytest.mark.req("003-life-1", "003-life-2")
@pytest.mark.parametrize(("status", "command"), list(product(WAYS, COMMANDS)))
def test_every_move_of_the_table_and_no_other(project, handle, folder, status, command):
    handle.tasks.add("A task")
    for earlier in WAYS[status]:
        move(handle, earlier)
    assert str(handle.tasks.row("IMPL-1").status) == status
    before = handle.state

    if (status, command) in MOVES:
        move(handle, command)
        project.flush()
        assert json.loads((folder / "IMPL-1.json").read_text())["status"] == MOVES[status, command]
    else:
        with pytest.raises(DetentError) as refused:
            move(handle, command)
        assert isinstance(refused.value, Refused | Invalid)
        assert handle.state == before


@pytest.mark.req("003-life-3")
def test_a_container_without_parts_is_a_task_again(project, handle):
    handle.tasks.add("A task")
    handle.tasks.split("IMPL-1", ["Left", "Right"])

    handle.tasks.remove("IMPL-1.1")
    assert str(handle.tasks.row("IMPL-1").status) == "container"
    handle.tasks.remove("IMPL-1.2")

    assert str(handle.tasks.row("IMPL-1").status) == "pending"


@pytest.mark.req("003-life-4")
def test_an_edit_to_the_same_status_is_no_change(project, handle, folder):
    handle.tasks.add("A task")
    project.flush()
    version = handle.state.version

    text = json.dumps(json.loads((folder / "IMPL-1.json").read_text()) | {"status": "pending"}, indent=7)
    (folder / "IMPL-1.json").write_text(text)
    project.reconcile()

    assert handle.state.version == version


@pytest.mark.req("003-life-5")
@pytest.mark.parametrize(
    ("parts", "derived"),
    [
        (("completed", "completed"), "completed"),
        (("completed", "failed"), "failed"),
        (("active", "failed"), "failed"),
        (("active", "pending"), "active"),
        (("completed", "pending"), "active"),
        (("blocked", "blocked"), "blocked"),
        (("blocked", "pending"), "pending"),
        (("pending", "pending"), "pending"),
    ],
)
def test_where_a_container_stands_follows_from_its_parts(project, handle, folder, parts, derived):
    handle.tasks.add("A task")
    handle.tasks.split("IMPL-1", ["Left", "Right"])
    for number, status in enumerate(parts, 1):
        for command in WAYS[status]:
            move(handle, command, f"IMPL-1.{number}")
    project.flush()

    assert str(handle.state.tasks.derived_state("IMPL-1")) == derived
    assert json.loads((folder / "IMPL-1.json").read_text())["status"] == "container"


@pytest.mark.req("003-life-6")
def test_the_summary_is_there_before_the_task_is_done(project, handle, folder, monkeypatch):
    handle.tasks.add("A task")
    handle.tasks.start("IMPL-1")
    seen = []
    append = project.store.append

    def watched(*arguments):
        seen.append((folder.parent / ".summaries/IMPL-1-summary.md").exists())
        return append(*arguments)

    monkeypatch.setattr(project.store, "append", watched)
    handle.tasks.done("IMPL-1", "What was done")

    assert seen == [True]


@pytest.mark.req("003-life-7")
def test_reopening_names_completed_tasks_that_built_on_it(handle):
    handle.tasks.add("First")
    handle.tasks.add("Second", depends_on=["impl-1"])
    for task in ("IMPL-1", "IMPL-2"):
        handle.tasks.start(task)
        handle.tasks.done(task)

    assert "IMPL-2" in handle.tasks.reopen("IMPL-1").warnings[0]


# Decomposition and dependencies


@pytest.mark.req("003-split-1")
def test_parts_inherit_what_the_task_knew(project, handle, folder):
    made = document(
        "IMPL-1", "Authentication", context__requirements=["JWT"], context__shared_context={"auth_strategy": "JWT"}
    )
    handle.tasks.write([made])

    handle.tasks.split("IMPL-1", ["Test the login", ChildDraft(title="Implement login", after=(1,))])
    project.flush()

    first, second = (json.loads((folder / f"IMPL-1.{number}.json").read_text()) for number in (1, 2))
    assert first["context"]["inherited"] == {"from": "IMPL-1", "context": ["JWT"]}
    assert first["context"]["shared_context"] == {"auth_strategy": "JWT"}
    assert first["meta"] == {"type": "test", "agent": "code-review-test-agent"}
    assert second["context"]["depends_on"] == ["IMPL-1.1"]
    assert (folder.parent / "TODO_LIST.md").read_text().count("**IMPL-1.") == 2


@pytest.mark.req("003-split-2")
def test_only_a_pending_main_task_is_broken_down(handle):
    for number in range(3):
        handle.tasks.add(f"Task {number}")
    handle.tasks.split("IMPL-1", ["Left"])
    handle.tasks.start("IMPL-2")
    version = handle.state.version

    with pytest.raises(NotFound):
        handle.tasks.split("IMPL-9", ["x"])
    with pytest.raises(Refused) as deep:
        handle.tasks.split("IMPL-1.1", ["x"])
    assert deep.value.way_out == "add a main task instead"
    for task in ("IMPL-1", "IMPL-2"):
        with pytest.raises(Refused):
            handle.tasks.split(task, ["x"])
    with pytest.raises(DetentError):
        handle.tasks.add("too deep", parent="IMPL-1.1")

    assert handle.state.version == version


@pytest.mark.req("003-split-3")
def test_numbers_are_never_used_again(handle):
    handle.tasks.add("First")
    handle.tasks.add("Second")
    handle.tasks.remove("IMPL-2")
    handle.tasks.add("Third")
    handle.tasks.split("IMPL-1", ["a", "b"])
    handle.tasks.remove("IMPL-1.2")
    handle.tasks.add("c", parent="IMPL-1")
    for task in ("IMPL-1.3", "IMPL-1.1"):
        handle.tasks.remove(task)
    handle.tasks.split("IMPL-1", ["d"])

    assert [row.id for row in handle.tasks.rows()] == ["IMPL-1", "IMPL-1.4", "IMPL-3"]


@pytest.mark.req("003-dep-1", "003-dep-2")
def test_a_part_waits_for_its_own_and_its_parents_needs(handle):
    for number in range(4):
        handle.tasks.add(f"Task {number}", depends_on=["IMPL-1"] if number == 2 else ())
    handle.tasks.split("IMPL-3", ["a", "b"])
    handle.tasks.add("Last", depends_on=["IMPL-3"])
    plan = lambda: handle.state.tasks  # noqa: E731

    assert plan().ready == ("IMPL-1", "IMPL-2", "IMPL-4")
    assert plan().waiting["IMPL-3.1"] == ("IMPL-1",)
    with pytest.raises(Refused, match="IMPL-1"):
        handle.tasks.start("IMPL-3.1")
    with pytest.raises(Refused, match="container"):
        handle.tasks.start("IMPL-3")
    handle.tasks.start("IMPL-1")
    handle.tasks.fail("IMPL-1", "it broke")
    assert plan().waiting["IMPL-3.1"] == ("IMPL-1",)
    handle.tasks.retry("IMPL-1")
    handle.tasks.start("IMPL-1")
    handle.tasks.done("IMPL-1")
    assert "IMPL-3.1" in plan().ready
    for part in ("IMPL-3.1", "IMPL-3.2"):
        assert "IMPL-5" in plan().waiting
        handle.tasks.start(part)
        handle.tasks.done(part)
    assert "IMPL-5" in plan().ready


@pytest.mark.req("003-dep-3")
def test_a_task_that_others_need_is_not_removed(handle):
    handle.tasks.add("First")
    handle.tasks.add("Second", depends_on=["IMPL-1"])

    with pytest.raises(Refused, match="IMPL-2"):
        handle.tasks.remove("IMPL-1")


# Complexity


@pytest.mark.req("003-cplx-1")
@pytest.mark.parametrize(
    ("count", "expected"), [(1, "simple"), (4, "simple"), (5, "medium"), (15, "medium"), (16, "complex")]
)
def test_complexity_is_the_number_of_tasks(project, handle, disk, count, expected):
    handle.tasks.write([document(f"IMPL-{number}") for number in range(1, count + 1)])
    project.flush()

    assert disk.session(handle.id)["type"] == expected


@pytest.mark.req("003-cplx-2", "003-cplx-3")
def test_complexity_rises_and_never_falls(project, handle, disk):
    level = lambda: (project.flush(), disk.session(handle.id)["type"])[1]  # noqa: E731
    handle.tasks.add("A task")
    assert level() == "simple"
    handle.tasks.split("IMPL-1", ["a"])
    assert level() == "medium"
    handle.tasks.remove("IMPL-1.1")
    assert level() == "medium"
    with pytest.raises(Refused):
        handle.tasks.set_complexity("simple")
    handle.tasks.set_complexity("complex")
    assert level() == "complex"
    with pytest.raises(Invalid):
        handle.tasks.set_complexity("huge")


# Agents


@pytest.mark.req("003-agent-1")
@pytest.mark.parametrize(
    ("title", "agent"),
    [
        ("Plan the migration", "planning-agent"),
        ("Design the API", "planning-agent"),
        ("Implement login", "code-developer"),
        ("Fix the crash", "code-developer"),
        ("Test the login", "code-review-test-agent"),
        ("Validate input", "code-review-test-agent"),
        ("Review the code", "review-agent"),
        ("Audit permissions", "review-agent"),
        ("Something else", "code-developer"),
    ],
)
def test_the_title_says_who_does_it(handle, title, agent):
    handle.tasks.add(title)

    assert handle.tasks.document("IMPL-1")["meta"]["agent"] == agent


@pytest.mark.req("003-agent-2")
def test_an_agent_that_was_named_comes_first(handle):
    handle.tasks.add("Review the code", agent="somebody-else")
    handle.tasks.add("Login", kind="test")
    handle.tasks.add("Review it", kind="test")

    agents = [handle.tasks.row(f"IMPL-{number}").agent for number in (1, 2, 3)]
    assert agents == ["somebody-else", "code-review-test-agent", "review-agent"]


@pytest.mark.req("003-ctx-1")
def test_an_agent_is_given_the_task_and_what_is_around_it(project, handle, folder):
    handle.tasks.write([document("IMPL-1"), document("IMPL-2", context__depends_on=["IMPL-1"])])
    handle.tasks.start("IMPL-1")
    handle.tasks.done("IMPL-1", "Use the port 8080.")
    handle.tasks.start("IMPL-2")
    project.flush()

    context = handle.tasks.context("IMPL-2")

    on_disk = json.loads((folder / "IMPL-2.json").read_text())
    on_disk.pop("_detent")
    assert context["task"] == on_disk
    assert context["workflow"] == {"session": "WFS-user-auth", "phase": "IMPLEMENT"}
    assert context["dependency_summaries"] == {"IMPL-1": "Use the port 8080.\n"}
    assert Path(context["paths"]["task"]) == folder / "IMPL-2.json"
    assert all(Path(context["paths"][name]).exists() for name in ("session", "todo", "summaries", "task"))


# Views

LEGEND = """\

## Status Legend
- `▸` = Container task (has subtasks)
- `- [ ]` = Pending leaf task
- `- [x]` = Completed leaf task
- Maximum 2 levels: Main tasks and subtasks only
"""


@pytest.mark.req("003-todo-1")
def test_the_todo_list_has_the_ids_of_the_template(project, handle, folder):
    for stem, title, status in (
        ("IMPL-001", "Main Task Group", "container"),
        ("IMPL-001.1", "Subtask", "pending"),
        ("IMPL-001.2", "Subtask", "pending"),
        ("IMPL-002", "Simple Task", "pending"),
    ):
        (folder / f"{stem}.json").write_text(json.dumps(document(stem, title, status=status) | {"id": stem}))
    assert all(adoption.adopted for adoption in project.reconcile())
    for task, summary in (("IMPL-001.2", "done"), ("IMPL-002", "")):
        handle.tasks.start(task)
        handle.tasks.done(task, summary)
    project.flush()

    text = (folder.parent / "TODO_LIST.md").read_text()
    assert (
        text.partition("## Task Progress\n")[2].partition("\n## Status Legend")[0]
        == """\
▸ **IMPL-001**: Main Task Group → [📋](./.task/IMPL-001.json)
  - [ ] **IMPL-001.1**: Subtask → [📋](./.task/IMPL-001.1.json)
  - [x] **IMPL-001.2**: Subtask → [📋](./.task/IMPL-001.2.json) | [✅](./.summaries/IMPL-1.2-summary.md)

- [x] **IMPL-002**: Simple Task → [📋](./.task/IMPL-002.json)
"""
    )
    links = re.findall(r"\]\(\./([^)]*)\)", text)
    assert all((folder.parent / link).exists() for link in links)


@pytest.mark.req("003-todo-1")
def test_the_todo_list_is_the_template_of_the_seed(project, handle, folder):
    for title in ("Main Task Group", "Simple Task", "Main Task Group"):
        handle.tasks.add(title)
    handle.tasks.split("IMPL-1", ["Subtask", "Subtask"])
    handle.tasks.split("IMPL-3", ["Subtask", "Subtask"])
    for task in ("IMPL-1.2", "IMPL-2"):
        handle.tasks.start(task)
        handle.tasks.done(task, "done")
    project.flush()

    assert (
        (folder.parent / "TODO_LIST.md").read_text()
        == f"""\
{GENERATED}
# Tasks: User auth

## Task Progress
▸ **IMPL-1**: Main Task Group → [📋](./.task/IMPL-1.json)
  - [ ] **IMPL-1.1**: Subtask → [📋](./.task/IMPL-1.1.json)
  - [x] **IMPL-1.2**: Subtask → [📋](./.task/IMPL-1.2.json) | [✅](./.summaries/IMPL-1.2-summary.md)

- [x] **IMPL-2**: Simple Task → [📋](./.task/IMPL-2.json) | [✅](./.summaries/IMPL-2-summary.md)

▸ **IMPL-3**: Main Task Group → [📋](./.task/IMPL-3.json)
  - [ ] **IMPL-3.1**: Subtask → [📋](./.task/IMPL-3.1.json)
  - [ ] **IMPL-3.2**: Subtask → [📋](./.task/IMPL-3.2.json)
{LEGEND}"""
    )
    links = re.findall(r"\]\(\./([^)]*)\)", (folder.parent / "TODO_LIST.md").read_text())
    assert all((folder.parent / link).exists() for link in links)


@pytest.mark.req("003-todo-2")
def test_open_tasks_say_where_they_stand_and_order_is_by_number(project, handle, folder):
    for number in range(1, 12):
        handle.tasks.add(f"Task *{number}*\n")
    handle.tasks.start("IMPL-2")
    handle.tasks.block("IMPL-3", "ask first")
    handle.tasks.start("IMPL-4")
    handle.tasks.fail("IMPL-4", "it broke")
    handle.tasks.start("IMPL-5")
    handle.tasks.done("IMPL-5")
    project.flush()

    lines = [line for line in (folder.parent / "TODO_LIST.md").read_text().splitlines() if "**IMPL" in line]

    assert [line.split("**")[1] for line in lines] == [f"IMPL-{number}" for number in range(1, 12)]
    assert lines[1] == r"- [ ] **IMPL-2**: Task \*2\* (active) → [📋](./.task/IMPL-2.json)"
    assert "(blocked)" in lines[2]
    assert "(failed)" in lines[3]
    assert lines[4] == r"- [x] **IMPL-5**: Task \*5\* → [📋](./.task/IMPL-5.json)"


@pytest.mark.req("003-todo-3")
def test_generating_again_writes_nothing(project, handle, folder):
    handle.tasks.add("A task")
    project.flush()
    files = [folder.parent / name for name in ("TODO_LIST.md", "IMPL_PLAN.md", ".task/IMPL-1.json")]
    before = [(path.read_bytes(), path.stat().st_ino) for path in files]

    project.reconcile()
    project.rebuild()

    assert [(path.read_bytes(), path.stat().st_ino) for path in files] == before


@pytest.mark.req("003-todo-4")
@pytest.mark.parametrize("view", ["TODO_LIST.md", "IMPL_PLAN.md"])
def test_a_view_that_was_edited_is_kept_and_written_over(project, handle, folder, view):
    handle.tasks.add("A task")
    project.flush()
    path = folder.parent / view
    generated = path.read_text()
    path.write_text("- [x] **IMPL-1**: a person ticked this\n")

    project.reconcile()
    handle.tasks.add("Another task")
    project.flush()

    assert path.read_text() != generated
    assert "a person ticked" not in path.read_text()
    kept = [other.read_text() for other in folder.parent.glob(f"{view}.bak*")]
    assert kept == ["- [x] **IMPL-1**: a person ticked this\n"]
    assert str(handle.tasks.row("IMPL-1").status) == "pending"


@pytest.mark.req("003-todo-4")
def test_a_second_edit_of_a_view_does_not_lose_the_first(project, handle, folder):
    path = folder.parent / "TODO_LIST.md"
    for number in (1, 2):
        project.flush()
        path.write_text(f"note {number}\n")
        handle.tasks.add(f"Task {number}")
        project.flush()

    kept = {other.read_text() for other in folder.parent.glob("TODO_LIST.md.*")}
    assert kept == {"note 1\n", "note 2\n"}


@pytest.mark.req("003-plan-1")
def test_the_plan_has_overview_requirements_structure_and_order(project, handle, folder):
    handle.tasks.add("First", depends_on=(), requirements=["JWT", "OAuth2"], acceptance=["it works"])
    handle.tasks.add("Second", requirements=["OAuth2", "Logout"])
    handle.tasks.replan("IMPL-1", {"context": {"depends_on": ["IMPL-2"]}}, reason="the other way round")
    project.flush()

    text = (folder.parent / "IMPL_PLAN.md").read_text()

    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Implementation Plan",
        "## Overview",
        "## Requirements",
        "## Task Structure",
        "## Execution Order",
    ]
    assert "- Session: WFS-user-auth\n- Complexity: simple\n- Phase: PLAN\n" in text
    assert "- JWT\n- OAuth2\n- Logout\n" in text
    assert "- **IMPL-1**: First\n  - Type: feature, agent: code-developer\n  - Depends on: IMPL-2\n" in text
    assert "  - Acceptance: it works\n" in text
    assert text.endswith("## Execution Order\n1. IMPL-2: Second\n2. IMPL-1: First\n")


# Data operations


@pytest.mark.req("003-ops-1")
def test_tasks_are_made_by_the_command_of_the_seed(project, handle, folder):
    files = {
        "IMPL-1": document("IMPL-1", "Group", status="container"),
        "IMPL-1.1": document("IMPL-1.1", "First", context__depends_on=["IMPL-2"]),
        "IMPL-2": document("IMPL-2", "Second"),
    }
    project.flush()
    for stem, made in files.items():
        script = f"cd .workflow/{handle.id}; echo {shlex.quote(json.dumps(made))} > .task/{stem}.json"
        subprocess.run(["bash", "-c", script], cwd=project.place.base, check=True, timeout=60)

    assert [adoption.adopted for adoption in project.reconcile()] == [True] * 3

    assert [(row.id, row.status) for row in handle.tasks.rows()] == [
        ("IMPL-1", "container"),
        ("IMPL-1.1", "pending"),
        ("IMPL-2", "pending"),
    ]
    assert handle.tasks.next().id == "IMPL-2"


@pytest.mark.req("003-ops-1")
def test_a_task_is_made_by_writing_its_file(project, handle, folder):
    made = document("IMPL-1", "New task")

    adoption = by_hand(project, folder, made)

    assert adoption.adopted
    assert handle.tasks.row("IMPL-1").title == "New task"
    assert "New task" in (folder.parent / "TODO_LIST.md").read_text()


@pytest.mark.req("003-ops-2")
def test_a_status_is_changed_by_moving_a_file_there(project, handle, folder, root):
    handle.tasks.add("A task")
    project.flush()
    changed = json.loads((folder / "IMPL-1.json").read_text()) | {"status": "active"}
    (root / "temp").write_text(json.dumps(changed, indent=2))
    (root / "temp").rename(folder / "IMPL-1.json")

    (adoption,) = project.reconcile()

    assert adoption.adopted
    assert handle.tasks.row("IMPL-1").status is TaskStatus.ACTIVE
    assert handle.state.claims.keys() == {"IMPL-1"}
    assert handle.state.phases["IMPLEMENT"].status == "in_progress"


@pytest.mark.req("003-ops-3")
@pytest.mark.parametrize("view", ["TODO_LIST.md", "IMPL_PLAN.md"])
def test_documents_are_generated_again_from_the_tasks(project, handle, folder, view):
    handle.tasks.add("A task")
    project.flush()
    path = folder.parent / view
    text = path.read_bytes()
    path.unlink()

    project.reconcile()

    assert path.read_bytes() == text


# Flow control: what is said about it


@pytest.mark.req("003-flow-1")
@pytest.mark.parametrize("strategy", ["skip_optional", "fail", "retry_once", "manual_intervention"])
def test_every_strategy_of_the_seed_is_known(handle, strategy):
    handle.tasks.write([document(flow_control__pre_analysis=[step(on_error=strategy)])])


@pytest.mark.req("003-flow-1", "003-flow-2", "003-flow-3")
@pytest.mark.parametrize(
    "change",
    [
        {"on_error": "ignore"},
        {"output_to": "not a name"},
        {"success_criteria": "looks_good"},
        {"success_criteria": "exit_code:x"},
        {"timeout": -1},
        {"command": ""},
        {"step": ""},
    ],
    ids=str,
)
def test_a_step_with_a_field_out_of_its_range_is_refused(handle, change):
    with pytest.raises(Invalid):
        handle.tasks.write([document(flow_control__pre_analysis=[step(**change)])])


@pytest.mark.req("003-flow-2", "003-flow-3")
def test_outputs_and_criteria_of_the_seed_are_fine(handle):
    steps = [
        step(step="one", output_to="found", success_criteria="exit_code:0"),
        step(step="two", command="bash(echo [found] [focus_paths] ${depends_on})"),
        step(step="three", command="ls -l"),
    ]

    handle.tasks.write([document(flow_control__pre_analysis=steps)])

    assert handle.tasks.document("IMPL-1")["flow_control"]["pre_analysis"] == steps


@pytest.mark.req("003-flow-4")
@pytest.mark.parametrize(
    "target", ["src/auth/login.ts:handleLogin:75-120", "src/middleware/auth.ts:validateToken", "a.py"]
)
def test_targets_name_file_symbol_and_lines(handle, target):
    handle.tasks.write([document(flow_control__target_files=[target])])


@pytest.mark.req("003-flow-4")
@pytest.mark.parametrize("target", ["/a.py", "a.py:f:9-2", "a.py:f:x", "a.py:f:1-2:3", "../a.py", ""])
def test_targets_of_another_form_are_refused(handle, target):
    with pytest.raises(Invalid):
        handle.tasks.write([document(flow_control__target_files=[target])])


@pytest.mark.req("003-plan-2")
def test_replanning_needs_a_reason_and_keeps_the_old_text(handle):
    handle.tasks.add("Before")
    with pytest.raises(Invalid):
        handle.tasks.replan("IMPL-1", {"title": "After"}, reason=" ")

    handle.tasks.replan("IMPL-1", {"title": "After"}, reason="it was wrong")

    assert handle.tasks.row("IMPL-1").version == 2
    written = [
        event.document["title"] for commit in handle.log() for event in commit.events if hasattr(event, "document")
    ]
    assert written == ["Before", "After"]
    handle.tasks.start("IMPL-1")
    with pytest.raises(Refused):
        handle.tasks.replan("IMPL-1", {"title": "Too late"}, reason="x")
