"""People and settings in a run on several machines: approvals, labels, draining. Only with `make test-machines`."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from detent.core.session.status import Status
from detent.store.state_home import digest
from tests.support.page import opened
from tests.support.terminal import Terminal
from tests.support.worker_machines import Cluster, cluster, wait_until


def is_held(world: Cluster, session: str) -> bool:
    """Whether the agent of the first phase has ended its turn."""
    return world.handle(lambda handle: handle.state.phases["a"].report is not None, session)


APPROVED = '{key = "a", gates = [{kind = "approval"}]}, "b"'


def test_labels_route_phases_to_machines(tmp_path):
    labels = 'labels = {b1 = ["gpu"], b2 = ["gpu"], c1 = ["gpu", "linux"]}'
    with cluster(tmp_path, seconds=0.2, labels=labels) as world:
        plain, special = world.machine("plain"), world.machine("special", "linux,gpu,big")
        session = world.start_session()
        world.run_to_end()
        world.check(session)
        assert not plain.works_on() & {"b1", "b2", "c1"}
        assert special.works_on() >= {"b1", "b2", "c1"}


def test_an_approval_on_one_machine_continues_work_on_another(tmp_path, report):
    with cluster(tmp_path, seconds=0.2, phases=APPROVED) as world:
        worker = world.machine("worker")
        session = world.start_session()
        world.run()

        wait_until(lambda: is_held(world, session), "the phase is not held")
        time.sleep(0.5)
        world.handle(lambda handle: handle.approve("well done", phase="a"), session)
        since = time.time()
        wait_until(lambda: "b" in worker.works_on(), "the work does not go on")
        report(f"an approval continued the work after {time.time() - since:.1f} s")
        world.wait_completed(session)
        world.check(session, phases=2)


def test_an_approval_through_the_page_continues_work_on_another_machine(tmp_path, report):
    with cluster(tmp_path, seconds=0.2, phases=APPROVED) as world:
        worker = world.machine("worker")
        session = world.start_session()
        world.run()
        env = {name: value for name, value in world.env(world.root, "own").items() if name != "PATH"}
        address = f"/api/p/{digest(os.fsencode(world.root.resolve()))}/s/{session}"
        with opened(world.root, tls=None, **env) as page:

            def actions() -> list[dict[str, Any]]:
                needs = page.get(address).ok()["needs"]
                return [act for need in needs for act in need["actions"] if act["decision"] == "approve"]

            wait_until(lambda: is_held(world, session) and actions(), "the page does not offer the approval")
            body = dict(actions()[0]["body"])
            if actions()[0]["needs_tree"]:
                body["tree"] = page.get(f"{address}/review", phase=body["phase"]).ok()["tree"]
            page.post(f"{address}/decide", decision="approve", **body, reason="well done").ok()
            since = time.time()
            wait_until(lambda: "b" in worker.works_on(), "the work does not go on")
            report(f"an approval through the page continued the work after {time.time() - since:.1f} s")
        world.wait_completed(session)
        world.check(session, phases=2)


def test_a_worker_that_starts_removes_the_trees_of_sessions_that_ended(tmp_path):
    with cluster(tmp_path, seconds=0.1, phases='"a", "b"') as world:
        worker = world.machine("worker")
        session = world.start_session()
        world.run_to_end()
        trees = worker.root / ".workflow" / "worktrees"
        assert [path.name for path in trees.glob("*.worker1")] == [f"{session}.worker1"]
        worker.send(signal.SIGTERM)
        assert worker.process is not None
        worker.process.wait(30)
        worker.start()
        wait_until(lambda: not list(trees.iterdir()), "the tree stays")
        assert "was kept" not in worker.log
        world.check(session, phases=2)


def test_a_run_at_a_terminal_has_no_line_that_is_too_wide_and_one_line_an_event_in_a_pipe(tmp_path):
    said = "echo 'a report that is long enough to need more than one line of a terminal that has eighty columns'"
    with cluster(tmp_path, phases='"a"', command=said) as world:
        world.machine("worker")
        world.start_session("at a terminal")
        argv = [sys.executable, "-m", "detent", "run", "--yes", "--on", world.address]
        terminal = Terminal(argv, cwd=world.root, env=world.env(world.root, "own"), columns=80, lines=40)
        assert terminal.wait() == 0
        lines = terminal.text.replace("\r", "").split("\n")
        assert "runs on temporal://" in terminal.text.replace("\r\n  ", " ")
        assert max(map(len, lines)) <= 80, lines
        session = world.start_session("in a pipe")
        lines = world.detent("run", "--yes").stdout.splitlines()
        assert lines[0].startswith(f"{session} runs on {world.address}; Ctrl-C leaves it running")
        assert any(line.endswith("eighty columns") for line in lines)


def test_a_worker_answers_in_json_while_it_works(tmp_path):
    with cluster(tmp_path) as world:
        argv = [sys.executable, "-m", "detent", "worker", "--json", "--on", world.address]
        with subprocess.Popen(
            argv, cwd=world.root, env=world.env(world.root, "own"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as worker:
            assert worker.stdout is not None
            ready, _, _ = select.select([worker.stdout], [], [], 30.0)
            worker.send_signal(signal.SIGTERM)
            answers = worker.stdout.read().decode()
        assert ready, "it said nothing while it worked"
        assert answers.startswith('{\n  "ready": true')


def test_draining_loses_nothing(tmp_path):
    with cluster(tmp_path, seconds=2.0) as world:
        drained = world.machine("drained")
        session = world.start_session()
        world.run()
        wait_until(drained.works_on, "nothing is done")
        world.machine("other")
        drained.send(signal.SIGTERM)
        assert drained.process.wait(30) == 0
        assert "to finish; a second signal or Ctrl-C ends them" in drained.log
        assert "Traceback" not in drained.log
        world.wait_completed(session)
        world.check(session)
        state = world.handle(lambda handle: handle.state, session)
        assert {key: phase.attempt for key, phase in state.phases.items()} == dict.fromkeys(state.phases, 1)
        assert all(phase.status is Status.COMPLETED for phase in state.phases.values())


def test_a_run_that_is_killed_leaves_no_process_behind(tmp_path):
    with cluster(tmp_path, seconds=0, phases=APPROVED) as world:
        world.machine("worker")
        session = world.start_session()
        run = world.run()
        wait_until(lambda: is_held(world, session), "the phase is not held")
        started = [pid for pid in _children(run.pid) if "flow_child" in _command(pid)]
        run.kill()
        run.wait()
        assert len(started) == 1
        wait_until(lambda: not _command(started[0]), "the process that waits for the workflow is still there", 10.0)
        world.handle(lambda handle: handle.approve("well done", phase="a"), session)
        world.wait_completed(session)


def _children(pid: int) -> list[int]:
    return [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]


def _command(pid: int) -> str:
    """The command line of a process; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_a_run_says_that_its_first_phase_waits_for_a_label(tmp_path):
    with cluster(tmp_path, seconds=0.2, phases='"a"', labels='labels = {a = ["gpu"]}') as world:
        world.machine("plain")
        world.start_session()
        running = world.run()
        wait_until(lambda: "a waits for a worker with --labels gpu" in world.log, "nothing is said of labels")
        world.machine("special", "gpu")
        assert running.wait(60) == 0


