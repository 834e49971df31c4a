import pytest

from detent.clients.claude_code.task_list import read_claude_tasks, read_todo_list
from detent.core.task.exchange.backlog import read_backlog
from detent.core.task.exchange.draft import walk
from detent.core.task.exchange.front_matter import split_front_matter
from detent.core.task.exchange.spec_kit import read_spec_kit
from detent.core.task.exchange.taskmaster import read_taskmaster
from detent.errors import Invalid, NotFound
from tests.support.task_model import S

TASKS = [
    {"id": 1, "title": "Init", "description": "Set up", "status": "done", "dependencies": [], "priority": "high"},
    {
        "id": 2,
        "title": "Core",
        "status": "in-progress",
        "dependencies": [1],
        "details": "Do it well",
        "testStrategy": "Unit tests",
        "subtasks": [
            {"id": 1, "title": "Auth", "status": "review", "dependencies": []},
            {"id": 2, "title": "DB", "status": "pending", "dependencies": [1, "1", "2.1"]},
        ],
    },
    {"id": 3, "title": "UI", "status": "deferred", "dependencies": [2]},
    {"id": 4, "title": "Gone", "status": "cancelled"},
    {"id": 5, "title": "Odd", "status": "someday"},
]
FILE = """---
id: TASK-8.7
title: >-
  Let people link accounts outside SSO, join them
  and resolve links
status: In Progress
assignee: []
created_date: '2026-06-15 02:43'
labels:
  - 'blocker:1.0'
dependencies:
  - task-8.5
  - BACK-009
modified_files: [src/a.py, "src/b, c.py"]
parent_task_id: task-8
priority: high
---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
Some text
over lines.
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria (the what)
<!-- AC:BEGIN -->
- [ ] #1 First
- [x] #2 Second
<!-- AC:END -->
"""


def backlog(id_: str, **keys: str) -> str:
    return "\n".join(
        ["---", f"id: {id_}", f"title: {id_}", *(f"{key}: {value}" for key, value in keys.items()), "---", ""]
    )


@pytest.mark.parametrize(
    "data", [{"tasks": TASKS, "meta": {}}, {"master": {"tasks": TASKS}, "x": {"tasks": []}}, {"x": {"tasks": TASKS}}]
)
def test_task_master_tasks_are_read_in_both_shapes(data):
    drafts = read_taskmaster(data)

    assert [(each.source_id, each.status, each.depends_on) for each in walk(drafts)] == [
        ("1", S.COMPLETED, ()),
        ("2", S.ACTIVE, ("1",)),
        ("2.1", S.ACTIVE, ()),
        ("2.2", S.PENDING, ("2.1", "2.1", "2.1")),
        ("3", S.BLOCKED, ("2",)),
        ("4", S.BLOCKED, ()),
        ("5", S.PENDING, ()),
    ]
    assert (drafts[0].requirements, drafts[0].priority) == (("Set up",), "high")
    assert (drafts[1].description, drafts[1].acceptance) == ("Do it well", ("Unit tests",))
    assert "cancelled" in drafts[3].reason
    assert "someday" in drafts[4].notes[0]


def test_a_tag_is_chosen_by_name():
    data = {"a": {"tasks": TASKS[:1]}, "b": {"tasks": TASKS[:2]}}

    assert len(read_taskmaster(data, tag="b")) == 2
    with pytest.raises(NotFound, match="'c'; it has a, b"):
        read_taskmaster(data, tag="c")
    with pytest.raises(Invalid, match="name one of a, b"):
        read_taskmaster(data)


def test_blocks_and_blocked_by_say_the_same():
    drafts = read_claude_tasks(
        [
            {
                "id": "1",
                "subject": "One",
                "description": "Do",
                "status": "completed",
                "blocks": ["2", "3"],
                "blockedBy": [],
            },
            {"id": "2", "subject": "Two", "status": "in_progress", "blockedBy": ["1"], "activeForm": "Doing two"},
            {"id": "3", "subject": "Three", "status": "pending", "blockedBy": ["2"]},
            {"id": "4", "subject": "Four", "status": "deleted"},
        ]
    )

    assert [(each.source_id, each.title, each.status, each.depends_on, each.requirements) for each in drafts] == [
        ("1", "One", S.COMPLETED, (), ("Do",)),
        ("2", "Two", S.ACTIVE, ("1",), ()),
        ("3", "Three", S.PENDING, ("1", "2"), ()),
    ]


@pytest.mark.parametrize("wrap", [lambda todos: todos, lambda todos: {"todos": todos}])
def test_a_todo_list_is_read_by_position(wrap):
    todos = [
        {"content": "One", "status": "completed", "activeForm": "Doing one"},
        {"content": "Two", "status": "in_progress", "priority": "high"},
    ]

    assert [(each.source_id, each.title, each.status, each.priority) for each in read_todo_list(wrap(todos))] == [
        ("1", "One", S.COMPLETED, None),
        ("2", "Two", S.ACTIVE, "high"),
    ]


