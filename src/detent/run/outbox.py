"""Sends what a run does to a collector and to webhooks, from a thread of its own. The run never waits for it.

The journal is the queue: the thread reads commits behind its position and sends them. A receiver that hangs or is away
delays nothing but its own sender; what is not sent when the run ends is sent by the next run of the session, or by
`detent export otlp`. A position that falls too far behind is moved on, and that is counted.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Protocol

import msgspec

from detent import __version__
from detent.config.settings import Settings, TelemetrySettings, WebhookSettings
from detent.core.session.events import Commit
from detent.core.telemetry import otlp
from detent.core.telemetry.cloud_event import CONTENT_TYPE, KINDS, cloud_events, signature_headers
from detent.core.telemetry.spans import Span, Trace
from detent.engine.posting import Address, Answer, address, expanded, post, secret_of
from detent.errors import DetentError, Invalid
from detent.store import disk
from detent.store.port import START, Cursor, Store

#: Commits that wait for one receiver. Older ones are left out, and counted.
MAX_BEHIND = 1_000
#: Spans of one request.
MAX_SPANS = 500
#: The first pause after a failed request; it doubles.
PAUSE_S = 1.0
MAX_PAUSE_S = 60.0
#: How long the end of a run waits for a sender that is not hanging, and the age of a request that hangs.
CLOSE_S, HANGS_S = 0.25, 0.1
_READ_AT_ONCE = 200


class Receiver(Protocol):
    """Takes the commits of a session, and sends them."""

    name: str

    def add(self, commit: Commit, *, is_old: bool) -> None:
        """Take a commit; `is_old`: it was sent before, and only counts for what follows."""
        ...

    def send(self) -> Answer:
        """Send what was taken and not sent. A problem that does not pass drops it."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether something was taken and not sent."""
        ...


class Collector:
    """Sends spans and metrics to an OTLP collector."""

    name = "telemetry"

    def __init__(self, settings: TelemetrySettings, project: str, environment: Mapping[str, str]) -> None:
        assert settings.endpoint is not None
        at = address(settings.endpoint, "[telemetry] endpoint")
        self._traces, self._metrics = at.below("/v1/traces"), at.below("/v1/metrics")
        self._headers = {"Content-Type": "application/json", **expanded(settings.headers, environment)}
        self._timeout_s, self._project = settings.timeout_s, project
        self._trace = Trace()
        self._spans: list[Span] = []

    def add(self, commit: Commit, *, is_old: bool) -> None:
        self._trace.add(commit)
        ended = self._trace.take()
        if not is_old:
            self._spans += ended

    @property
    def is_waiting(self) -> bool:
        return bool(self._spans)

    def send(self) -> Answer:
        while self._spans:
            some = self._spans[:MAX_SPANS]
            body = otlp.traces(some, project=self._project, version=__version__)
            answer = self._post(self._traces, body)
            if answer.is_passing:
                return answer
            del self._spans[: len(some)]
        return self._post(self._metrics, otlp.metrics([self._trace], project=self._project, version=__version__))

    def _post(self, to: Address, body: dict[str, object]) -> Answer:
        return post(to, msgspec.json.encode(body), self._headers, self._timeout_s)


class Webhook:
    """Sends events as CloudEvents, one request each, in the order of the journal."""

    def __init__(self, name: str, settings: WebhookSettings, project: str, environment: Mapping[str, str]) -> None:
        self.name = f"webhook {name}"
        unknown = sorted(set(settings.events) - set(KINDS.values()))
        if unknown:
            raise Invalid(
                f"[webhooks.{name}] events: there is no event {', '.join(unknown)}",
                way_out=f"there are {', '.join(sorted(KINDS.values()))}",
            )
        self._to = address(settings.url, f"[webhooks.{name}] url")
        self._headers = {"Content-Type": CONTENT_TYPE, **expanded(settings.headers, environment)}
        self._settings, self._secret = settings, secret_of(settings.secret_env)
        self._source = f"urn:detent:project:{project}"
        self._session = ""
        self._waiting: list[dict[str, object]] = []
        self._tries = 0

    def add(self, commit: Commit, *, is_old: bool) -> None:
        for event in commit.events:
            self._session = getattr(event, "session", self._session)
        if is_old:
            return
        chosen = self._settings.events
        self._waiting += [
            event
            for kind, event in cloud_events(self._session, commit, source=self._source)
            if not chosen or kind in chosen
        ]

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def send(self) -> Answer:
        last = Answer()
        while self._waiting:
            event = self._waiting[0]
            body = msgspec.json.encode(event)
            signed = signature_headers(self._secret, str(event["id"]), int(time.time()), body) if self._secret else {}
            last = post(self._to, body, {**self._headers, **signed}, self._settings.timeout_s)
            if last.is_passing and self._tries < self._settings.retries:
                self._tries += 1
                return last
            self._tries = 0
            del self._waiting[0]
        return last if not last.is_passing else Answer(last.problem)


