"""`gate run` while it runs: how long it has run, or its output; and notices that appear once."""

import re

from detent.cli.request import Request
from tests.support.stops import Stop
from tests.support.typed_terminal import Terminal

SLOW = '{ kind = "command", name = "check", command = "echo one; sleep 3; printf \'two\\\\t\\\\033[31mred\'" }'
WAITING = (
    '{ kind = "command", name = "check", command = "echo begun; until test -e go; do sleep 0.1; done; echo over" }'
)


def test_a_line_says_how_long_the_check_has_run(detent):
    Stop(gates=SLOW).build(detent.directory)

    ran = detent("gate", "run", "check").ok()

    assert re.search(r"detent: the check of check runs, \d+ s", ran.err)
    assert "one" not in ran.err


def test_with_stream_the_output_is_shown_while_it_comes(detent):
    Stop(gates=WAITING).build(detent.directory)

    with Terminal(detent.directory, detent.environment, "gate", "run", "check", "--stream") as terminal:
        terminal.expect("begun")
        (detent.directory / "go").touch()
        terminal.expect("over", "PASS")


def test_the_stream_is_text_and_the_receipt_is_the_same(detent):
    Stop(gates=SLOW).build(detent.directory)

    ran = detent("gate", "run", "check", "--stream", "--json").ok()

    assert ran.err == "one\ntwo\tred\n"
    assert ran.json()["gates"]["work"][0]["verdict"] == "PASS"


def test_the_same_notice_appears_once(capsys):
    request = Request()
    for _ in range(2):
        request.notices += ["a file was edited", "a file was edited"]
        request.print_notices()

    assert capsys.readouterr().err == "detent: a file was edited\n"
