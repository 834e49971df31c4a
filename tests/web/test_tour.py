"""The tour in the page: a press counts once, for the step that is shown, and only the server of a tour has it."""

import select

import pytest

from detent.web.app import page_assets
from detent.web.projects import Projects
from detent.web.tour import Tour, TourStep


def step(number: int, command: str = "detent status", *, is_running: bool = False) -> TourStep:
    return TourStep(number=number, of=3, text="Look.", command=command, is_running=is_running)


def is_wanted(tour: Tour) -> bool:
    return bool(select.select([tour], [], [], 0)[0])


@pytest.fixture
def tour() -> Tour:
    return Tour()


def test_a_press_goes_on_once(tour):
    tour.show(step(1))
    tour.go_on(1)
    tour.go_on(1)
    assert is_wanted(tour)

    tour.take()

    assert not is_wanted(tour)


@pytest.mark.parametrize("number", [None, 1, 3])
def test_a_press_for_another_step_does_nothing(tour, number):
    tour.show(step(2))
    tour.go_on(number)
    assert not is_wanted(tour)


def test_a_press_while_the_command_runs_does_nothing(tour):
    tour.show(step(1, is_running=True))
    tour.go_on(1)
    assert not is_wanted(tour)


def test_the_page_goes_where_the_last_command_shows(tour, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    projects = Projects()
    tour.show(step(1))
    assert tour.record(projects)["screen"] is None

    tour.show(step(1, is_running=True))
    tour.show(step(2, "detent log"))

    assert tour.record(projects) == {"step": step(2, "detent log"), "screen": "#/needs"}


def test_the_panel_is_part_of_the_page_of_a_tour(tour):
    page = page_assets()
    whole = tour.assets(page)

    assert whole.keys() - page.keys() == {"tour.js", "tour.css"}
    assert whole["index.html"].count(b"assets/tour.") == 2
    assert b"tour" not in page["index.html"]


def test_only_the_server_of_a_tour_has_steps(page):
    assert page.raw("GET", "/api/tour", page.authorization).error[:2] == (404, "not_found")
