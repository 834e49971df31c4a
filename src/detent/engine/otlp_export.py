"""Exports recorded sessions as traces and metrics of OpenTelemetry."""

import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from detent import __version__
from detent.config.settings import TelemetrySettings
from detent.core.telemetry import otlp
from detent.core.telemetry.spans import Span, Trace, trace_of
from detent.engine.posting import address, expanded, post
from detent.engine.recorded import Progress, recorded_sessions
from detent.errors import StoreFailed

if TYPE_CHECKING:
    from detent.engine.project import Project


class Payloads(NamedTuple):
    traces: dict[str, Any]
    metrics: dict[str, Any]
    spans: int
    points: int


def otlp_payloads(
    project: "Project", *, since: datetime | None = None, only: str | None = None, progress: Progress | None = None
) -> Payloads:
    """The traces and metrics of the sessions. Those that cannot be read are named in the notices of the project."""
    name = project.place.project or os.path.basename(project.place.root)
    spans: list[Span] = []
    traces: list[Trace] = []
    for recorded in recorded_sessions(project.store, since=since, only=only, progress=progress):
        if recorded.problem:
            project.notices.append(f"{recorded.session} is left out: {recorded.problem}")
            continue
        trace, ended = trace_of(recorded.commits)
        traces.append(trace)
        spans += ended
    return Payloads(
        otlp.traces(spans, project=name, version=__version__),
        otlp.metrics(traces, project=name, version=__version__),
        len(spans),
        sum(len(trace.metrics()) for trace in traces),
    )


def send_payloads(
    payloads: Payloads, endpoint: str, settings: TelemetrySettings, environment: Mapping[str, str]
) -> None:
    """Send both to a collector; `StoreFailed` with its answer if it does not take them."""
    at = address(endpoint, "--endpoint")
    headers = {"Content-Type": "application/json", **expanded(settings.headers, environment)}
    for path, payload in (("/v1/traces", payloads.traces), ("/v1/metrics", payloads.metrics)):
        answer = post(at.below(path), msgspec.json.encode(payload), headers, settings.timeout_s)
        if answer.problem:
            raise StoreFailed(
                f"{endpoint}{path} did not take it: {answer.problem}",
                way_out="repeat it later: a second export has the same ids",
            )
