"""The tour in the page: the panel and the terminal show the same step, and either goes on."""

import os
import re

from tests.support.typed_terminal import Terminal

PROMPT = "here or in the page"
LINK = re.compile(r"http://localhost:\d+/#token=\S+")


def test_the_tour_goes_on_in_the_page_and_at_the_terminal(tabs, tmp_path):
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TMPDIR": str(tmp_path)}
    with Terminal(tmp_path, environment, "tour", "--ui") as terminal:
        # The tour waits after a file that text follows.
        for prompt in ("Enter to go on", "Enter to go on", "Enter to run it"):
            terminal.expect(prompt)
            terminal.type("\n")
        terminal.expect(PROMPT)
        page = tabs().open(LINK.search(terminal.text)[0])
        panel = page.get_by_role("complementary", name="Tour")

        # The button runs the command at the terminal, and the page goes to its effect.
        panel.get_by_text("step 2 of 12").wait_for()
        panel.get_by_text('detent run "The total').wait_for()
        panel.get_by_role("button", name="Run it").click()
        terminal.expect("you are needed", PROMPT)
        panel.get_by_text("step 3 of 12").wait_for()
        page.get_by_role("heading", name="The total of an empty cart is wrong").wait_for()

        # Enter at the terminal moves the panel.
        terminal.type("\n")
        terminal.expect("NEEDS YOU", PROMPT)
        panel.get_by_text("step 4 of 12").wait_for()
        page.wait_for_url("**/#/needs")
        for number in range(5, 13):
            panel.get_by_role("button", name="Run it").click()
            terminal.expect(PROMPT)
            panel.get_by_text(f"step {number} of 12").wait_for()
        panel.get_by_role("button", name="End the tour").click()
        panel.get_by_text("The tour has ended").wait_for()
        assert terminal.ended() == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("detent-tour-")] == []