def test_backlog_files_are_read_and_nested():
    drafts = read_backlog(
        {"b.md": FILE, "a.md": backlog("TASK-8"), "c.md": backlog("TASK-8.5"), "d.md": backlog("TASK-9", status="Done")}
    )

    task, done = drafts
    linked = task.subtasks[1]
    assert [part.source_id for part in task.subtasks] == ["TASK-8.5", "TASK-8.7"]
    assert linked.title == "Let people link accounts outside SSO, join them and resolve links"
    assert (linked.status, linked.priority) == (S.ACTIVE, "high")
    assert linked.depends_on == ("TASK-8.5", "TASK-9")
    assert linked.requirements == ("Some text\nover lines.",)
    assert linked.acceptance == ("First", "Second")
    assert linked.files == ("src/a.py", "src/b, c.py")
    assert done.status is S.COMPLETED


def test_front_matter_has_texts_and_lists():
    text = """---
a: 'it''s'
b: "x\\ty"
c: [1, 'two, three', "fo\\"ur"]
d:
- x # note
- >-
  long
  text
e: |
  a
  b
f:
g: plain # note
h: null
---
body"""

    keys, body = split_front_matter(text)

    assert {key: value for key, value in keys.items() if isinstance(value, list)} == {
        "c": ["1", "two, three", 'fo"ur'],
        "d": ["x", "long text"],
    }
    assert [keys[key] for key in "abefgh"] == ["it's", "x\ty", "a\nb", "", "plain", ""]
    assert body == "body"


BAD_TASKS = [1, {"id": 2}, {"id": 3, "title": "x", "dependencies": 4}]
BAD_PARTS = [{"id": 1, "title": "a", "subtasks": 3}, {"id": 1, "title": "b"}]
BAD_CLAUDE = [{"id": "1"}, 2, {"id": "3", "subject": "x", "blocks": "y"}]
BAD_FILES = {"a": "x", "b": "---\nid: 1\n", "c": backlog(""), "d": "---\nid: 1\n  ?\n---"}
LOOP = {"a": backlog("T-1", parent_task_id="T-2"), "b": backlog("T-2", parent_task_id="T-1")}


@pytest.mark.parametrize(
    ("read", "data", "words"),
    [
        (read_taskmaster, {"tasks": BAD_TASKS}, ["task 1 must", "task 2 needs", "task 3: dep"]),
        (read_taskmaster, {"tasks": BAD_PARTS}, ["subtasks must", "1 is there twice"]),
        (read_taskmaster, [], ["must be an object"]),
        (read_taskmaster, {"x": 1}, ["no tasks"]),
        (read_claude_tasks, BAD_CLAUDE, ["task 1:", "task 2:", "task 3: blocks"]),
        (read_claude_tasks, "x", ["a list of tasks"]),
        (read_todo_list, [{"content": 1}, 2], ["todo 1:", "todo 2:"]),
        (read_backlog, BAD_FILES, ["a: it does not", "b: the part", "c: id and title", "d:"]),
        (read_backlog, {"a": backlog("TASK-1"), "b": backlog("task-01")}, ["b: task-01 is there twice"]),
        (read_backlog, LOOP, ["T-1 is a part of itself"]),
    ],
)
def test_all_that_cannot_be_read_is_reported_at_once(read, data, words):
    with pytest.raises(Invalid) as error:
        read(data)

    assert all(word in str(error.value) for word in words), str(error.value)


SPEC_KIT = """# Tasks: Accounts

- [ ] T000 An example outside of the phases

## Phase 1: Setup (Shared Infrastructure)

- [x] T001 Create project structure
- [ ] T002 [P] Configure linting
- [ ] T003 [P] Configure formatting

## Phase 2: Foundational (Blocking Prerequisites)

- [ ] T004 Set up the schema in src/db/schema.py

## Phase 3: User Story 1 - Sign in (Priority: P1)

### Tests for User Story 1

- [ ] T005 [P] [US1] Contract test in tests/contract/test_sign_in.py
- [ ] T006 [US1] Implement the endpoint in src/api/sign_in.py (depends on T004)

## Phase 4: User Story 2 - Sign out (Priority: P2)

- [ ] T007 [US2] Implement the endpoint

## Phase N: Polish & Cross-Cutting Concerns

- [ ] T008 [P] Documentation updates in docs/

## Notes

- [ ] T009 Not a task
"""


def test_spec_kit_order_becomes_dependencies():
    drafts = {draft.source_id: draft for draft in read_spec_kit(SPEC_KIT)}

    assert {id_: draft.depends_on for id_, draft in drafts.items()} == {
        "T001": (),
        "T002": ("T001",),
        "T003": ("T001",),
        "T004": ("T002", "T003"),
        "T005": ("T004",),
        "T006": ("T004", "T005"),
        "T007": ("T004",),
        "T008": ("T004", "T006", "T007"),
    }
    assert drafts["T001"].status is S.COMPLETED
    assert drafts["T006"].title == "Implement the endpoint in src/api/sign_in.py"
    assert drafts["T006"].files == ("src/api/sign_in.py",)


def test_spec_kit_without_phases_has_no_tasks():
    assert read_spec_kit("# Tasks\n\n- [ ] T001 Alone\n") == ()