class Outbox:
    """One thread for each receiver. `wake` says that something was committed."""

    def __init__(self, receivers: list[Receiver], store: Store, session: str) -> None:
        self._senders = [_Sender(receiver, store.reopen(), session) for receiver in receivers]

    def wake(self) -> None:
        for sender in self._senders:
            sender.wake()

    def close(self) -> list[str]:
        """End the threads without waiting for one that hangs; what was not sent, in sentences."""
        until = time.monotonic() + CLOSE_S
        for sender in self._senders:
            sender.stop()
        return [problem for sender in self._senders if (problem := sender.join(until))]


class _Sender:
    def __init__(self, receiver: Receiver, store: Store, session: str) -> None:
        self._receiver, self._store, self._session = receiver, store, session
        self._signal = threading.Condition()
        self._is_woken, self._is_stopping = True, False
        #: When the request under way began; None between requests.
        self._busy_since: float | None = None
        #: The problem of the last request, and whether something was lost by one that did not pass.
        self._problem, self._is_lost, self._dropped = "", False, 0
        directory = store.directory(f"{session}/.process")
        self._mark = os.path.join(directory, f"sent-{receiver.name.replace(' ', '-').replace('/', '-')}.json")
        self._thread = threading.Thread(target=self._run, name=f"detent-{receiver.name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        with self._signal:
            self._is_woken = True
            self._signal.notify()

    def stop(self) -> None:
        with self._signal:
            self._is_stopping = True
            self._signal.notify()

    def join(self, until: float) -> str:
        while self._thread.is_alive():
            since = self._busy_since
            hangs = since is not None and time.monotonic() - since > HANGS_S
            if hangs or time.monotonic() > until:
                return f"{self._receiver.name}: not everything was sent, and the next run sends it"
            self._thread.join(0.01)
        dropped = f"{self._dropped} commits were left out" if self._dropped else ""
        problems = "; ".join(filter(None, (self._problem, dropped)))
        return f"{self._receiver.name}: {problems}" if problems else ""

    def _run(self) -> None:
        try:
            self._follow()
        except DetentError as error:
            self._problem = error.message
        finally:
            self._store.close()

    def _follow(self) -> None:
        sent, cursor, pause_s = _read_mark(self._mark), START, PAUSE_S
        while True:
            stopping = self._wait(None)
            is_behind = self._receiver.is_waiting
            if not is_behind:
                cursor = self._take(cursor, sent)
            answer = self._send()
            self._note(answer)
            if answer.is_passing:
                if stopping or self._wait(pause_s):
                    return
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
                self.wake()
                continue
            pause_s, sent = PAUSE_S, cursor.version
            _write_mark(self._mark, sent)
            if is_behind:
                # Commits may have been made while it waited.
                self.wake()
            elif stopping:
                return

    def _note(self, answer: Answer) -> None:
        if answer.problem:
            self._problem, self._is_lost = answer.problem, self._is_lost or not answer.is_passing
        elif not self._is_lost:
            self._problem = ""

    def _wait(self, pause_s: float | None) -> bool:
        """Wait for something to send, or for the pause; whether the run ends."""
        with self._signal:
            if pause_s is None:
                self._signal.wait_for(lambda: self._is_woken or self._is_stopping)
            else:
                self._signal.wait_for(lambda: self._is_stopping, pause_s)
            self._is_woken = False
            return self._is_stopping

    def _take(self, cursor: Cursor, sent: int) -> Cursor:
        """Read the commits behind the position. The oldest of too many are left out."""
        fresh: deque[Commit] = deque()
        more = True
        while more:
            commits, cursor, _, more = self._store.read(self._session, cursor, _READ_AT_ONCE)
            for commit in commits:
                if commit.version <= sent:
                    self._receiver.add(commit, is_old=True)
                    continue
                fresh.append(commit)
                if len(fresh) > MAX_BEHIND:
                    self._receiver.add(fresh.popleft(), is_old=True)
                    self._dropped += 1
        for commit in fresh:
            self._receiver.add(commit, is_old=False)
        return cursor

    def _send(self) -> Answer:
        self._busy_since = time.monotonic()
        try:
            return self._receiver.send()
        finally:
            self._busy_since = None


def _read_mark(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(1_024), type=int)
    except (OSError, msgspec.DecodeError):
        return 0


def _write_mark(path: str, version: int) -> None:
    try:
        disk.make_directory(os.path.dirname(path))
        disk.replace(path, msgspec.json.encode(version), mode=disk.PRIVATE_FILE)
    except OSError:
        # A second sending has the same ids.
        return


def open_outbox(
    settings: Settings, store: Store, session: str, project: str, environment: Mapping[str, str]
) -> Outbox | None:
    """The outbox of the settings; None if they name no receiver."""
    receivers: list[Receiver] = []
    if settings.telemetry.endpoint is not None:
        receivers.append(Collector(settings.telemetry, project, environment))
    receivers += [Webhook(name, each, project, environment) for name, each in settings.webhooks.items()]
    return Outbox(receivers, store, session) if receivers else None
