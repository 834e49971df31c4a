import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.flow.reference import Reference, find, references, task_properties
from detent.core.flow.scope import Missing, Scope, render_text
from detent.errors import Refused
from tests.support.hostile import SESSION, task

CONTEXT = {
    "focus_paths": ["src", "a b"],
    "parent": None,
    "shared_context": {"strategy": "JWT", "deep": {"list": [{"x": 1}]}, "nothing": None},
    "extra": 5,
}
SCOPE = Scope(
    task=task("out", "later", "skipped", **CONTEXT),
    session=SESSION,
    outputs={"out": "text", "skipped": ""},
    dependency_summaries={"IMPL-1.1": "did it\n", "IMPL-1.2": "did that"},
    files={"out": "/run/out.txt"},
)


def looked_up(name):
    return SCOPE.lookup(Reference(name=name, start=0, end=0))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[v]", ["v"]),
        ("x[v]y[w.a.0]", ["v", "w.a.0"]),
        ("\\[v] \\\\[v] \\\\\\[v]", ["v"]),
        ("[[v]]", ["v"]),
        ("[v.1a] [v-w] [v ] [ v] [v.] [V] [vv] [] [0]", []),
        ("[v][v]", ["v", "v"]),
        ("[\uff56] [v\n]", []),
    ],
)
def test_only_declared_names_in_their_form_are_references(text, names):
    assert [each.name for each in references(text, {"v", "w"})] == names


@given(st.text(alphabet="[]v.w\\ 0", max_size=30))
def test_every_reference_is_what_the_text_says_there(text):
    for each in find(text, {"v", "w"}):
        reference = each.reference
        assert text[reference.start : reference.end] == f"[{reference.name}]"
        assert reference.first in ("v", "w")


def test_what_a_task_declares():
    names = task_properties(task(mine=1, **{"not a name": 2}))

    assert {
        "mine",
        "focus_paths",
        "inherited",
        "id",
        "type",
        "agent",
        "meta",
        "session",
        "dependency_summaries",
    } <= names
    assert "not a name" not in names
    assert task_properties(None) == task_properties({"context": []}) < names


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("out", "text"),
        ("skipped", ""),
        ("out.file", "/run/out.txt"),
        ("focus_paths", ["src", "a b"]),
        ("focus_paths.1", "a b"),
        ("context.focus_paths.0", "src"),
        ("parent", None),
        ("depends_on", []),
        ("inherited", None),
        ("inherited.from", None),
        ("inherited.context", []),
        ("shared_context.strategy", "JWT"),
        ("shared_context.deep.list.0.x", 1),
        ("shared_context.nothing", None),
        ("extra", 5),
        ("id", "IMPL-1"),
        ("title", "A title"),
        ("status", "pending"),
        ("type", "feature"),
        ("meta.agent", "code-developer"),
        ("session.id", SESSION.id),
        ("session.dir", SESSION.dir),
        ("session.phase", "IMPLEMENT"),
        ("dependency_summaries", "## Summary of IMPL-1.1\n\ndid it\n\n## Summary of IMPL-1.2\n\ndid that"),
    ],
)
def test_a_name_is_looked_up_where_it_belongs(name, value):
    assert looked_up(name) == value


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("later", "'make_later'"),
        ("later.file", "'make_later'"),
        ("skipped.file", "file"),
        ("out.length", "text"),
        ("out.file.x", "text"),
        ("shared_context.nope", "'nope'"),
        ("shared_context.strategy.x", "'x'"),
        ("shared_context.nothing.x", "'x'"),
        ("focus_paths.2", "list of 2"),
        ("focus_paths.first", "list of 2"),
        ("parent.x", "parent"),
        ("inherited.nope", "inherited"),
        ("session.nope", "'nope'"),
        ("dependency_summaries.x", "file"),
    ],
)
def test_what_is_not_there_is_missing_by_name(name, why):
    missing = looked_up(name)

    assert isinstance(missing, Missing)
    assert missing.name == name
    assert why in missing.why
    with pytest.raises(Refused, match="has no value"):
        render_text(f"x [{name}] y", SCOPE)


def test_an_output_comes_before_a_field_of_the_task():
    scope = Scope(task=task("title"), session=SESSION, outputs={"title": "output"})

    assert scope.lookup(Reference(name="title", start=0, end=0)) == "output"


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("in [focus_paths].", "in src, a b."),
        ("@{[focus_paths]} x", "@{src,a b} x"),
        ("@{x} [focus_paths]", "@{x} src, a b"),
        ("\\[out] [unknown] [out]", "[out] [unknown] text"),
        ("[shared_context.deep]", '{"list":[{"x":1}]}'),
        ("<[parent]>", "<>"),
        ("'$x' `[out]`", "'$x' `text`"),
    ],
)
def test_prose_is_rendered(text, rendered):
    assert render_text(text, SCOPE) == rendered


def test_a_value_is_not_read_for_references_again():
    scope = Scope(task=task("v", "w"), session=SESSION, outputs={"v": "[w] \\[w]", "w": "secret"})

    assert render_text("[v]", scope) == "[w] \\[w]"
