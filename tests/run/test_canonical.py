"""The canonical graph, run by agents: side by side where it may be, in order where it must, held where people agree."""

from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from detent.core.gate.registry import decode_gate
from detent.core.session.events import Commit, PhaseBegun, PhaseFinished, SessionStarted
from tests.support.command import Tool
from tests.support.people import ANN, BOB, FILLED, SEATS, acting, needs_people

AGENT = """
[agents.script]
adapter = "command"
command = "sleep 0.4; echo Summary: $DETENT_PHASE is done"
[run]
agent = "script"
"""
NEEDS_A_PERSON = 6
#: Far more than what two attempts that follow each other have in common.
REALLY_AT_ONCE = timedelta(seconds=0.1)
SPECIALISTS = {"webapp": {"architecture", "security"}, "ml": {"data", "architecture", "security"}}
CLOSING = {"documentation", "review", "hygiene"}


class Interval(NamedTuple):
    """From the begin of an attempt to its end."""

    begun: datetime
    ended: datetime

    def overlap(self, other: "Interval") -> timedelta:
        return min(self.ended, other.ended) - max(self.begun, other.begun)


def tool(directory: Path, settings: str = AGENT) -> Tool:
    (directory / "detent.toml").write_text(settings + FILLED)
    made = Tool(directory)
    made("init").ok()
    return made


def journal(detent: Tool) -> list[Commit]:
    lines = detent("export", "log", "--session", "WFS-shop").ok().out.splitlines()
    return [msgspec.json.decode(line, type=Commit, dec_hook=decode_gate) for line in lines]


def needs_of(commits: list[Commit]) -> dict[str, tuple[str, ...]]:
    started = commits[0].events[0]
    assert isinstance(started, SessionStarted)
    return {phase.key: phase.needs for phase in started.workflow.phases}


def intervals(commits: list[Commit]) -> dict[str, Interval]:
    begun: dict[str, datetime] = {}
    ended: dict[str, datetime] = {}
    for commit in commits:
        for event in commit.events:
            if isinstance(event, PhaseBegun):
                assert event.phase not in begun, f"{event.phase} began twice"
                begun[event.phase] = commit.at
            if isinstance(event, PhaseFinished):
                ended[event.phase] = commit.at
    assert begun.keys() == ended.keys()
    return {phase: Interval(begun[phase], ended[phase]) for phase in begun}


def side_by_side(found: dict[str, Interval]) -> set[frozenset[str]]:
    return {
        frozenset((one, other))
        for one, other in combinations(found, 2)
        if found[one].overlap(found[other]) > REALLY_AT_ONCE
    }


def most_at_once(found: dict[str, Interval]) -> int:
    """How many were in progress when one began, at most; that is when their number grows."""
    return max(sum(other.begun <= one.begun < other.ended for other in found.values()) for one in found.values())


def pairs(*groups: set[str]) -> set[frozenset[str]]:
    return {frozenset(pair) for group in groups for pair in combinations(sorted(group), 2)}


def check_order(commits: list[Commit]) -> None:
    found = intervals(commits)
    for phase, needs in needs_of(commits).items():
        for need in needs:
            assert found[need].ended <= found[phase].begun, f"{phase} began before {need} had ended"


def vote(detent: Tool, phase: str, seat: str, *arguments: str) -> None:
    with acting(SEATS[seat]):
        detent("approve", phase, *arguments).ok()


def may_vote(*seats: str) -> str:
    return f"{', '.join(sorted(SEATS[seat] for seat in seats))} may still vote"


@needs_people
@pytest.mark.parametrize("kind", ["webapp", "ml"])
def test_a_project_runs_in_parallel_and_is_held_at_both_consensus_gates_until_enough_agree(tmp_path, kind):
    detent = tool(tmp_path)

    first = detent("run", "Shop", "--workflow", kind, "--parallel", "3")
    assert first.code == NEEDS_A_PERSON, first.err
    assert may_vote("architect", "data-engineer", "security-engineer") in " ".join(first.out.split())
    vote(detent, "consensus_1", "architect", "-m", "fits")
    assert detent("run").code == NEEDS_A_PERSON, "one vote was enough"
    vote(detent, "consensus_1", "security-engineer", "-m", "fits")

    second = detent("run", "--parallel", "3")
    assert second.code == NEEDS_A_PERSON, second.err
    assert may_vote("architect", "developer", "qa-engineer") in " ".join(second.out.split())
    assert status_of(detent, "consensus_1") == "completed"
    assert [status_of(detent, phase) for phase in CLOSING] == ["pending"] * 3
    for who in ("architect", "qa-engineer"):
        vote(detent, "consensus_2", who, "-m", "works")

    detent("run", "--parallel", "3").ok()

    commits = journal(detent)
    check_order(commits)
    found = intervals(commits)
    assert side_by_side(found) == pairs(SPECIALISTS[kind], CLOSING)
    assert most_at_once(found) == 3
    assert "all is well" in detent("doctor").ok().out


@needs_people
def test_a_rejection_fails_the_consensus_and_holds_until_the_vote_is_another(tmp_path):
    detent = tool(tmp_path)
    assert detent("run", "Shop", "--workflow", "webapp", "--parallel", "3").code == NEEDS_A_PERSON
    for who in ("architect", "security-engineer"):
        vote(detent, "consensus_1", who, "-m", "no threat model", "--reject")

    held = detent("run")
    assert held.code == NEEDS_A_PERSON
    told = " ".join(held.out.split())
    assert f"is FAIL: {ANN}, {BOB} rejected it: no threat model" in told
    assert status_of(detent, "development") == "pending"
    assert "turn 2" not in told, "an agent cannot change what people think"

    for who in ("security-engineer", "data-engineer"):
        vote(detent, "consensus_1", who, "-m", "there is one now")
    assert "consensus_2" in detent("run").out
    assert status_of(detent, "consensus_1") == "completed"
    assert status_of(detent, "consensus_2") == "in_progress"
    assert "all is well" in detent("doctor").ok().out


def test_never_more_work_goes_on_at_once_than_was_asked_for(tmp_path):
    detent = tool(tmp_path, f'gates = "off"\n{AGENT}')

    detent("run", "Shop", "--workflow", "canonical-full", "--parallel", "2").ok()

    commits = journal(detent)
    check_order(commits)
    found = intervals(commits)
    assert most_at_once(found) == 2
    assert side_by_side(found) < pairs({"data", "architecture", "security"}, CLOSING)


def status_of(detent: Tool, phase: str) -> str:
    phases = detent("status", "--json").ok().json()["phases"]
    return next(one["status"] for one in phases if one["phase"] == phase)
