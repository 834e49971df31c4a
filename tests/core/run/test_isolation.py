"""Names of worktrees, and the gate that brings their work back."""

import subprocess

import pytest

from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.run.isolation import isolated, tree_name
from detent.core.workflow.graph import Phase, Workflow, problems
from tests.support.values import diamond, row, workflow


def gates(graph: Workflow) -> dict[str, list[str]]:
    return {phase.key: [getattr(gate, "command", None) for gate in phase.gates] for phase in graph.phases}


def test_without_isolation_the_workflow_stays_as_it_is():
    assert isolated(diamond(), "none") is not None
    assert isolated(diamond(), "none") == diamond()


def test_every_phase_has_a_merge_of_its_own_worktree():
    assert gates(isolated(diamond(), "phase")) == {key: [f"detent merge {key}"] for key in "abcd"}


def test_of_a_session_only_the_phases_that_nothing_comes_after_merge():
    graph = workflow({"a": (), "b": ("a",), "c": ("a",)})

    assert gates(isolated(graph, "session")) == {"a": [], "b": ["detent merge"], "c": ["detent merge"]}


def test_what_a_size_leaves_out_is_not_the_end_of_a_session():
    graph = workflow({"a": (), "b": ("a",), "c": ("b",)}, sizes={"small": ("c",)})

    assert gates(isolated(graph, "session", size="small")) == {"a": [], "b": ["detent merge"], "c": []}
    assert gates(isolated(graph, "session")) == {"a": [], "b": [], "c": ["detent merge"]}


def test_the_merge_is_the_last_gate_and_every_file_is_its_input():
    phase = Phase(key="a", gates=(TestsGate(command="pytest"), ApprovalGate()))
    made = isolated(Workflow(name="w", phases=(phase,)), "phase").by_key["a"].gates

    assert made[:2] == phase.gates
    assert made[2] == CommandGate(name="merge", command="detent merge a", inputs=(".",))


def test_isolating_twice_is_isolating_once():
    once = isolated(diamond(), "phase")

    assert isolated(once, "phase") == once


def test_a_gate_that_is_named_merge_already_keeps_its_name():
    phase = Phase(key="a", gates=(CommandGate(name="merge", command="./merge.sh"),))
    made = isolated(Workflow(name="w", phases=(phase,)), "phase")

    assert [gate.name for gate in made.by_key["a"].gates] == ["merge", "merge-worktree"]
    assert problems(made) == []


def test_a_phase_that_looks_like_an_option_is_not_read_as_one():
    assert gates(isolated(row("-x"), "phase")) == {"-x": ["detent merge -- -x"]}


def test_names_say_what_they_are_of():
    assert tree_name("WFS-trial") == "WFS-trial"
    assert tree_name("WFS-trial", "06-implementation") == "WFS-trial.06-implementation"
    assert tree_name("WFS-trial", "a", "web") == "web.WFS-trial.a"


@pytest.mark.parametrize("phase", ["a..b", ".a", "a.", "a.lock", "..", "-", "a.b", "_", "A-1_2", "." * 64, "a" * 64])
def test_whatever_a_phase_may_be_called_git_takes_its_branch(phase):
    name = f"detent/{tree_name('WFS-trial', phase, 'my.project')}"

    checked = subprocess.run(["git", "check-ref-format", "--branch", name], check=False, capture_output=True, text=True)
    assert checked.stdout.strip() == name


def test_phases_that_are_spelt_differently_have_different_names():
    phases = ["a..b", "a.-b", "a--b", "a-.b", ".a", "a.", "a.lock", "a-lock", "a"]

    assert len({tree_name("WFS-trial", phase) for phase in phases}) == len(phases)
