"""The same plan of work as Detent, task-master and Backlog.md keep it."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

import detent
from bench.measure import say
from bench.peers import ENVIRONMENTS
from bench.workload import make_project
from detent.core.task.document import new_document
from detent.engine.project import Project
from detent.engine.tasks.tasks import Tasks

TITLE = "Handle case {} of the importer"
_TEXT = "Every record is read, and errors name their line."
_CHECK = "the tests of the importer pass"
_BATCH = 5_000
#: What decides how a project's files look: if it changes, projects are made anew.
_WRITERS = ("core", "documents", "engine", "store", "views")
_TASK_MASTER_MODEL = {"provider": "anthropic", "modelId": "none", "maxTokens": 1_000, "temperature": 0.2}
_BACKLOG_CONFIG = """project_name: "bench"
default_status: "To Do"
statuses: ["To Do", "In Progress", "Done"]
labels: []
date_format: yyyy-mm-dd
remote_operations: false
auto_commit: false
filesystem_only: true
check_active_branches: false
task_prefix: "task"
"""
_BACKLOG_TASK = """---
id: TASK-{number}
title: {title}
status: To Do
assignee: []
created_date: '2026-01-01 00:00'
labels: []
dependencies: {needs}
ordinal: {number}000
---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
{text}
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [ ] #1 {check}
<!-- AC:END -->
"""


def needs(number: int) -> Iterator[int]:
    """Ten strands of work, tied together every third task."""
    if number > 10:
        yield number - 10
    if number > 100 and number % 3 == 0:
        yield number - 97


def cached_project(count: int) -> str:
    """A project with so many tasks, made on first use and kept for the next run."""
    folder = os.path.join(ENVIRONMENTS, "tasks")
    directory = os.path.join(folder, f"{count}-{_fingerprint()}")
    if os.path.isdir(directory):
        return directory
    say(f"making a project with {count:,} tasks in {os.path.relpath(directory)}")
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.startswith(f"{count}-"):
            shutil.rmtree(os.path.join(folder, name))
    unfinished = os.path.join(folder, f"{count}-unfinished")
    task_project(unfinished, count)
    os.rename(unfinished, directory)
    return directory


def task_project(directory: str, count: int) -> str:
    """A new project with so many tasks."""
    with make_project(directory) as project:
        fill_tasks(project, project.start("feature", "Import everything").tasks, count)
    return directory


def fill_tasks(project: Project, tasks: Tasks, count: int) -> None:
    for start in range(1, count + 1, _BATCH):
        tasks.write([_document(number) for number in range(start, min(start + _BATCH, count + 1))])
        project.flush()


def task_master_project(directory: str, count: int) -> None:
    """`.taskmaster/` as `task-master init` and planning leave it, with what could reach out turned off."""
    tasks = [
        {
            "id": number,
            "title": TITLE.format(number),
            "description": _TEXT,
            "status": "pending",
            "dependencies": list(needs(number)),
            "priority": "medium",
            "details": "src/importer",
            "testStrategy": _CHECK,
            "subtasks": [],
        }
        for number in range(1, count + 1)
    ]
    day = "2026-01-01T00:00:00.000Z"
    models = dict.fromkeys(("main", "research", "fallback"), _TASK_MASTER_MODEL)
    settings = {"logLevel": "info", "projectName": "bench", "anonymousTelemetry": False, "enableProxy": False}
    about = {"created": day, "updated": day, "description": "bench"}
    _write_json(directory, "config.json", {"models": models, "global": settings})
    _write_json(directory, "state.json", {"currentTag": "master", "lastSwitched": day, "branchTagMapping": {}})
    _write_json(directory, "tasks/tasks.json", {"master": {"tasks": tasks, "metadata": about}})


def backlog_project(directory: str, count: int) -> None:
    """`backlog/` as `backlog init --no-git` and `backlog task create` leave it."""
    folder = os.path.join(directory, "backlog", "tasks")
    os.makedirs(folder)
    with open(os.path.join(directory, "backlog", "config.yml"), "w", encoding="utf-8") as file:
        file.write(_BACKLOG_CONFIG)
    for number in range(1, count + 1):
        title = TITLE.format(number)
        named = "".join(f"\n  - TASK-{need}" for need in needs(number)).lstrip(" ") or "[]"
        text = _BACKLOG_TASK.format(number=number, title=title, needs=named, text=_TEXT, check=_CHECK)
        with open(os.path.join(folder, f"task-{number} - {title.replace(' ', '-')}.md"), "w", encoding="utf-8") as file:
            file.write(text)


def _document(number: int) -> dict[str, Any]:
    return new_document(
        f"IMPL-{number}",
        TITLE.format(number),
        requirements=[_TEXT],
        focus_paths=["src/importer"],
        acceptance=[_CHECK],
        depends_on=[f"IMPL-{need}" for need in needs(number)],
    )


def _write_json(directory: str, name: str, content: object) -> None:
    path = os.path.join(directory, ".taskmaster", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)


def _fingerprint() -> str:
    """Of the code that writes the files, and of this one."""
    root = os.path.dirname(detent.__file__)
    paths = [__file__]
    for part in _WRITERS:
        for folder, _, names in os.walk(os.path.join(root, part)):
            paths += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    total = hashlib.sha256()
    for path in sorted(paths):
        with open(path, "rb") as file:
            total.update(file.read())
    return total.hexdigest()[:12]
