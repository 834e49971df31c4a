"""People and settings in a run on several machines: approvals, labels, draining. Only with `make test-machines`."""

import signal
import time

from detent.core.session.status import Status
from tests.support.worker_machines import cluster, wait_until

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

        def is_held() -> bool:
            state = world.handle(lambda handle: handle.state, session)
            return state.phases["a"].report is not None

        wait_until(is_held, "the phase is not held")
        time.sleep(0.5)
        world.handle(lambda handle: handle.approve("well done", phase="a"), session)
        since = time.time()
        wait_until(lambda: "b" in worker.works_on(), "the work does not go on")
        report(f"an approval continued the work after {time.time() - since:.1f} s")
        world.wait_completed(session)
        world.check(session, phases=2)


def test_draining_loses_nothing(tmp_path):
    with cluster(tmp_path, seconds=2.0) as world:
        drained = world.machine("drained")
        session = world.start_session()
        world.run()
        wait_until(drained.works_on, "nothing is done")
        world.machine("other")
        drained.send(signal.SIGTERM)
        assert drained.process.wait(30) == 0
        world.wait_completed(session)
        world.check(session)
        state = world.handle(lambda handle: handle.state, session)
        assert {key: phase.attempt for key, phase in state.phases.items()} == dict.fromkeys(state.phases, 1)
        assert all(phase.status is Status.COMPLETED for phase in state.phases.values())
