import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.session.slug import MAX_ID, PREFIX, check_session_id, session_id, slugify
from detent.errors import Invalid

topics = st.text(max_size=120) | st.text(alphabet="ab é-_/.ß\uff21", max_size=120)


@given(topics)
def test_every_topic_gets_an_id_that_is_accepted_back(topic):
    chosen = session_id(topic, ())

    assert check_session_id(chosen) == chosen
    assert len(chosen) <= MAX_ID
    assert set(chosen.removeprefix(PREFIX)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@given(topics, st.integers(1, 12))
def test_ids_of_one_topic_never_repeat_and_never_grow_too_long(topic, count):
    taken: list[str] = []
    for _ in range(count):
        taken.append(session_id(topic, taken))

    assert len(set(taken)) == count
    assert all(check_session_id(chosen) == chosen for chosen in taken)


@given(topics)
def test_a_slug_is_its_own_slug(topic):
    assert slugify(slugify(topic)) == slugify(topic)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("Add OAuth2 login", "add-oauth2-login"),
        ("  Größe & Maß!  ", "groe-ma"),
        ("../../etc/passwd", "etc-passwd"),
        ("\uff26\uff55ll", "full"),
    ],
)
def test_a_slug_keeps_the_words_that_ascii_can_say(topic, expected):
    assert slugify(topic) == expected


def test_a_topic_without_ascii_words_gets_a_stable_name_of_its_own():
    assert slugify("日本") == slugify("日本") != slugify("中国")
    assert slugify("日本").startswith("session-")


def test_the_second_session_of_a_topic_is_numbered():
    assert session_id("login", ["WFS-login"]) == "WFS-login-002"
    assert session_id("login", ["WFS-login", "WFS-login-002"]) == "WFS-login-003"


def test_a_long_topic_is_cut_between_words():
    chosen = session_id("rewrite the whole billing system in a completely different language", ())

    assert chosen == "WFS-rewrite-the-whole-billing-system-in-a"


@pytest.mark.parametrize("text", ["", "WFS-", "Login", "a b", "a--b", "-a", "a-", "../x", "é", "x" * 47, "a\n"])
def test_a_name_that_is_no_slug_is_refused_and_a_better_one_proposed(text):
    with pytest.raises(Invalid) as refusal:
        check_session_id(text)

    assert check_session_id(refusal.value.way_out.removeprefix("use "))


def test_the_prefix_may_be_given_or_left_out():
    assert check_session_id("login") == check_session_id("WFS-login") == "WFS-login"
