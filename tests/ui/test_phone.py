"""On a phone nothing that is chosen or can be chosen is out of sight."""

from tests.support.page_project import NEEDS_A_PERSON, SESSION, TASK

PHONE = 390
#: Whether the right edge of one part is left of an edge of another.
ENDS_BEFORE = """([part, other, edge]) => {
    const place = (selector) => document.querySelector(selector)?.getBoundingClientRect();
    return place(part) && place(other) && place(part).right <= place(other)[edge] + 1;
}"""


def test_no_tab_of_a_session_is_behind_the_button(fresh, tabs, at):
    fresh.detent("run", TASK, expect=NEEDS_A_PERSON)
    tab = tabs(width=PHONE).open(fresh.serve())
    at(tab, f"s/{SESSION}")
    tab.locator(".tabs .count").wait_for()

    tab.wait_for_function(ENDS_BEFORE, arg=[".tabs a:last-of-type", ".tabs button", "left"])


def test_the_menu_shows_the_chosen_screen(fresh, tabs, at):
    tab = tabs(width=PHONE).open(fresh.serve())
    at(tab, "start")

    tab.wait_for_function(ENDS_BEFORE, arg=[".menu-items .menu-sub [aria-current]", ".menu-items", "right"])
