import copy

import pytest

from detent.core.task.document import document_problems, new_document
from detent.core.task.plan import Plan
from detent.core.task.row import row_of
from detent.core.task.rules import plan_problems
from detent.core.task.split import ChildDraft, split, split_warnings
from detent.errors import Invalid, NotFound, Refused

PARENT = new_document(
    "IMPL-1", "Login", requirements=["JWT"], depends_on=["IMPL-2"], shared_context={"strategy": {"kind": "jwt"}}
)


def drafts(*titles: str) -> list[ChildDraft]:
    return [ChildDraft(title=title) for title in titles]


def test_a_task_becomes_a_container_and_its_parts_inherit():
    parent = {**PARENT, "context": {**PARENT["context"], "inherited": {"from": None, "context": ["older"]}}, "extra": 1}

    made = split(parent, ["IMPL-1", "IMPL-2"], drafts("Design it", "Fix the tests"))

    assert [child["id"] for child in made] == ["IMPL-1.1", "IMPL-1.2"]
    assert [child["meta"] for child in made] == [
        {"type": "feature", "agent": "planning-agent"},
        {"type": "bugfix", "agent": "code-developer"},
    ]
    for child in made:
        assert document_problems(child) == []
        assert child["context"]["parent"] == "IMPL-1"
        assert child["context"]["inherited"] == {"from": "IMPL-1", "context": ["JWT", "older"]}
        assert child["context"]["shared_context"] == {"strategy": {"kind": "jwt"}}
    rows = [row_of(each) for each in ({**parent, "status": "container"}, *made, new_document("IMPL-2", "x"))]
    assert plan_problems(rows) == []
    assert Plan(rows).ready == ("IMPL-2",)


def test_what_is_shared_is_copied():
    before = copy.deepcopy(PARENT)
    made = split(PARENT, ["IMPL-1", "IMPL-2"], drafts("a", "b"))

    made[0]["context"]["shared_context"]["strategy"]["kind"] = "other"

    assert before == PARENT
    assert made[1]["context"]["shared_context"]["strategy"]["kind"] == "jwt"


def test_numbers_are_never_used_again():
    made = split(PARENT, ["IMPL-1", "IMPL-1.3", "IMPL-10.9", "IMPL-2"], drafts("a"))

    assert [child["id"] for child in made] == ["IMPL-1.4"]


def test_a_part_may_come_after_another():
    made = split(
        PARENT, ["IMPL-1", "IMPL-2"], [ChildDraft(title="a"), ChildDraft(title="b", after=(1,), depends_on=("impl-2",))]
    )

    assert made[1]["context"]["depends_on"] == ["IMPL-2", "IMPL-1.1"]


@pytest.mark.parametrize(
    ("parent", "taken", "error", "words"),
    [
        (PARENT, ["IMPL-2"], NotFound, "IMPL-1"),
        (new_document("IMPL-1.1", "x"), ["IMPL-1.1"], Refused, "two levels"),
        ({**PARENT, "status": "completed"}, ["IMPL-1"], Refused, "is completed"),
        ({**PARENT, "status": "active"}, ["IMPL-1"], Refused, "is active"),
        ({**PARENT, "status": "blocked"}, ["IMPL-1"], Refused, "is blocked"),
        ({**PARENT, "status": "failed"}, ["IMPL-1"], Refused, "is failed"),
        ({**PARENT, "status": "container"}, ["IMPL-1"], Refused, "already broken down"),
    ],
)
def test_only_a_pending_main_task_can_be_broken_down(parent, taken, error, words):
    with pytest.raises(error, match=words):
        split(parent, taken, drafts("a"))


def test_a_task_that_has_parts_is_not_broken_down_again():
    with pytest.raises(Refused, match="already broken down"):
        split(PARENT, ["IMPL-1", "IMPL-1.1"], drafts("a"), present=["IMPL-1.1"])


def test_all_mistakes_in_the_parts_are_reported_at_once():
    wrong = [
        ChildDraft(title=" "),
        ChildDraft(title="a", focus_paths=("/x",)),
        ChildDraft(title="b", depends_on=("IMPL-9", "IMPL-1")),
        ChildDraft(title="c", after=(9,)),
        ChildDraft(title="d", type="chore"),
        ChildDraft(title="e", after=(7,)),
        ChildDraft(title="f", after=(6,)),
    ]

    with pytest.raises(Invalid) as error:
        split(PARENT, ["IMPL-1"], wrong)

    said = str(error.value)
    for words in ("title is needed", "'/x'", "IMPL-9, which", "own parent", "part 9", "chore", "IMPL-1.6, IMPL-1.7"):
        assert words in said


@pytest.mark.parametrize("parts", [[], drafts("a") * 1_001])
def test_the_number_of_parts_has_limits(parts):
    with pytest.raises(Invalid):
        split(PARENT, ["IMPL-1"], parts)


def test_parts_on_the_same_file_or_of_the_same_name_are_pointed_out():
    made = split(
        PARENT,
        ["IMPL-1"],
        [
            ChildDraft(title="Add login handler", target_files=("src/a.py:f",), focus_paths=("src",)),
            ChildDraft(title="Add the login handler", focus_paths=("src/a.py", "src")),
            ChildDraft(title="Something else", focus_paths=("src",)),
        ],
    )

    assert split_warnings(made) == (
        "IMPL-1.1 and IMPL-1.2 both work on src/a.py",
        "IMPL-1.1 and IMPL-1.2 have nearly the same title",
    )
