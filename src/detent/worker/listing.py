"""Lists the workers of a project."""

from typing import TYPE_CHECKING

from detent.worker.address import Address
from detent.worker.prepared import project_key
from detent.worker.queues import job_queue, label_sets
from detent.worker.temporal import Loop, Poller, connect, pollers

if TYPE_CHECKING:
    from detent.engine.project import Project


def list_workers(project: "Project", address: Address) -> list[Poller]:
    """The workers of the project that asked for jobs in the last minutes."""
    key = project_key(project)
    queues = [job_queue(key, labels) for labels in label_sets(project.settings)]
    with Loop() as loop:
        service = loop.call(connect(address))
        return loop.call(pollers(service, address.namespace, queues))
