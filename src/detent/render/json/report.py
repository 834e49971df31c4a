"""The report of a session as JSON."""

from collections.abc import Iterable
from typing import Any

from detent.core.gate import gate_name
from detent.core.gate.judge import judge_recorded
from detent.core.session.attempts import attempts
from detent.core.session.describe import describe
from detent.core.session.events import Commit
from detent.core.session.session import Session
from detent.render.json.record import session_record
from detent.render.report_facts import Changes, sandbox_of, test_runs, work_of


def report_record(session: Session, commits: Iterable[Commit], changes: Changes | None) -> dict[str, Any]:
    """The facts of the report: files, tests, gates with evidence, failures, who worked, who decided, cost."""
    journal = list(commits)
    used = session.all_tokens
    decided = (commit for commit in journal if commit.actor.proof is not None)
    return {
        "session": session_record(session),
        "changes": changes,
        "tests": [
            {"phase": phase, "gate": gate, "before": before, "after": receipt.tests, "lost": receipt.lost_count}
            for phase, gate, before, receipt in test_runs(session)
        ],
        "gates": [
            {"phase": key, "gate": gate_name(gate), "verdict": judged.verdict, "reason": judged.reason, "state": state}
            for key in session.workflow.order
            for gate in session.workflow.by_key[key].gates
            for judged in [judge_recorded(session, key, gate)]
            for state in [session.phases[key].gates.get(gate_name(gate))]
        ],
        "attempts": attempts(journal),
        "workers": work_of(journal),
        "decisions": [
            {
                "at": commit.at,
                "by": commit.by,
                "proof": commit.actor.proof,
                "decided": [describe(event) for event in commit.events],
            }
            for commit in decided
        ],
        "used": used,
        "sandbox": sandbox_of(journal),
    }
