"""Spans, metrics and events of a session, worked out by hand for a small journal."""

from datetime import timedelta

from detent.core.gate.kinds.tests import TestsGate
from detent.core.session.phase_state import Tokens, ToolUse
from detent.core.telemetry.cloud_event import cloud_events, signature_headers
from detent.core.telemetry.otlp import metrics, nanoseconds, traces
from detent.core.telemetry.spans import Span, Trace, trace_of
from tests.support.history import History, gated, receipt
from tests.support.values import NOON

GRAPH = gated(build=(TestsGate(command="pytest -q"),))
SPENT = Tokens(input=100, output=20, cost=0.5)


def worked() -> History:
    history = History(GRAPH).at(1).begin("build")
    tools = (
        ToolUse(tool="Edit", input="secret", at=NOON + timedelta(minutes=2)),
        ToolUse(tool="Bash", succeeded=False),
    )
    history.at(2).turn("build", "run-1/coder/1", SPENT, tools)
    history.at(4).check("build", "tests", receipt(False, duration_s=30.0))
    history.at(5).check("build", "tests", receipt(duration_s=30.0)).at(6).finish("build", tokens=SPENT)
    return history.at(7).complete()


def by_name(spans: tuple[Span, ...]) -> dict[str, Span]:
    return {span.name: span for span in spans}


def test_a_session_its_phases_turns_tools_and_gates_are_spans_of_one_trace():
    _, spans = trace_of(worked().commits)

    named = by_name(spans)
    root, phase, turn = named["invoke_workflow trial"], named["phase build"], named["invoke_agent coder"]
    assert (root.parent, phase.parent, turn.parent) == ("", root.id, phase.id)
    assert {named["execute_tool Edit"].parent, named["execute_tool Bash"].parent} == {turn.id}
    assert [span.parent for span in spans if span.name == "gate tests"] == [phase.id, phase.id]
    assert len({span.id for span in spans}) == len(spans) == 7
    assert {span.trace for span in spans} == {root.trace}
    assert (phase.start, phase.end) == (NOON + timedelta(minutes=1), NOON + timedelta(minutes=6))
    assert (root.start, root.end) == (NOON, NOON + timedelta(minutes=7))
    assert turn.attributes["gen_ai.usage.input_tokens"] == 100
    assert (named["execute_tool Bash"].error, root.attributes["cicd.pipeline.result"]) == ("the tool failed", "success")
    assert named["gate tests"].start == NOON + timedelta(minutes=5, seconds=-30)


def test_a_second_export_and_one_in_parts_have_the_same_spans():
    commits = worked().commits
    trace, parts = Trace(), list[Span]()
    for commit in commits:
        trace.add(commit)
        parts += trace.take()

    assert tuple(parts) == trace_of(commits)[1] == trace_of(commits)[1]


def test_tokens_and_retries_are_counted_once():
    trace, _ = trace_of(worked().commits)

    counted = [(each.name, each.attributes.get("gen_ai.token.type"), each.value) for each in trace.metrics()]

    assert sorted(counted, key=str) == [
        ("detent.cost", None, 0.5),
        ("detent.gate.retries", None, 1),
        ("detent.phase.attempts", None, 1),
        ("gen_ai.client.token.usage", "input", 100),
        ("gen_ai.client.token.usage", "output", 20),
    ]


def test_a_session_that_goes_on_has_its_span_up_to_now_and_no_open_phase():
    history = History(GRAPH).at(1).begin("build").at(3).check("build", "tests", True)

    _, spans = trace_of(history.commits)

    assert sorted(span.name for span in spans) == ["gate tests", "invoke_workflow trial"]


def test_nothing_that_an_agent_wrote_is_sent():
    trace, spans = trace_of(worked().commits)

    text = str((traces(spans, project="p", version="1"), metrics([trace], project="p", version="1")))

    assert "secret" not in text
    assert "pytest" not in text
    assert "try it" not in text


def test_times_are_nanoseconds_as_text():
    assert nanoseconds(NOON) == "1770638400000000000"


def test_events_have_ids_that_never_change_and_no_prose():
    commits = worked().commits
    sent = [event for commit in commits for _, event in cloud_events("WFS-trial", commit, source="urn:x")]

    assert [event["type"] for event in sent] == [
        "detent.session_started",
        "detent.phase_begun",
        "detent.gate_checked",
        "detent.gate_checked",
        "detent.phase_finished",
        "detent.session_completed",
    ]
    assert len({event["id"] for event in sent}) == len(sent)
    assert sent[2]["data"] == {
        "session": "WFS-trial",
        "commit": 5,
        "by": "coder",
        "phase": "build",
        "gate": "tests",
        "result": "failed",
        "passed": False,
    }
    assert "try it" not in str(sent)


def test_a_signature_is_that_of_standard_webhooks():
    headers = signature_headers(b"secret", "msg_1", 1_700_000_000, b"{}")

    # printf 'msg_1.1700000000.{}' | openssl dgst -sha256 -hmac secret -binary | base64
    assert headers == {
        "webhook-id": "msg_1",
        "webhook-timestamp": "1700000000",
        "webhook-signature": "v1,A5oIrJxXPB/PkULSoVu0e4khvPiqpF9vljmhkSKg0FI=",
    }
