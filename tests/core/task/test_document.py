import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.task.document import KEYS, document_problems, new_document
from detent.errors import Invalid

SEED = json.loads(Path(__file__).with_name("seed_task.json").read_text())
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["IMPL-1", "IMPL-1.2", "../x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def shape(value: object) -> object:
    return {key: shape(inner) for key, inner in value.items()} if isinstance(value, dict) else None


def at(document: dict, path: str) -> tuple[dict, dict]:
    document = copy.deepcopy(document)
    *way, _ = path.split(".")
    owner = document
    for key in way:
        owner = owner[key]
    return document, owner


def changed(path: str, value: object) -> dict:
    document, owner = at(SEED, path)
    owner[path.rpartition(".")[2]] = value
    return document


def removed(path: str) -> dict:
    document, owner = at(SEED, path)
    del owner[path.rpartition(".")[2]]
    return document


def found(document: object, stem: str | None = "IMPL-1.2") -> list[tuple[str, str]]:
    return [(problem.rule, problem.path) for problem in document_problems(document, stem=stem)]


def test_the_example_of_the_format_has_no_problems():
    assert document_problems(SEED, stem="IMPL-1.2") == []


def test_a_new_document_has_exactly_the_keys_of_the_format():
    document = new_document("IMPL-1.2", "x", shared_context={"auth_strategy": "y"})

    assert shape(document) == shape(SEED)
    assert list(document) == list(KEYS)
    assert document_problems(document, stem="IMPL-1.2") == []


def test_a_new_main_task_has_no_problems():
    assert document_problems(new_document("impl-007", "x\ny", depends_on=["IMPL-3"]), stem="IMPL-7") == []


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_required(key):
    assert ("required-keys", key) in found(removed(key))


def test_unknown_keys_are_no_problem():
    assert document_problems({**SEED, "x": 1, "meta": {**SEED["meta"], "y": 2}}) == []


@pytest.mark.parametrize(
    ("path", "value", "rule", "where"),
    [
        ("id", "IMPL-1.2.3", "depth", "id"),
        ("id", "TASK-1", "id-form", "id"),
        ("id", 12, "id-form", "id"),
        ("id", "impl-1.2", "id-form", "id"),
        ("id", "IMPL-1.3", "file-name", "id"),
        ("id", "IMPL-01.2", "file-name", "id"),
        ("title", "", "title", "title"),
        ("title", " ", "title", "title"),
        ("title", 3, "title", "title"),
        ("title", "a\nb", "title", "title"),
        ("title", "a\n", "title", "title"),
        ("title", "a\u2028", "title", "title"),
        ("status", "done", "status", "status"),
        ("status", [], "status", "status"),
        ("meta", [], "required-keys", "meta"),
        ("meta.type", "chore", "type", "meta.type"),
        ("meta.agent", "", "agent", "meta.agent"),
        ("meta.agent", "somebody", "agent", "meta.agent"),
        ("context", "x", "required-keys", "context"),
        ("context.requirements", "x", "lists", "context.requirements"),
        ("context.acceptance", [1], "lists", "context.acceptance[0]"),
        ("context.focus_paths", "src", "focus-paths", "context.focus_paths"),
        ("context.parent", None, "parent", "context.parent"),
        ("context.parent", "IMPL-2", "parent", "context.parent"),
        ("context.depends_on", "IMPL-1", "depends-on", "context.depends_on"),
        ("context.depends_on", ["IMPL-9", "x"], "depends-on", "context.depends_on[1]"),
        ("context.depends_on", ["IMPL-01.02"], "depends-on", "context.depends_on[0]"),
        ("context.depends_on", ["IMPL-1"], "depends-on", "context.depends_on[0]"),
        ("context.depends_on", ["IMPL-3", "IMPL-03"], "depends-on", "context.depends_on[1]"),
        ("context.inherited", [], "inherited", "context.inherited"),
        ("context.inherited", {"from": "IMPL-2"}, "inherited", "context.inherited.from"),
        ("context.inherited.context", "x", "inherited", "context.inherited.context"),
        ("context.shared_context", [], "inherited", "context.shared_context"),
        ("flow_control", None, "required-keys", "flow_control"),
        ("flow_control.pre_analysis", {}, "pre-analysis", "flow_control.pre_analysis"),
        ("flow_control.pre_analysis", ["x"], "pre-analysis", "flow_control.pre_analysis[0]"),
        (
            "flow_control.pre_analysis",
            [{"step": "a", "action": "b"}],
            "pre-analysis",
            "flow_control.pre_analysis[0].command",
        ),
        ("flow_control.implementation_approach", 3, "approach", "flow_control.implementation_approach"),
        (
            "flow_control.implementation_approach.logic_flow",
            "x",
            "approach",
            "flow_control.implementation_approach.logic_flow",
        ),
        ("flow_control.target_files", "x", "target-files", "flow_control.target_files"),
        ("version", 0, "bookkeeping", "version"),
        ("execution", [], "bookkeeping", "execution"),
        ("execution", {"attempts": -1}, "bookkeeping", "execution.attempts"),
        ("execution", {"last_error": 1}, "bookkeeping", "execution.last_error"),
    ],
)
def test_each_mistake_is_reported_once_with_its_rule_and_place(path, value, rule, where):
    report = [problem for problem in found(changed(path, value)) if problem == (rule, where)]

    assert report == [(rule, where)]


@pytest.mark.parametrize(
    "path", ["/a", "./a", "../a", "a/../b", "a/*.py", "a?", "a[1]", "{a,b}", "", " ", "~/x", "C:/x", "a\0"]
)
def test_a_focus_path_is_concrete_and_inside_the_project(path):
    assert found(changed("context.focus_paths", ["src", path])) == [("focus-paths", "context.focus_paths[1]")]


@pytest.mark.parametrize("target", ["/a:b", "../a", "a:", "a:b:", "a:b:9-3", "a:b:x", "a:b:1-2:c", ":b", "a::"])
def test_a_target_that_is_no_place_in_a_file_is_reported(target):
    assert found(changed("flow_control.target_files", [target])) == [("target-files", "flow_control.target_files[0]")]


@pytest.mark.parametrize(
    "target", ["a.ts", "a/b.ts:f", "a.ts:f:1-1", "a.cpp:Foo::bar:3-40", "a.ts:f g", "app/[slug]/p.tsx"]
)
def test_a_target_may_name_symbol_and_lines(target):
    assert found(changed("flow_control.target_files", [target])) == []


def test_a_main_task_has_no_parent_and_inherits_from_nobody():
    document = {**new_document("IMPL-1", "x")}
    document["context"] = {**document["context"], "parent": "IMPL-2", "inherited": {"from": "IMPL-2", "context": []}}

    assert found(document, "IMPL-1") == [("parent", "context.parent"), ("inherited", "context.inherited.from")]


def test_only_an_unknown_agent_and_a_repeated_dependency_are_warnings():
    document = changed("meta.agent", "somebody")
    document["context"]["depends_on"] = ["IMPL-3", "IMPL-3"]

    assert [problem.severity for problem in document_problems(document)] == ["warning", "warning"]


def test_a_plain_approach_and_an_empty_analysis_are_accepted():
    document = changed("flow_control", {"pre_analysis": [], "implementation_approach": "just do it"})

    assert document_problems(document) == []


def test_all_problems_are_reported_at_once():
    document = {
        "id": "x",
        "status": "y",
        "meta": {"type": "z"},
        "context": {"focus_paths": ["/a", "b*"]},
        "flow_control": {},
    }

    assert {rule for rule, _ in found(document, "IMPL-1")} == {
        "id-form", "file-name", "status", "type", "focus-paths", "pre-analysis", "required-keys",
    }  # fmt: skip


INNER = "type agent parent depends_on inherited focus_paths pre_analysis target_files implementation_approach"
tops = st.dictionaries(st.sampled_from([*KEYS, "version", "execution"]), anything)
inners = st.dictionaries(st.sampled_from(INNER.split()), anything)


@given(anything, tops, st.sampled_from(["meta", "context", "flow_control"]), inners)
def test_nothing_that_json_can_hold_breaks_the_report(plain, top, key, inner):
    for document in (plain, top, {**top, key: inner}, {**SEED, key: inner}):
        assert all(problem.rule and problem.message for problem in document_problems(document, stem="IMPL-1"))


@pytest.mark.parametrize("wrong", [{"title": " "}, {"type": "chore"}, {"depends_on": ["x"]}, {"id": "IMPL-0"}])
def test_a_new_document_is_refused_if_it_would_be_wrong(wrong):
    given_ = {"id": "IMPL-1", "title": "x", **wrong}

    with pytest.raises(Invalid):
        new_document(given_.pop("id"), given_.pop("title"), **given_)
