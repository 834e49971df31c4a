"""Sessions that have ended, the figures of their gates, and two sessions side by side."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time
from statistics import median_low
from typing import Any

import msgspec

from detent.core.history.gate_stats import GateStats
from detent.core.session.attempts import AttemptRecord, attempts
from detent.core.session.events import AgentEnded, AgentLaunched, Commit, GateChecked
from detent.core.session.phase_state import Tokens
from detent.core.session.session import Session
from detent.engine.project import Project
from detent.engine.recorded import gate_stats
from detent.errors import DetentError
from detent.render.json.gate_stats import stats_record
from detent.store.port import all_commits
from detent.web.screens.session import tokens_record

#: Sessions of one answer.
MAX_SESSIONS = 500


class Histories:
    """The rows of ended sessions. A row is made once: it reads the whole journal."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], tuple[int, dict[str, Any] | None]] = {}
        #: Project to the figures of its gates, with the marks of the sessions that they are made of.
        self._figures: dict[str, tuple[tuple[tuple[str, int], ...], list[dict[str, Any]]]] = {}

    def screen(self, project_id: str, project: Project) -> dict[str, Any]:
        rows = (self._row(project_id, project, *each) for each in project.store.positions().items())
        ended = sorted((row for row in rows if row is not None), key=lambda row: row["ended_at"])
        shown = ended[-MAX_SESSIONS:]
        return {"sessions": shown, "phases": _durations(shown), "gates": self._gates(project_id, project)}

    def _gates(self, project_id: str, project: Project) -> list[dict[str, Any]]:
        """The figures of all gates, made again only if a session went on."""
        store = project.store
        marks = tuple(store.positions().items())
        known = self._figures.get(project_id)
        if known is None or known[0] != marks:
            known = self._figures[project_id] = marks, [_gate(row) for row in gate_stats(store).gates]
        return known[1]

    def _row(self, project_id: str, project: Project, name: str, position: int) -> dict[str, Any] | None:
        known = self._rows.get((project_id, name))
        if known is not None and known[0] == position:
            return known[1]
        try:
            session = project.journal(name).session()
            row = session_row(project, session) if session.has_ended else None
        except DetentError:
            row = None
        self._rows[project_id, name] = position, row
        return row


def _gate(stats: GateStats) -> dict[str, Any]:
    """The figures of a gate, and its first tries by week as a plot takes them."""
    return {
        **stats_record(stats),
        "title": f"{stats.phase} {stats.gate}",
        "flaky_of": f"{stats.flaky}/{stats.repeated}" if stats.repeated else "-",
        "times": [datetime.combine(week.begins, time(), UTC).timestamp() for week in stats.weeks],
        "rates": [week.first_try / week.tried for week in stats.weeks],
    }


def _durations(sessions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The time of each phase over all sessions; `share` is its median as a part of the longest time of all."""
    times: dict[str, list[float]] = {}
    tried: dict[str, int] = {}
    for phase in (phase for session in sessions for phase in session["phases"]):
        times.setdefault(phase["phase"], []).append(phase["minutes"])
        tried[phase["phase"]] = tried.get(phase["phase"], 0) + phase["attempts"]
    longest = max((max(own) for own in times.values()), default=0.0) or 1.0
    return [
        {
            "phase": phase,
            "median": median_low(own),
            "longest": max(own),
            "attempts": tried[phase],
            "share": median_low(own) / longest,
        }
        for phase, own in times.items()
    ]


def session_row(project: Project, session: Session) -> dict[str, Any]:
    commits = list(all_commits(project.store, session.id))
    tried = attempts(commits)
    checked, passed = _first_tries(commits)
    until = session.ended_at or project.clock()
    by_phase = [_phase(session, key, tried, until) for key in session.workflow.order if session.phases[key].attempt]
    return {
        "session": session.id,
        "task": session.task,
        "workflow": session.workflow.name,
        "status": session.status,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "minutes": (until - session.started_at).total_seconds() / 60,
        "attempts": len(tried),
        "retries": sum(row["attempts"] - 1 for row in by_phase if row["attempts"]),
        "gates": {"checked": checked, "passed_first": passed},
        "first_try_rate": passed / checked if checked else None,
        "tokens": tokens_record(session.all_tokens),
        "phases": by_phase,
    }


def _phase(session: Session, key: str, tried: Iterable[AttemptRecord], until: Any) -> dict[str, Any]:
    own = [attempt for attempt in tried if attempt.phase == key]
    return {
        "phase": key,
        "minutes": sum(attempt.minutes(until) for attempt in own),
        "attempts": len(own),
        "tokens": tokens_record(session.phases[key].all_tokens),
    }


def _first_tries(commits: Iterable[Commit]) -> tuple[int, int]:
    """Count the gates that were checked by a run, and those that passed at the first one."""
    first: dict[tuple[str, str], bool] = {}
    for commit in commits:
        for event in commit.events:
            if isinstance(event, GateChecked) and event.receipt.aside is None:
                first.setdefault((event.phase, event.gate), event.receipt.is_pass)
    return len(first), sum(first.values())


def compare_screen(project: Project, a: str, b: str) -> dict[str, Any]:
    rows = [session_row(project, project.journal(name).session()) for name in (a, b)]
    by_phase = [{phase["phase"]: phase for phase in row["phases"]} for row in rows]
    keys = dict.fromkeys((*by_phase[0], *by_phase[1]))
    phases = [{"phase": key, "a": by_phase[0].get(key), "b": by_phase[1].get(key)} for key in keys]
    return {"a": rows[0], "b": rows[1], "phases": phases}


def timeline_screen(project: Project, name: str) -> dict[str, Any]:
    """The attempts in the order in which they began, each with its turns and the checks that did not pass."""
    commits = list(all_commits(project.store, name))
    turns = _turns(commits)
    return {
        "attempts": [
            {
                **msgspec.structs.asdict(attempt),
                "tokens": tokens_record(attempt.tokens),
                "closed": [
                    {
                        "gate": check.gate,
                        "at": check.at,
                        "result": check.receipt.result,
                        "error": check.receipt.error,
                        "exit_code": check.receipt.exit_code,
                        "command": check.receipt.command,
                    }
                    for check in attempt.closed
                ],
                "turns": [turn for turn in turns if _is_in(turn, attempt)],
            }
            for attempt in attempts(commits)
        ]
    }


def _is_in(turn: dict[str, Any], attempt: AttemptRecord) -> bool:
    if turn["phase"] != attempt.phase or turn["launched"] < attempt.begun:
        return False
    return attempt.ended is None or bool(turn["launched"] <= attempt.ended)


def _turns(commits: Iterable[Commit]) -> list[dict[str, Any]]:
    turns: dict[str, dict[str, Any]] = {}
    for commit in commits:
        for event in commit.events:
            if isinstance(event, AgentLaunched):
                turns[event.agent_id] = {
                    "phase": event.phase,
                    "agent": event.agent,
                    "agent_id": event.agent_id,
                    "launched": commit.at,
                    "ended": None,
                    "succeeded": None,
                    "summary": "",
                    "tokens": tokens_record(Tokens()),
                    "model": "",
                }
            elif isinstance(event, AgentEnded) and event.agent_id in turns:
                report = event.report
                turns[event.agent_id] |= {
                    "ended": commit.at,
                    "succeeded": event.succeeded,
                    "summary": report.summary if report is not None else "",
                    "tokens": tokens_record(report.tokens if report is not None else Tokens()),
                    "model": report.worker.model if report is not None and report.worker is not None else "",
                }
    return list(turns.values())
