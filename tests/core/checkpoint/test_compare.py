"""Comparing two checkpoints: files, phases, gates and agents."""

from typing import Any

from detent.core.checkpoint.compare import AgentChange, GateChange, Side, compare
from detent.core.checkpoint.manifest import Entry

FILES = {"same": Entry("f", "d1", 1), "changed": Entry("f", "d2", 2), "removed": Entry("f", "d3", 3)}


def side(name: str = "a", **fields: Any) -> Side:
    given = {"run_id": "run", "completed": (), "files": {}, "gates": {}, "agents": {}, **fields}
    return Side(name=name, **given)


def test_two_equal_sides_have_no_difference():
    both = {"completed": ("p",), "files": FILES, "gates": {"p/tests": "pass"}, "agents": {"dev": ("idle", 1, 2)}}

    assert compare(side("a", **both), side("b", **both)).is_empty


def test_files_are_added_removed_and_modified():
    files = {"same": FILES["same"], "changed": Entry("f", "other", 2), "added": Entry("f", "d4", 4)}

    diff = compare(side(files=FILES), side("b", files=files))

    assert (diff.added, diff.removed, diff.modified) == (("added",), ("removed",), ("changed",))
    assert not diff.is_empty


def test_a_file_that_became_executable_is_modified():
    diff = compare(side(files={"x": Entry("f", "d", 1)}), side("b", files={"x": Entry("x", "d", 1)}))

    assert diff.modified == ("x",)


def test_phases_are_completed_and_reopened():
    diff = compare(side(completed=("a", "b")), side("b", completed=("b", "c")))

    assert (diff.newly_completed, diff.no_longer_completed) == (("c",), ("a",))


def test_gates_and_agents_that_exist_on_one_side_only_are_changes():
    before = side(gates={"p/tests": "fail", "p/old": "pass"}, agents={"dev": ("busy", 10, 5)})
    after = side("b", gates={"p/tests": "pass", "p/new": "pending"}, agents={"qa": ("idle", 3, 1)})

    diff = compare(before, after)

    assert diff.gates == (
        GateChange(gate="p/tests", before="fail", after="pass"),
        GateChange(gate="p/old", before="pass", after=None),
        GateChange(gate="p/new", before=None, after="pending"),
    )
    assert diff.agents == (
        AgentChange(agent="dev", before="busy", after=None, input_tokens=-10, output_tokens=-5),
        AgentChange(agent="qa", before=None, after="idle", input_tokens=3, output_tokens=1),
    )


def test_checkpoints_of_two_runs_are_told_apart():
    assert compare(side(), side("b")).same_run
    assert not compare(side(), side("b", run_id="other")).same_run


def test_a_record_has_paths_that_json_can_hold():
    path = b"caf\xe9".decode("utf-8", "surrogateescape")

    record = compare(side(), side("b", files={path: Entry("f", "d", 1)})).as_record()

    assert record["added"] == [record["added"][0]]
    assert record["added"][0].encode()  # no lone surrogate is left
    assert (record["a"], record["b"], record["removed"]) == ("a", "b", [])
