"""Spans and metrics in the JSON form of OTLP, as collectors take it: ids in hex, times in nanoseconds as text."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from detent.core.telemetry.spans import CONVENTIONS, Metric, Span, Trace, Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCHEMA = f"https://opentelemetry.io/schemas/{CONVENTIONS}"
_INTERNAL, _ERROR = 1, 2
#: Sums since the start of the session.
_CUMULATIVE = 2


def traces(spans: Sequence[Span], *, project: str, version: str) -> dict[str, Any]:
    scope = {"scope": {"name": "detent", "version": version}, "spans": [_span(span) for span in spans]}
    return {"resourceSpans": [{"resource": _resource(project), "scopeSpans": [scope], "schemaUrl": _SCHEMA}]}


def metrics(collected: Iterable[Trace], *, project: str, version: str) -> dict[str, Any]:
    points: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for trace in collected:
        for metric in trace.metrics():
            points.setdefault((metric.name, metric.unit), []).append(_point(trace, metric))
    listed = [
        {
            "name": name,
            "unit": unit,
            "sum": {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, "dataPoints": own},
        }
        for (name, unit), own in points.items()
    ]
    scope = {"scope": {"name": "detent", "version": version}, "metrics": listed}
    return {"resourceMetrics": [{"resource": _resource(project), "scopeMetrics": [scope], "schemaUrl": _SCHEMA}]}


def _resource(project: str) -> dict[str, Any]:
    return {"attributes": _attributes({"service.name": "detent", "service.namespace": project})}


def _span(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace,
        "spanId": span.id,
        **({"parentSpanId": span.parent} if span.parent else {}),
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": nanoseconds(span.start),
        "endTimeUnixNano": nanoseconds(span.end),
        "attributes": _attributes(span.attributes),
        "status": {} if span.error is None else {"code": _ERROR, "message": span.error},
    }


def _point(trace: Trace, metric: Metric) -> dict[str, Any]:
    whole = float(metric.value).is_integer() and metric.unit != "USD"
    value: dict[str, Any] = {"asInt": str(int(metric.value))} if whole else {"asDouble": metric.value}
    own = {"detent.session": trace.session, "detent.workflow": trace.workflow, **metric.attributes}
    return {
        "attributes": _attributes(own),
        "startTimeUnixNano": nanoseconds(trace.started or _EPOCH),
        "timeUnixNano": nanoseconds(trace.last or _EPOCH),
        **value,
    }


def _attributes(attributes: dict[str, Value]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}


def nanoseconds(at: datetime) -> str:
    return str((at - _EPOCH) // timedelta(microseconds=1) * 1_000)
