"""Which failures are worth another try, and which are a refusal."""

import pytest

from detent.clients.adapter.failure import crashed, failed
from detent.core.run.agent_event import Failure
from detent.process.conversation import Exited


@pytest.mark.parametrize(
    "reason",
    [
        "unexpected status 503 Service Gone",
        "HTTP 502",
        'got {"error": {"code": 500}}',
        "API Error: 529",
        "Request rejected (429)",
        "exceeded retry limit, last status: 408",
        "You've hit your usage limit. Try again at 5 pm.",
        "stream disconnected before completion: error sending request for url",
        "getaddrinfo EAI_AGAIN api.example.invalid",
        "TypeError: fetch failed",
    ],
)
def test_a_server_or_a_network_in_trouble_is_worth_another_try(reason):
    assert failed(reason).failure is Failure.TRANSIENT


@pytest.mark.parametrize(
    "reason",
    [
        "unexpected status 400 Bad Request: unknown model",
        "unexpected status 401 Unauthorized",
        "API Error: 404",
        "error in line 1500 of 502 lines",
        "unknown option --foo",
        "",
    ],
)
def test_what_will_be_wrong_again_is_an_error(reason):
    assert failed(reason).failure is Failure.ERROR


@pytest.mark.parametrize(
    "reason",
    [
        "the response was blocked: prohibited_content",
        "Model stream ended with finish reason: PROHIBITED_CONTENT",
        "This request was flagged for possible misuse",
        "Your prompt violates our usage policy",
    ],
)
def test_a_refusal_is_not_asked_again(reason):
    assert failed(reason).failure is Failure.REFUSED


def test_the_status_that_a_client_tells_counts_more_than_its_words():
    assert failed("the quota field is unknown", status=400).failure is Failure.ERROR
    assert failed("all is well", status=500).failure is Failure.TRANSIENT


@pytest.mark.parametrize(
    ("exited", "reason"),
    [
        (Exited(1, "first\nlast"), "x ended with exit code 1: first\nlast"),
        (Exited(-15), "x was ended by signal 15 without output"),
        (Exited(2, "a" * 1_000 + "the end"), "x ended with exit code 2: " + "a" * 393 + "the end"),
    ],
)
def test_a_crash_is_told_with_the_end_of_the_error_output(exited, reason):
    assert crashed("x", exited).reason == reason


@pytest.mark.parametrize(
    ("reason", "seconds"),
    [
        ("429 Too Many Requests, retry-after: 30", 30),
        ("Retry-After: 7", 7),
        ("Rate limit reached. Please try again in 11.054s.", 11.054),
        ("please try again in 250ms", 0.25),
        ("try again in 2 minutes", 120),
        ("retry after 1 hour", 3600),
        ("Too many requests", 0),
        ("You've hit your usage limit. Try again at 5 pm.", 0),
    ],
)
def test_the_wait_that_a_service_asks_for_is_read(reason, seconds):
    assert failed(reason, status=429).retry_after_s == pytest.approx(seconds)