def test_a_run_says_that_it_waits_for_a_worker_with_a_label(tmp_path):
    phases, labels = '"a", {key = "b", needs = ["a"]}', 'labels = {b = ["gpu"]}'
    with cluster(tmp_path, seconds=0.2, phases=phases, labels=labels) as world:
        session = world.start_session()
        running = world.run()
        wait_until(lambda: "no worker takes work" in world.log, "nothing is said of workers")
        world.machine("plain", "fpga")
        assert "no phase asks for fpga" in (tmp_path / "plain" / "worker.log").read_text()
        wait_until(lambda: "b waits for a worker with --labels gpu" in world.log, "nothing is said of labels")
        assert "no worker has the label gpu; needed by b" in world.detent("workers").stdout
        assert "b needs a worker with gpu" in " ".join(world.detent("status", namespace=None).stdout.split())
        explained = world.detent("why", "b", namespace=None).stdout
        assert "to a worker with the labels gpu" in " ".join(explained.split())
        assert f"detent workers --on {world.address}" in " ".join(explained.split())
        world.machine("special", "gpu")
        assert running.wait(60) == 0
        world.wait_completed(session)
        listed = world.detent("workers").stdout.splitlines()
        assert [line.partition(";")[0].partition(", ")[2] for line in sorted(listed)] in (
            ["4 slots, fpga", "4 slots, gpu"],
            ["4 slots, gpu", "4 slots, fpga"],
        )


@pytest.mark.parametrize("verb", ["worker", "workers", "run"])
def test_a_namespace_that_is_not_there_is_refused_in_one_line(tmp_path, verb):
    with cluster(tmp_path) as world:
        world.start_session()
        done = world.detent(verb, namespace="nowhere")
        assert done.returncode == 1
        assert "Namespace nowhere is not found" in done.stderr
        assert "Traceback" not in done.stderr
        assert "Fatal" not in done.stderr
