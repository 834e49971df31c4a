"""The outbox of a run: what it sends, to whom, and that a receiver that hangs or is away delays nothing."""

import pytest

from detent.config.settings import Settings, TelemetrySettings, WebhookSettings
from detent.core.gate.kinds.tests import TestsGate
from detent.core.telemetry.cloud_event import signature_headers
from detent.errors import Invalid
from detent.run import outbox as outboxes
from detent.run.outbox import open_outbox
from detent.store.memory import MemoryStore
from detent.store.port import START
from tests.support.history import History, gated
from tests.support.receiver import hanging, receiving
from tests.support.waiting import wait_until

SESSION = "WFS-trial"


@pytest.fixture
def store():
    """A store whose session has two commits."""
    made = MemoryStore()
    history = begun()
    made.create(SESSION, history.commits[0], history.commits[1:])
    return made


def begun() -> History:
    return History(gated(build=(TestsGate(command="pytest -q"),))).begin("build")


def go_on(store):
    """The session is worked on to its end."""
    whole = begun().check("build", "tests", True).finish("build").complete()
    for commit in whole.commits[2:]:
        with store.lock(SESSION):
            store.append(SESSION, store.read(SESSION, START).end, commit)


def opened(store, **settings):
    made = open_outbox(Settings(**settings), store, SESSION, "shop", {"TOKEN": "t0p"})
    assert made is not None
    return made


def test_without_settings_nothing_is_sent_and_no_thread_runs(store):
    assert open_outbox(Settings(), store, SESSION, "shop", {}) is None


def test_a_collector_gets_each_span_once_also_over_two_runs(store):
    with receiving() as receiver:
        settings = TelemetrySettings(endpoint=receiver.url, headers={"Authorization": "$TOKEN"})
        first = opened(store, telemetry=settings)
        wait_until(lambda: receiver.taken)
        assert first.close() == []
        go_on(store)
        second = opened(store, telemetry=settings)
        wait_until(lambda: len(spans_of(receiver)) == 3)
        assert second.close() == []
        count = len(receiver.taken)
        third = opened(store, telemetry=settings)
        wait_until(lambda: len(receiver.taken) > count)
        assert third.close() == []

        assert [span["name"] for span in spans_of(receiver)] == ["gate tests", "phase build", "invoke_workflow trial"]
        assert {taken.path for taken in receiver.taken} == {"/v1/traces", "/v1/metrics"}
        assert {taken.headers["authorization"] for taken in receiver.taken} == {"t0p"}


def spans_of(receiver):
    return [
        span
        for taken in receiver.taken
        if taken.path == "/v1/traces"
        for resource in taken.json()["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def test_a_webhook_gets_chosen_events_signed_and_again_after_a_passing_failure(store, monkeypatch):
    monkeypatch.setenv("HOOK_SECRET", "s3cret")
    monkeypatch.setattr(outboxes, "PAUSE_S", 0.1)
    with receiving() as receiver:
        receiver.refusals += [503, 500]
        hook = WebhookSettings(
            url=f"{receiver.url}/in", events=("phase_begun", "phase_finished"), secret_env="HOOK_SECRET"
        )
        sender = opened(store, webhooks={"team": hook})
        # It pauses: what is committed meanwhile is sent all the same.
        wait_until(lambda: len(receiver.refusals) == 1)
        go_on(store)
        sender.wake()
        wait_until(lambda: len(receiver.taken) == 2)
        assert sender.close() == []

        begun, finished = receiver.taken
        assert [each.json()["type"] for each in receiver.taken] == ["detent.phase_begun", "detent.phase_finished"]
        assert begun.headers["content-type"] == "application/cloudevents+json"
        stamp = int(finished.headers["webhook-timestamp"])
        expected = signature_headers(b"s3cret", finished.json()["id"], stamp, finished.body)
        assert finished.headers["webhook-signature"] == expected["webhook-signature"]


def test_a_receiver_that_refuses_for_good_is_said_and_not_asked_again(store):
    with receiving() as receiver:
        receiver.refusals += [400] * 10
        sender = opened(store, webhooks={"team": WebhookSettings(url=receiver.url, events=("phase_begun",))})
        wait_until(lambda: len(receiver.refusals) == 9)
        wait_until(lambda: sender._senders[0]._problem)

        assert sender.close() == ["webhook team: status 400"]
        assert receiver.taken == []


def test_a_receiver_that_hangs_is_left_behind_when_the_run_ends(store):
    with hanging() as url:
        sender = opened(store, telemetry=TelemetrySettings(endpoint=url, timeout_s=30))
        wait_until(lambda: sender._senders[0]._busy_since is not None)
        [said] = sender.close()

    assert said == "telemetry: not everything was sent, and the next run sends it"


def test_commits_beyond_the_limit_are_left_out_and_counted(store, monkeypatch):
    monkeypatch.setattr(outboxes, "MAX_BEHIND", 2)
    go_on(store)
    with receiving() as receiver:
        sender = opened(store, webhooks={"team": WebhookSettings(url=receiver.url)})
        wait_until(lambda: len(receiver.taken) == 2)
        assert sender.close() == ["webhook team: 3 commits were left out"]
        assert [each.json()["type"] for each in receiver.taken] == ["detent.phase_finished", "detent.session_completed"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"telemetry": TelemetrySettings(endpoint="ftp://x")}, "is no address"),
        ({"telemetry": TelemetrySettings(endpoint="http://a:b@x")}, "is no address"),
        ({"webhooks": {"a": WebhookSettings(url="http://x:99999")}}, "is no address"),
        ({"webhooks": {"a": WebhookSettings(url="http://x", events=("nothing",))}}, "there is no event nothing"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_before_the_run(store, settings, reason):
    with pytest.raises(Invalid, match=reason):
        opened(store, **settings)
