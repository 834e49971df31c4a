"""Text on paper: as wide as it says, and nothing in it that a terminal would obey."""

import re
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.session.session import Session
from detent.render.elapsed import duration, moment
from detent.render.terminal.canvas import LEAST_WIDTH, Canvas, columns_of
from detent.render.terminal.rollback import Planned, plan_text
from detent.render.terminal.status import status_text
from tests.support import story
from tests.support.values import NOON

ESCAPES = re.compile(r"\x1b\[\d+m")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("", 0),
        ("登录", 4),
        ("e\u0301", 1),
        ("🎉", 2),
        ("❤\ufe0f", 2),
        ("👩\u200d💻", 4),
        ("ﾊﾝｶｸ", 4),
        ("\uff26", 2),
    ],
)
def test_columns(text, columns):
    assert columns_of(text) == columns


@given(st.text(), st.integers(1, 30))
def test_cut_and_pad_are_exact(text, columns):
    canvas = Canvas()
    assert columns_of(canvas.cut(text, columns)) <= columns
    assert columns_of(canvas.pad(text, columns)) == columns


@given(st.text(), st.sampled_from(["utf-8", "ascii", "latin-1"]))
def test_clean_text_is_printable_and_can_be_encoded(text, encoding):
    cleaned = Canvas(encoding=encoding).clean(text)
    cleaned.encode(encoding)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", cleaned)


def test_what_was_cut_ends_in_dots():
    assert Canvas().cut("登录登录", 6) == "登录…"
    assert Canvas().cut("登录登录", 5) == "登录…"
    assert Canvas(encoding="ascii").cut("abcdefgh", 6) == "abc..."


def test_hostile_text_is_shown_not_obeyed():
    assert Canvas().clean("a\x1b]0;owned\x07b\u202ec\nd\te") == r"a\x1b]0;owned\x07b\u202ec d e"


def test_a_command_is_never_cut():
    command = f'detent finish {"k" * 64} -m "SUMMARY"'
    lines = Canvas(width=60).command(command)
    assert len(lines) > 1
    assert " ".join(line.strip().removesuffix(" \\") for line in lines) == command


def filled(session: Session, text: str) -> Session:
    phases = {
        key: msgspec.structs.replace(state, summary=state.summary and text, agent=text, error=text)
        for key, state in session.phases.items()
    }
    return msgspec.structs.replace(session, task=text, branch=text, phases=session.phases.updated(phases))


@given(st.text(), st.integers(LEAST_WIDTH, 200), st.sampled_from([story.half_way, story.in_parallel, story.failed]))
def test_status_is_never_wider_than_the_terminal(text, width, told):
    session = filled(told().session, text)
    for canvas in (Canvas(width=width), Canvas(width=width, encoding="ascii")):
        lines = status_text(session, now=story.NOW, canvas=canvas).split("\n")
        assert [line for line in lines if columns_of(line) > width] == []


@given(st.text(), st.sampled_from([story.half_way, story.in_parallel, story.failed]))
def test_colour_adds_nothing_but_colour(text, told):
    session = filled(told().session, text)
    coloured = status_text(session, now=story.NOW, canvas=Canvas(colour=True))
    assert ESCAPES.sub("", coloured) == status_text(session, now=story.NOW, canvas=Canvas())


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (7_500, "2h 05m"), (90_000, "1d 01h")],
)
def test_durations(seconds, said):
    assert duration(seconds) == said


def test_the_day_is_told_only_if_it_is_another():
    assert moment(NOON, NOON + timedelta(hours=3)) == "12:00"
    assert moment(NOON, NOON + timedelta(days=3)) == "2026-02-09 12:00"


@given(text=st.lists(st.text("ab/登🎉é\x1b", min_size=1, max_size=200)).map(" ".join), width=st.integers(40, 120))
def test_wrapped_text_loses_nothing(text, width):
    canvas = Canvas(width=width)
    assert "".join("".join(canvas.wrap(text, "  ")).split()) == "".join(canvas.clean(text).split())
    assert all(columns_of(line) <= width for line in canvas.wrap(text, "  "))


def test_a_path_is_shown_whole_with_its_blanks():
    path = "src/a  directory/" + "deep/" * 20 + "file name.py"
    lines = Canvas(width=40).whole(path, "    ", "  ~ ")

    assert lines[0].startswith("  ~ src/a  directory/")
    assert "".join(line[4:] for line in lines) == path
    assert all(len(line) <= 40 for line in lines)


def test_the_plan_of_a_rollback_names_every_path_whole():
    path = "packages/" + "some-package/" * 8 + "index.test.ts"
    planned = Planned(
        session=story.half_way().session,
        name="PRE_a_v1",
        taken="phase",
        at=story.NOW,
        files={"restored": (path,)},
        statuses={},
        kept=(path,),
    )
    text = plan_text(planned, now=story.NOW, canvas=Canvas(width=60))

    assert "".join(text.replace("~", "").split()).count(path) == 2


def test_a_command_goes_on_in_the_next_line_between_two_words_of_the_shell():
    lines = Canvas(width=40).command('detent fail --token a:1:1 -m "WHAT WENT WRONG" --session WFS-a')

    assert lines == ["  detent fail --token a:1:1 -m \\", '      "WHAT WENT WRONG" --session WFS-a']
    assert Canvas(width=40).command("it's  odd") == ["  it's  odd"]
