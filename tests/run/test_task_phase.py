"""Where a run does the tasks of a session: in the phase that is declared for it, or in one of the known names."""

import msgspec
import pytest

from detent.core.session.open_decision import task_phase
from detent.core.task.plan import Plan
from detent.core.task.row import Row, TaskStatus
from detent.core.workflow.graph import Phase, Workflow
from detent.engine.project import open_project
from tests.support.project import build_project
from tests.support.values import opened

WITH_ONE = Plan([Row(id="IMPL-1", title="One", status=TaskStatus.PENDING)])


def session_with(*keys, tasks_in=()):
    phases = tuple(Phase(key=key, tasks=key in tasks_in) for key in keys)
    return msgspec.structs.replace(opened(Workflow(name="trial", phases=phases)), tasks=WITH_ONE)


@pytest.mark.parametrize(
    ("keys", "declared", "expected"),
    [
        (("design", "build"), ("build",), "build"),
        (("design", "build", "check"), ("check", "build"), "build"),
        (("IMPLEMENT", "build"), ("build",), "build"),
        (("design", "IMPLEMENT"), (), "IMPLEMENT"),
        (("design", "06-implementation"), (), "06-implementation"),
        (("design", "development"), (), "development"),
        (("design", "build"), (), None),
    ],
)
def test_a_declared_phase_comes_before_the_known_names(keys, declared, expected):
    assert task_phase(session_with(*keys, tasks_in=declared)) == expected


def test_without_tasks_no_phase_does_them():
    session = msgspec.structs.replace(session_with("build", tasks_in=("build",)), tasks=Plan())

    assert task_phase(session) is None


def test_a_phase_without_tasks_is_encoded_as_it_always_was():
    """The workflow is part of every journal, and of the hash of the state."""
    assert msgspec.to_builtins(Phase(key="a")) == {"key": "a"}
    assert Workflow(name="w", phases=(Phase(key="a"),)).digest != (
        Workflow(name="w", phases=(Phase(key="a", tasks=True),)).digest
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('[workflows.w]\nphases = ["a", {key = "b", tasks = true}]', {"b"}),
        ('[workflows.w]\nphases = ["a", "b"]\n[phases.b]\ntasks = true', {"b"}),
        ('[workflows.w]\nphases = ["a", "b"]', set()),
    ],
)
def test_it_is_declared_with_the_phase_wherever_that_is_declared(tmp_path, settings, expected):
    build_project(tmp_path, settings)

    with open_project(tmp_path) as project:
        workflow = project.catalogue.workflow("w")

    assert {phase.key for phase in workflow.phases if phase.tasks} == expected
