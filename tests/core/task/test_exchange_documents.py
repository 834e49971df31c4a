import pytest

from detent.core.task.document import document_problems
from detent.core.task.exchange.documents import to_documents
from detent.core.task.exchange.draft import Draft
from detent.core.task.exchange.markdown import read_markdown
from detent.core.task.plan import Plan
from detent.core.task.row import row_of
from detent.core.task.rules import plan_problems
from detent.errors import Invalid
from tests.support.task_model import S


def draft(id_: str, *subtasks: Draft, needs: tuple[str, ...] = (), **more) -> Draft:
    return Draft(source_id=id_, title=f"Task {id_}", subtasks=subtasks, depends_on=needs, **more)


def test_drafts_become_sound_documents_behind_the_ids_that_are_taken():
    made = to_documents(
        [
            draft("a", draft("b", status=S.COMPLETED), draft("c", needs=("b",)), requirements=("JWT",)),
            draft("d", needs=("a", "c"), priority="high", files=("src/x.py",), status=S.BLOCKED, reason="later"),
        ],
        ["IMPL-4", "IMPL-9.2"],
    )

    rows = [row_of(document) for document in made.documents]
    assert made.ids == {"a": "IMPL-10", "b": "IMPL-10.1", "c": "IMPL-10.2", "d": "IMPL-11"}
    assert [
        problem for document in made.documents for problem in document_problems(document, stem=document["id"])
    ] == []
    assert plan_problems(rows) == []
    assert [(row.id, row.status, row.depends_on) for row in rows] == [
        ("IMPL-10", S.CONTAINER, ()),
        ("IMPL-10.1", S.COMPLETED, ()),
        ("IMPL-10.2", S.PENDING, ("IMPL-10.1",)),
        ("IMPL-11", S.BLOCKED, ("IMPL-10", "IMPL-10.2")),
    ]
    assert rows[3].reason == "later"
    assert made.documents[1]["context"]["inherited"] == {"from": "IMPL-10", "context": ["JWT"]}
    assert made.documents[3]["context"]["shared_context"] == {"source_id": "d", "priority": "high"}
    assert made.warnings == ()


def test_what_is_deeper_than_two_levels_is_raised_with_a_warning_and_keeps_its_order():
    made = to_documents(read_markdown("- [ ] a\n- [ ] b\n  - [ ] c (depends on: 1)\n    - [ ] d\n      - [ ] e\n"))

    plan = Plan(map(row_of, made.documents))
    assert [plan[id_].title for id_ in plan.order] == ["a", "e", "d", "c"]
    assert len(made.warnings) == 1
    assert "more than two levels" in made.warnings[0]


def test_what_could_not_be_taken_over_as_it_was_is_said():
    made = to_documents([draft("a", status=S.ACTIVE, files=("/etc/x", "ok.py"), notes=("odd",))])

    assert made.documents[0]["status"] == "pending"
    assert made.documents[0]["context"]["focus_paths"] == ["ok.py"]
    assert [warning for warning in made.warnings if "odd" in warning or "/etc/x" in warning or "in progress" in warning]
    assert len(made.warnings) == 3


def test_circles_unknown_and_impossible_dependencies_are_refused_at_once():
    with pytest.raises(Invalid) as error:
        to_documents(
            [
                draft("a", needs=("b",)),
                draft("b", needs=("a",)),
                draft("c", draft("d", needs=("c",)), needs=("x",)),
                Draft(source_id="e", title="t" * 2_000),
            ]
        )

    for words in ("a -> b -> a", "c depends on x", "d: IMPL-3.1 depends on IMPL-3, its own parent", "e: a task title"):
        assert words in str(error.value)


def test_unknown_dependencies_can_be_left_out():
    made = to_documents([draft("a", needs=("x",))], drop_unknown=True)

    assert made.documents[0]["context"]["depends_on"] == []
    assert made.warnings == ("a depends on x, which is not there",)
