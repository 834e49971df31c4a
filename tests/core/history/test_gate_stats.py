"""The figures of gates, each worked out by hand for a small history."""

from datetime import date, timedelta

from msgspec.structs import replace

from detent.core.gate.evidence import Result
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.history.gate_stats import GateHistory, GateStats, Week
from detent.core.session import events
from detent.core.session.phase_state import PhaseState
from tests.support.history import History, gated, person, receipt
from tests.support.values import NOON

TESTS = TestsGate(command="pytest -q")
GRAPH = gated(build=(TESTS,), check=(ApprovalGate(),))


def figures(*histories: History) -> dict[str, GateStats]:
    collected = GateHistory()
    for history in histories:
        collected.add(history.commits)
    return {stats.gate: stats for stats in collected.stats()}


def test_the_figures_of_a_small_history_are_those_worked_out_by_hand():
    # Opens at the first run, 10 minutes after the begin; the approval follows 5 minutes after its phase began.
    smooth = History(GRAPH).begin("build")
    smooth.at(10).check("build", "tests", receipt(duration_s=2.0, inputs="a")).finish("build")
    smooth.at(20).begin("check").at(25).vote("check", "approval").at(26).finish("check").complete()
    # Fails twice, in two attempts, opens 30 minutes after the first failure; then a later phase shows an escape.
    rough = History(GRAPH, session="WFS-rough", start=NOON + timedelta(days=7)).begin("build")
    rough.at(10).check("build", "tests", receipt(False, duration_s=4.0, inputs="b")).fail("build")
    rough.at(20).redo("build").at(30).check("build", "tests", receipt(False, duration_s=6.0, inputs="c"))
    rough.at(40).check("build", "tests", receipt(duration_s=8.0, inputs="c")).finish("build")
    rough.at(50).begin("check").at(60).vote("check", "approval", approve=False)
    rough.at(70).redo("build").at(80).approve("build", "tests").finish("build")
    # Not tried yet: begun, and nothing more.
    fresh = History(GRAPH, session="WFS-fresh").begin("build")

    stats = figures(smooth, rough, fresh)

    assert stats["tests"] == GateStats(
        phase="build",
        gate="tests",
        kind="tests",
        sessions=3,
        passages=4,
        tried=3,
        opened=3,
        first_try=1,
        retries=2,
        by_hand=1,
        accepted=0,
        escalated=0,
        escapes=1,
        checks=4,
        check_s=5.0,  # of 2, 4, 6 and 8
        open_s=600.0,  # of 10 minutes, 40 minutes, and 10 minutes by hand
        stuck_s=1800.0,
        repeated=1,  # the files c were run on twice,
        flaky=1,  # and failed once
        weeks=(
            Week(begins=date(2026, 2, 9), tried=1, first_try=1),
            Week(begins=date(2026, 2, 16), tried=2, first_try=0),
        ),
    )
    assert stats["tests"].first_try_rate == 1 / 3
    approval = stats["approval"]
    assert (approval.passages, approval.tried, approval.opened, approval.first_try) == (2, 2, 1, 1)
    assert (approval.retries, approval.open_s, approval.checks) == (1, 300.0, 0)


def test_a_rollback_behind_a_finish_is_an_escape_until_it_is_undone():
    history = History(GRAPH).begin("build").check("build", "tests", True).finish("build", tree="t1").begin("check")
    done, under_way = history.session.phases["build"], history.session.phases["check"]
    back = events.RolledBack(
        id="rb-1", to="x", name="PRE_build_v1", phases={"build": PhaseState(), "check": PhaseState()}, safety="s"
    )
    history.add(back, by=person())

    assert figures(history)["tests"].escapes == 1

    undone = replace(back, id="rb-2", undoes="rb-1", phases={"build": done, "check": under_way})
    history.add(undone, by=person())

    assert figures(history)["tests"].escapes == 0


def test_a_run_that_the_baseline_decided_is_not_flaky():
    history = History(GRAPH).begin("build").check("build", "tests", receipt(inputs="a"))
    history.check("build", "tests", receipt(inputs="a", lost_count=1))

    stats = figures(history)["tests"]

    assert (stats.repeated, stats.flaky, stats.retries) == (0, 0, 1)


def test_a_run_that_could_not_start_is_a_failed_try_and_no_verdict():
    broken = replace(receipt(inputs="a"), result=Result.ERROR, exit_code=None, error="no such program")
    history = History(GRAPH).begin("build").check("build", "tests", broken)
    history.check("build", "tests", receipt(inputs="a"))

    stats = figures(history)["tests"]

    assert (stats.tried, stats.first_try, stats.retries, stats.repeated) == (1, 0, 1, 0)


def test_what_was_only_seen_is_no_try():
    seen = replace(receipt(False), aside="seen in the agent's shell")
    history = History(GRAPH).begin("build").check("build", "tests", seen).check("build", "tests", True).finish("build")

    stats = figures(history)["tests"]

    assert (stats.first_try, stats.retries, stats.checks) == (1, 0, 1)


def test_a_session_without_gates_has_no_figures():
    history = History(GRAPH, options=events.Options(gates=False)).begin("build").finish("build")

    assert figures(history) == {}
