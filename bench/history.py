"""Statistics of gates, and the dry run of a policy, over 1,000 recorded sessions, against a limit of five seconds."""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from bench.measure import Pair, Setting, interleave, say, seconds_each
from bench.table import Goal, Row, Section
from detent.config.settings import parse_settings
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.tests import TestsGate
from detent.doctor.trial import Trials, try_all
from detent.engine.project import Project, open_project
from detent.engine.recorded import gate_stats, recorded_sessions
from tests.support.history import History, gated, receipt
from tests.support.project import build_project
from tests.support.values import NOON

SESSIONS = 1_000
LIMIT_S = 5.0
_PHASES = [f"phase-{number}" for number in range(8)]
_POLICY = "[workflows.trial]\nphases = [{}]\n".format(
    ", ".join(
        f'{{ key = "{key}", gates = [{{ kind = "tests", command = "pytest -q", circuit_breaker = 2 }}, '
        '{ kind = "approval", approvers = ["ada"] }, { kind = "command", name = "lint", command = "ruff check" }] }'
        for key in _PHASES
    )
)


def history(setting: Setting) -> Section:
    count, rounds = setting.pick(SESSIONS, 100), setting.pick(5, 3)
    root = Path(setting.directory, "project")
    build_project(root, _POLICY)
    limit_s = LIMIT_S * count / SESSIONS
    with open_project(root, actor="bench") as project:
        commits = _recorded(project, count)
        trials = Trials(parse_settings(_POLICY, "policy.toml"))
        stats = _measured(lambda: _stats(project, count), lambda: _read(project), rounds)
        tried = _measured(lambda: _tried(project, trials, count), lambda: _read(project), rounds)
        cpu_s = [_cpu_s(work) for work in (lambda: _stats(project, count), lambda: _tried(project, trials, count))]
    name = f"{count:,} sessions"
    return Section(
        name="history",
        rows=(
            Row(what=f"gates --stats, {name} : limit", unit="s", **_against(stats, limit_s)._asdict(), goal=Goal(1.0)),
            Row(what=f"policy try, {name} : limit", unit="s", **_against(tried, limit_s)._asdict(), goal=Goal(1.0)),
            Row(what=f"gates --stats : reading the journals, {name}", unit="s", **stats._asdict()),
            Row(what=f"policy try : reading the journals, {name}", unit="s", **tried._asdict()),
        ),
        remarks=(
            f"{commits:,} commits: eight phases, each with a failed run, a run that passes and a vote;",
            f"one thread each: {cpu_s[0]:.2f} s and {cpu_s[1]:.2f} s of processor time, whatever else the machine does",
        ),
    )


def _recorded(project: Project, count: int) -> int:
    say(f"recording {count:,} sessions")
    graph = gated(**{key: (TestsGate(command="pytest -q"), ApprovalGate()) for key in _PHASES})
    total = 0
    for number in range(count):
        made = History(graph, session=f"WFS-s{number}", start=NOON + timedelta(hours=number))
        for key in _PHASES:
            made.begin(key, tree="t").turn(key, f"run-1/coder/{key}")
            made.check(key, "tests", False).check(key, "tests", receipt(tail="." * 1_500))
            made.vote(key, "approval").finish(key, tree="u")
        made.complete()
        project.store.create(made.session.id, made.commits[0], made.commits[1:])
        total += len(made.commits)
    return total


def _measured(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> Pair:
    return interleave(lambda: seconds_each(ours, 1), lambda: seconds_each(theirs, 1), rounds=rounds)


def _cpu_s(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _against(pair: Pair, limit_s: float) -> Pair:
    return Pair(pair.ours, limit_s, pair.ours / limit_s)


def _stats(project: Project, count: int) -> None:
    assert gate_stats(project.store).sessions == count


def _tried(project: Project, trials: Trials, count: int) -> None:
    assert len(try_all(trials, project.store).trials) == count


def _read(project: Project) -> None:
    for recorded in recorded_sessions(project.store):
        assert not recorded.problem, recorded.problem
