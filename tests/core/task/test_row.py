import msgspec
import pytest
from hypothesis import given

from detent.core.task.document import document_problems, new_document
from detent.core.task.row import Row, TaskStatus, put_row, row_of
from detent.errors import Invalid
from tests.support.task_model import calm, some_row


def test_a_row_has_what_scheduling_needs():
    document = new_document("impl-01.2", "Test  it", type="test", depends_on=["IMPL-001", "IMPL-1", "IMPL-3"])

    assert row_of(document) == Row(
        id="IMPL-1.2", title="Test it", type="test", agent="code-review-test-agent", depends_on=("IMPL-1", "IMPL-3")
    )
    assert row_of(document).parent == "IMPL-1"


@calm
@given(some_row())
def test_what_a_row_says_is_read_back_from_its_document(row):
    reason = "because" if row.status in (TaskStatus.BLOCKED, TaskStatus.FAILED) else None
    row = msgspec.structs.replace(
        row, reason=reason, attempts=3, version=4, depends_on=tuple(dict.fromkeys(row.depends_on))
    )
    document = new_document(row.id, row.title, agent=row.agent, depends_on=row.depends_on)

    written = put_row(document, row)

    assert row_of(written) == row
    assert [each for each in document_problems(written) if each.rule in ("status", "bookkeeping")] == []
    assert document["status"] == "pending"


def test_a_row_without_bookkeeping_leaves_its_document_with_six_keys():
    document = new_document("IMPL-1", "x")

    assert put_row(document, row_of(document)) == document


@pytest.mark.parametrize(
    "change",
    [{"id": "x"}, {"id": 3}, {"status": "done"}, {"title": None}, {"meta": None}, {"context": {"depends_on": ["x"]}}],
)
def test_what_cannot_be_read_is_refused_and_not_guessed(change):
    with pytest.raises(Invalid):
        row_of({**new_document("IMPL-1", "x"), **change})


def test_equal_texts_are_kept_once():
    one, other = (row_of(new_document(f"IMPL-{at}", "x", depends_on=["IMPL-77"])) for at in (1, 2))

    assert one.depends_on[0] is other.depends_on[0]
    assert one.agent is other.agent


def test_a_task_that_was_blocked_and_goes_on_says_nothing_of_it():
    document = new_document("IMPL-1", "One")
    blocked = put_row(document, row_of(document | {"status": "blocked", "execution": {"waiting_on": "somebody"}}))

    assert put_row(blocked, row_of(document)) == document
