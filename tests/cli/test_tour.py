"""The tour is true: its commands do what its text says."""

import os


def test_the_tour_ends_as_its_text_says(detent):
    before = os.getcwd(), dict(os.environ)
    ran = detent("tour", "--no-wait").ok()

    assert "gate tests FAIL" in ran.out
    assert "run completed" in ran.out
    assert ran.out.rstrip().endswith('detent run "TASK" --agent NAME --tests "pytest -q"')
    assert (os.getcwd(), dict(os.environ)) == before


def test_the_tour_waits_at_a_terminal_only(detent):
    code, message, way_out = detent("tour").error()
    assert (code, way_out) == (1, "detent tour --no-wait")
    assert "this is no terminal" in message


def test_the_tour_has_no_json(detent):
    ran = detent("tour", "--json")
    assert ran.code == 2
    assert "has no JSON" in ran.out
