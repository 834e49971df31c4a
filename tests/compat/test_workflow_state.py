"""`context` and `context_for_next` are two names of one text."""

import pytest

from detent.compat.workflow_state import create_workflow_state, get_workflow_state, update_phase_status
from detent.errors import Invalid


@pytest.fixture
def created(tmp_path):
    return create_workflow_state("Create one file", [("Create it", "general-purpose")], root=tmp_path)


def context(root):
    return get_workflow_state(root=root)["phases"][0].get("context_for_next")


def test_two_texts_for_one_context_are_refused(created, tmp_path):
    before = context(tmp_path)

    with pytest.raises(Invalid, match="two names"):
        update_phase_status(created, "phase_0", "active", None, "a", context="b", root=tmp_path)

    assert context(tmp_path) == before


@pytest.mark.parametrize(
    "names", [{"context": "c"}, {"context_for_next": "c"}, {"context": "c", "context_for_next": "c"}]
)
def test_either_name_sets_the_context(created, tmp_path, names):
    update_phase_status(created, "phase_0", "active", root=tmp_path, **names)

    assert context(tmp_path) == "c"
