"""At the root of a monorepo, the verbs that list show every package."""

import pytest

SETTINGS = """
[projects.api]
path = "api"
[projects.web]
path = "web"
"""


@pytest.fixture
def packages(detent):
    for name in ("api", "web"):
        (detent.directory / name).mkdir()
    (detent.directory / "detent.toml").write_text(SETTINGS)
    detent("--project", "api", "start", "fix", "Mend the login").ok()
    return detent


def test_sessions_are_listed_by_package(packages):
    listed = packages("sessions", "--json").ok().json()["projects"]

    assert [entry["id"] for entry in listed["api"]["sessions"]] == ["WFS-mend-the-login"]
    assert listed["api"]["active"] == "WFS-mend-the-login"
    assert listed["web"] == {"active": None, "sessions": [], "archived": 0}
    text = packages("sessions").ok().out
    assert text.splitlines()[0] == "api"
    assert "WFS-mend-the-login" in text
    assert text.endswith("web\nthere are no sessions yet\n")


def test_a_command_of_the_list_names_its_package(packages):
    packages("--project", "api", "pause").ok()

    shown = [line.strip() for line in packages("sessions").ok().out.splitlines() if "switch" in line]

    assert shown == ["detent --project api switch 1"]
    packages(*shown[0].split()[1:]).ok()


def test_workflows_are_those_of_the_settings(packages):
    at_root = packages("workflows", "--json").ok().json()

    assert at_root == packages("--project", "api", "workflows", "--json").ok().json()


def test_in_a_package_nothing_changes(packages):
    assert packages("--project", "api", "sessions", "--json").ok().json()["active"] == "WFS-mend-the-login"


def test_what_is_about_one_session_still_asks_for_the_package(packages):
    message = packages("status").error()[1]

    assert message == "this directory is in none of the projects api, web"
