"""axe-core finds no serious violation on any screen, in light and dark, at a desk and on a phone."""

import pytest

from tests.support.page_project import SESSION
from tests.support.ui_tools import AXE

SCREENS = {
    "needs": "",
    "session": f"s/{SESSION}",
    "log": f"s/{SESSION}/log",
    "phase": f"s/{SESSION}/phase/build",
    "gate": f"s/{SESSION}/gate/build/tests",
    "review": f"s/{SESSION}/review/build",
    "checkpoints": f"s/{SESSION}/checkpoints",
    "tasks": f"s/{SESSION}/tasks",
    "history": "history",
    "start": "start",
}
RUN = "() => axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations)"


@pytest.fixture(scope="session")
def axe():
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make test-ui installs it with npm")
    return AXE.read_text()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_no_screen_has_a_serious_violation(look, at, axe, width, scheme):
    tab = look(width=width, color_scheme=scheme)
    tab.evaluate(axe)
    found = {}
    for name, path in SCREENS.items():
        if path:
            at(tab, path)
            tab.locator(".loading").nth(0).wait_for(state="detached")
        tab.wait_for_timeout(400)
        if serious := [_told(each) for each in tab.evaluate(RUN) if each["impact"] in ("serious", "critical")]:
            found[name] = serious
    assert found == {}


def test_dialogs_have_no_serious_violation(look, axe):
    tab = look()
    tab.evaluate(axe)
    tab.get_by_role("article").wait_for()
    for key in ("a", "?", "Control+k"):
        tab.keyboard.press(key)
        tab.get_by_role("dialog").wait_for()
        serious = [_told(each) for each in tab.evaluate(RUN) if each["impact"] in ("serious", "critical")]
        assert serious == []
        tab.keyboard.press("Escape")
        tab.get_by_role("dialog").wait_for(state="detached")


def _told(violation):
    return (
        violation["id"],
        [node["html"][:200] for node in violation["nodes"][:4]],
        violation["nodes"][0]["failureSummary"],
    )
