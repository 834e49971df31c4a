"""The facts of every report of a session, as values: changed files, runs of tests, who worked."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from detent.core.gate import gate_name
from detent.core.gate.evidence import Receipt
from detent.core.session.events import AgentEnded, AgentLaunched, Commit
from detent.core.session.phase_state import Worker
from detent.core.session.sandboxing import sandbox_text
from detent.core.session.session import Session

#: The most files that a report lists.
MOST_FILES = 300


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the session changed: added, removed or modified; no counts for a file that is no text."""

    path: str
    change: str
    added: int | None = None
    removed: int | None = None


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The files that differ between two checkpoints."""

    since: str
    until: str
    files: tuple[FileChange, ...] = ()


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A turn's agent, model and version, and how many turns it had in the phase."""

    phase: str
    worker: Worker
    turns: int


def test_runs(session: Session) -> Iterator[tuple[str, str, int | None, Receipt]]:
    """Phase, gate, number of tests at the start, and the last run that counts, of each gate that runs tests."""
    for key in session.workflow.order:
        for gate in session.workflow.by_key[key].gates:
            receipt = session.phases[key].at_gate(gate_name(gate)).receipt
            if gate.runs_tests and receipt is not None:
                known = session.baseline.tests.get(gate.runnable() or "")
                yield key, gate_name(gate), known.count if known is not None else None, receipt


def work_of(commits: Sequence[Commit]) -> list[Work]:
    """The agents and people that worked in each phase, in the order in which they began."""
    turns: dict[tuple[str, Worker], int] = {}
    for commit in commits:
        for event in commit.events:
            if isinstance(event, AgentEnded) and event.report is not None and event.report.worker is not None:
                key = (event.phase, event.report.worker)
                turns[key] = turns.get(key, 0) + 1
    return [Work(phase=phase, worker=worker, turns=count) for (phase, worker), count in turns.items()]


def sandbox_of(journal: Iterable[Commit]) -> str | None:
    """Whether the agents of runs were in a sandbox, by the record."""
    launches = (event for commit in journal for event in commit.events if isinstance(event, AgentLaunched))
    return sandbox_text((event.agent_id, event.sandboxed) for event in launches)
