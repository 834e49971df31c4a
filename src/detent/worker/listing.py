"""Lists the workers of a project, and the labels that none of them has."""

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from detent.worker.address import Address
from detent.worker.prepared import project_key
from detent.worker.queues import job_queue, label_sets, needing
from detent.worker.temporal import Loop, connect, pollers

if TYPE_CHECKING:
    from detent.engine.project import Project


class WorkerSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that has asked for jobs in the last minutes."""

    identity: str
    queues: list[str]
    seen: datetime


class Lacking(msgspec.Struct, frozen=True, kw_only=True):
    """Labels that no worker has, and the phases or roles that need them."""

    labels: tuple[str, ...]
    needed_by: list[str]

    def describe(self) -> str:
        labels = f"label{'s' if len(self.labels) > 1 else ''} {', '.join(self.labels)}"
        return f"no worker has the {labels}; needed by {', '.join(self.needed_by)}"


def list_workers(project: "Project", address: Address) -> tuple[list[WorkerSeen], list[Lacking]]:
    """The workers of the project, and the sets of labels that none of them has."""
    key = project_key(project)
    sets = {job_queue(key, labels): labels for labels in label_sets(project.settings)}
    with Loop() as loop:
        service = loop.call(connect(address))
        asking = loop.call(pollers(service, address.namespace, list(sets)))
    workers = {
        identity: WorkerSeen(
            identity=identity,
            queues=[each.queue for each in asking if each.identity == identity],
            seen=max(each.seen for each in asking if each.identity == identity),
        )
        for identity in sorted({each.identity for each in asking})
    }
    asked = {each.queue for each in asking}
    lacking = [
        Lacking(labels=labels, needed_by=needing(project.settings, labels))
        for queue, labels in sets.items()
        if labels and queue not in asked
    ]
    return list(workers.values()), lacking
