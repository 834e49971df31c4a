"""Every action that the page offers for a stop is one that is not refused, and decides it."""

import os

import pytest

from detent.engine.project import open_project
from detent.store.state_home import digest
from tests.support.stops import STOPS

TEXTS = {"reason": "because", "answer": "yes", "command": "true", "value": "5"}


def address(root):
    return f"/api/p/{digest(os.fsencode(root.resolve()))}/s/WFS-try-it"


def carry_out(page, root, action):
    """Post the action as the page does."""
    body = dict(action["body"])
    for field in filter(None, [action["needs_reason"] and action["reason_field"], (action["also"] or [None])[0]]):
        body[field] = TEXTS[field]
    if action["needs_tree"]:
        body["tree"] = page.get(f"{address(root)}/review", phase=body["phase"]).ok()["tree"]
    return page.post(f"{address(root)}/decide", decision=action["decision"], **body)


@pytest.mark.parametrize("name", STOPS)
def test_every_action_of_a_stop_is_carried_out(page, tmp_path_factory, name):
    kind, stop = STOPS[name]
    first = tmp_path_factory.mktemp("stop")
    stop.build(first)
    entries = [need for need in page.get(address(first)).ok()["needs"] if need["kind"] == kind]
    assert entries
    # Each action begins at the same stop. The first one takes the session that was looked at.
    tried = [(index, at) for index, entry in enumerate(entries) for at in range(len(entry["actions"]))]

    for index, at in tried:
        root = first if (index, at) == tried[-1] else tmp_path_factory.mktemp("stop")
        if root is not first:
            stop.build(root)
        needs = [need for need in page.get(address(root)).ok()["needs"] if need["kind"] == kind]
        done = carry_out(page, root, needs[index]["actions"][at])
        assert done.status == 200, (needs[index]["actions"][at], done.body)

    assert tried or "YOUR TEST COMMAND" in entries[0]["command"]


def test_a_decision_of_another_name_or_without_its_words_is_refused(page, base):
    assert page.post(f"{base}/decide", decision="vanish").error[:2] == (400, "invalid")
    assert page.post(f"{base}/decide").error[:2] == (400, "invalid")
    assert page.post(f"{base}/decide", decision="reject", phase="work").error[2] == "reason is needed"
    assert page.post(f"{base}/decide", decision="skip", phase=5, reason="x").error[2] == "phase must be a text"
    assert page.post(f"{base}/decide", decision="skip", phase="x" * 70_000, reason="x").status == 400
    assert page.post(f"{base}/decide", decision="skip", phase="nowhere", reason="x").status == 404


def test_what_the_rules_refuse_is_refused_with_the_way_out(page, base, root):
    refused = page.post(f"{base}/decide", decision="resolve", choice="retry")

    assert refused.status == 409
    assert refused.json["error"]["way_out"]
    with open_project(root) as project:
        assert project.session("WFS-try-it").state.version == 1


def test_a_rejection_carries_the_comments_as_its_reason(page, base, root):
    page.post(f"{base}/decide", decision="reject", phase="work", gate="approval", reason="calc.py:2: not so").ok()

    with open_project(root) as project:
        [vote] = project.session("WFS-try-it").state.phases["work"].gates["approval"].votes.values()
    assert (vote.approve, vote.reason) == (False, "calc.py:2: not so")


def test_a_session_is_paused_resumed_and_archived(page, base):
    assert page.post(f"{base}/decide", decision="pause").ok()
    assert page.get(base).ok()["is_active"] is False
    assert page.post(f"{base}/decide", decision="pause").status == 409
    assert page.post(f"{base}/decide", decision="resume").ok()
    page.post(f"{base}/decide", decision="cancel", reason="enough").ok()
    assert page.post(f"{base}/decide", decision="archive").ok()
