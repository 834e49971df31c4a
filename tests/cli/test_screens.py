"""Small things on the screen that a new user sees first."""

from detent.core.gate.evidence import Verdict
from detent.core.run.run_event import End, GateJudged, Need, PersonNeeded, RunEnded
from detent.core.run.run_view import RunView, fold
from detent.core.session.phase_state import Tokens
from detent.engine.project import open_project
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.history import history_text
from detent.render.terminal.live import live_lines
from detent.render.terminal.run_line import run_lines
from detent.run.lease import Lease
from tests.support.command import on_a_terminal
from tests.support.stops import FREE, STOPS, Stop


def test_a_session_whose_run_works_is_running_and_not_paused(detent):
    FREE["begun"].build(detent.directory)
    with open_project(detent.directory) as project:
        lease = Lease(project, "WFS-try-it")
        detent("start", "short", "Another").ok()
        listed = {entry["id"]: entry["status"] for entry in detent("sessions", "--json").ok().json()["sessions"]}
        shown = detent("status", "--session", "try").ok().out
        lease.give_back()

    assert listed == {"WFS-another": "active", "WFS-try-it": "running"}
    assert "running, started" in shown


def test_history_tells_the_seconds_of_a_short_session():
    entry = {
        "status": "completed",
        "started_at": "2026-03-01T09:00:00.000Z",
        "completed_at": "2026-03-01T09:00:19.000Z",
        "metrics": {"total_duration_minutes": 0},
    }

    assert "19s" in history_text([entry], left_out=0, canvas=Canvas())


def test_gates_have_colour_at_a_terminal(detent):
    STOPS["closed gate"][1].build(detent.directory)

    assert "\x1b[31mFAIL\x1b[0m" in on_a_terminal(detent, "gates")
    assert "\x1b" not in detent("gates").ok().out


def test_undo_after_the_end_says_that_the_session_is_open_again(session):
    session("rollback", "-1", "--yes").ok()
    session("complete", "--force").ok()

    undone = session("undo", "--yes", "--session", "login")

    assert "had ended and is open again" in undone.ok().out


def test_uninstall_says_which_files_it_removed(project):
    project("init", "--agent", "claude-code").ok()
    assert (project.directory / ".claude").exists()

    out = project("uninstall").ok().out

    assert "removed .claude/settings.json" in out
    for line in out.splitlines():
        word, _, path = line.partition(" ")
        assert (word == "removed") == (not (project.directory / path).exists()), line


def test_a_task_without_steps_has_none(detent):
    STOPS["blocked task"][1].build(detent.directory)

    out = detent("flow", "show", "IMPL-1").ok().out

    assert out == "IMPL-1: has no steps\n"


def test_the_header_of_status_is_not_cut(detent):
    task = "Make the page faster for everybody who waits for it on a slow line, and say so in the documentation of it"
    Stop().build(detent.directory)
    detent("start", "short", task).ok()

    out = detent("status").ok().out

    assert task in " ".join(out.split())
    assert "…" not in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_cost_is_spoken_of_as_money(tmp_path):
    Stop(settings="[budget]\ncost = 2\n").build(tmp_path)
    with open_project(tmp_path) as project:
        handle = project.session()
        outcome = handle.fail("no", tokens=Tokens(input=1, output=1, cost=2.5))

    assert outcome.warnings == ("the cost is 2.5 of 2",)
    assert [entry.detail for entry in outcome.session.escalations] == ["the cost is 2.5, and 2 was allowed"]


def test_a_vote_during_a_run_is_counted_once_on_the_screen(tmp_path):
    STOPS["vote"][1].build(tmp_path)
    with open_project(tmp_path) as project:
        session, now = project.session().state, project.clock()
    first = GateJudged(at=now, phase="work", gate="approval", verdict=Verdict.PENDING, reason="0 of 2 approvals")
    asked = PersonNeeded(
        at=now,
        need=Need.APPROVAL,
        phase="work",
        text="gate approval of work is PENDING: 1 of 2",
        way_out="x",
        about="approval",
    )
    view = fold(fold(RunView(), first), asked)

    shown = "\n".join(live_lines(session, view, now=now, canvas=Canvas(), height=40, usual={}))

    assert "1 of 2" in shown
    assert "0 of 2 approvals" not in shown


def test_a_paused_run_says_how_it_goes_on(tmp_path):
    FREE["begun"].build(tmp_path)
    with open_project(tmp_path) as project:
        session, now = project.session().state, project.clock()
    ended = RunEnded(at=now, end=End.PAUSED, said="interrupted")

    assert "  detent run" in live_lines(session, fold(RunView(), ended), now=now, canvas=Canvas(), height=40, usual={})
    assert "detent run goes on" in " ".join(run_lines(ended, canvas=Canvas()))
