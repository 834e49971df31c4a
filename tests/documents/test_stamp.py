import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.documents.state.stamp import cut, format_stamp, minutes_between, parse_stamp

START = datetime(2026, 2, 9, 10, 0, tzinfo=UTC)


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@given(st.text(), st.integers(0, 200))
def test_a_cut_is_a_prefix_of_whole_characters_as_long_as_fits(text: str, units: int) -> None:
    short = cut(text, units)

    assert text.startswith(short)
    assert utf16_units(short) <= units
    assert short == text or utf16_units(text[: len(short) + 1]) > units


def test_a_pair_on_the_edge_is_left_out_whole() -> None:
    assert cut("x" * 149 + "😀", 150) == "x" * 149


@pytest.mark.parametrize(("seconds", "minutes"), [(0, 0), (29, 0), (30, 1), (89, 1), (90, 2), (150, 3)])
def test_half_a_minute_rounds_up(seconds: int, minutes: int) -> None:
    ended = format_stamp(START + timedelta(seconds=seconds))

    assert minutes_between(format_stamp(START), ended) == minutes


@given(st.datetimes(timezones=st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone)))
def test_a_formatted_stamp_reads_back_to_the_millisecond(at: datetime) -> None:
    read = parse_stamp(format_stamp(at)) if 1 < at.year < 9999 else at

    assert read is not None
    assert timedelta() <= at - read < timedelta(milliseconds=1)


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XXX+11")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_utc")
def test_a_stamp_without_a_zone_is_utc_wherever_the_machine_is() -> None:
    assert parse_stamp("2026-02-09T10:00:00") == parse_stamp("2026-02-09T11:00:00+01:00") == START


@pytest.mark.parametrize("value", [None, 0, True, "", "soon", "2026-13-01", [], {}])
def test_what_is_no_stamp_is_no_time(value: object) -> None:
    assert parse_stamp(value) is None


def test_time_running_backwards_is_no_duration() -> None:
    assert minutes_between("2026-02-09T10:01:00Z", "2026-02-09T10:00:00Z") is None
