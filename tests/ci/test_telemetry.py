"""Exported telemetry, read by the official messages of OTLP."""

import json
import subprocess

import pytest

from tests.support.branch import branch, record
from tests.support.receiver import receiving

#: Runs in the environment of others. The JSON of OTLP has ids in hex, and protobuf expects base64.
PARSER = """
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

def plain(value):
    if isinstance(value, dict):
        return {key: base64.b64encode(bytes.fromhex(each)).decode() if key in ("traceId", "spanId", "parentSpanId")
                else plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value

spans, metrics = [], []
for line in open(sys.argv[1]):
    data = plain(json.loads(line))
    if "resourceSpans" in data:
        parsed = json_format.ParseDict(data, TracesData())
        for resource in parsed.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    assert len(span.trace_id) == 16 and len(span.span_id) == 8
                    assert span.end_time_unix_nano >= span.start_time_unix_nano
                    spans.append([span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), span.name])
    else:
        parsed = json_format.ParseDict(data, MetricsData())
        for resource in parsed.resource_metrics:
            for scope in resource.scope_metrics:
                metrics += [each.name for each in scope.metrics]
print(json.dumps({"spans": spans, "metrics": metrics}))
"""


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    tool = branch(tmp_path_factory.mktemp("telemetry") / "project")
    record(tool)
    return tool


def parsed(python, file):
    ran = subprocess.run([python, "-c", PARSER, file], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_the_official_messages_parse_an_export_and_a_second_one_has_the_same_ids(tmp_path, python, worked):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    worked("export", "otlp", "-o", str(first)).ok()
    worked("export", "otlp", "-o", str(second)).ok()

    data = parsed(python, first)

    assert first.read_bytes() == second.read_bytes()
    names = [name for *_, name in data["spans"]]
    assert names.count("gate tests") == 2
    assert {"phase work", "phase rewrite", "invoke_workflow short"} <= set(names)
    ids = {span for _, span, _, _ in data["spans"]}
    assert {parent for _, _, parent, _ in data["spans"] if parent} <= ids
    assert "detent.phase.attempts" in data["metrics"]


def test_an_export_is_sent_to_a_collector(worked):
    with receiving() as receiver:
        ran = worked("export", "otlp", "--endpoint", receiver.url, "--since", "1d", "--json").ok().json()
        assert sorted(taken.path for taken in receiver.taken) == ["/v1/metrics", "/v1/traces"]
        assert ran["spans"] == len(receiver.taken[0].json()["resourceSpans"][0]["scopeSpans"][0]["spans"])

        receiver.refusals.append(503)
        refused = worked("export", "otlp", "--endpoint", receiver.url)
    assert "did not take it: status 503" in refused.err
    assert worked("export", "otlp", "--endpoint", "nowhere").code != 0
