"""What a state document says about supervision."""

import pytest

from detent.core.session.events import Supervised
from detent.documents.state.reading import supervised
from detent.engine.project import open_project
from tests.support.project import build_project


@pytest.mark.parametrize("mode", [None, True, [], {}, {"enabled": 1}, {"enabled": "true"}, {"enabled": False}])
def test_only_a_literal_true_switches_it_on(mode):
    assert supervised({"supervised_mode": mode}) is None


@pytest.mark.parametrize(
    ("listed", "phases"),
    [("all", ()), (None, ()), (["03", "06"], ("03", "06")), (["3", 6, "x", "03"], ("03",)), (["²³"], ()), ({}, ())],
)
def test_entries_that_name_no_phases_are_dropped(listed, phases):
    mode = {"enabled": True, "review_phases": listed}

    assert supervised({"supervised_mode": mode}) == Supervised(phases=phases)


def test_an_imported_session_stays_supervised(tmp_path):
    build_project(tmp_path)
    flow = {"type": "fix", "phases": ["06-implementation"], "current_phase": "06-implementation", "description": "x"}
    doc = {"active_workflow": flow, "supervised_mode": {"enabled": True, "review_phases": ["06"]}}

    with open_project(tmp_path, actor="tester") as project:
        handle = project.import_state(doc, source="elsewhere")
        handle.finish("done")

        assert handle.state.awaiting_review == ("06-implementation",)
