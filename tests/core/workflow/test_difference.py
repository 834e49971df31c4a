"""Of workflows that are alike, the list says what differs."""

from detent.config.catalogue import Catalogue
from detent.config.settings import Settings
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.workflow.difference import difference, differences
from detent.core.workflow.graph import Phase, Workflow


def made(*phases):
    return Workflow(name="w", phases=tuple(Phase(key=each) if isinstance(each, str) else each for each in phases))


def test_phases_that_were_added_or_left_out_are_named():
    assert difference(made("a", "b"), made("a", "c")) == "with c; without b"


def test_a_phase_with_other_settings_is_named_with_them():
    changed = Phase(key="a", agent="ada", gates=(ApprovalGate(),))

    assert difference(made("a"), made(changed)) == "a differs in its agent, its gates"


def test_the_same_workflow_under_another_name_says_so():
    told = differences({"one": made("a"), "two": made("a"), "three": made("b")}, {})

    assert told == {"two": "the same phases and gates as one; a session records its name"}


def test_every_shipped_workflow_with_the_phases_of_another_says_what_differs():
    catalogue = Catalogue(Settings())
    workflows = {name: catalogue.workflow(name) for name in catalogue.names()}

    told = differences(workflows, catalogue.variants)

    assert told["ml"] == "like canonical, with security"
    assert told["analytics"] == "like canonical, without qa"
    assert told["webapp"] == "like canonical, with security; without data"
    assert told["optimization"].startswith("the same phases and gates as ml")
    assert told["canonical-full"].startswith("the same phases and gates as ml")
