"""Events for webhooks, as CloudEvents 1.0 in JSON. Free text of agents is left out."""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from detent.core.session import events
from detent.core.session.events import Commit, Event

CONTENT_TYPE = "application/cloudevents+json"
#: The names by which settings choose events: the type without `detent.`.
KINDS: dict[type, str] = {
    events.SessionStarted: "session_started",
    events.SessionCompleted: "session_completed",
    events.SessionCancelled: "session_cancelled",
    events.PhaseBegun: "phase_begun",
    events.PhaseRedone: "phase_redone",
    events.PhaseFinished: "phase_finished",
    events.PhaseFailed: "phase_failed",
    events.PhaseSkipped: "phase_skipped",
    events.GateChecked: "gate_checked",
    events.GateApproved: "gate_approved",
    events.VoteCast: "vote_cast",
    events.LossAccepted: "loss_accepted",
    events.EscalationRaised: "escalation_raised",
    events.QuestionAsked: "question_asked",
    events.RolledBack: "rolled_back",
}
#: Fields that are sent, of those that an event has.
_SENT = ("phase", "gate", "attempt", "kind", "approve", "approver", "choices", "forced", "name")


def cloud_events(session: str, commit: Commit, *, source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a commit that webhooks can ask for, each with the name of its kind. Their ids never change."""
    for index, event in enumerate(commit.events):
        kind = KINDS.get(type(event))
        if kind is None:
            continue
        mark = f"{source}\0{session}\0{commit.version}\0{index}"
        yield (
            kind,
            {
                "specversion": "1.0",
                "id": hashlib.sha256(mark.encode()).hexdigest()[:32],
                "source": source,
                "type": f"detent.{kind}",
                "subject": session,
                "time": commit.at.isoformat().replace("+00:00", "Z"),
                "datacontenttype": "application/json",
                "data": {"session": session, "commit": commit.version, "by": commit.by, **_data(event)},
            },
        )


def _data(event: Event) -> dict[str, Any]:
    sent = {name: value for name in _SENT if (value := getattr(event, name, None)) not in (None, "", ())}
    if isinstance(event, events.GateChecked):
        sent["result"] = str(event.receipt.result)
        sent["passed"] = event.receipt.is_pass
    return sent


def signature_headers(secret: bytes, event_id: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers of Standard Webhooks: the receiver computes the same over id, time and body."""
    signed = b".".join((event_id.encode(), str(at_s).encode(), body))
    made = b64encode(hmac.digest(secret, signed, "sha256")).decode()
    return {"webhook-id": event_id, "webhook-timestamp": str(at_s), "webhook-signature": f"v1,{made}"}
