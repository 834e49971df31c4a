"""The process that starts a workflow: its errors reach the parent."""

import subprocess
import sys

import msgspec
import pytest

from detent.errors import DetentError, StoreFailed
from detent.worker.address import Address
from detent.worker.flow_process import FlowProcess, Wanted

#: A port without a server.
NOWHERE = Address("127.0.0.1", 1, "default")
WANTED = Wanted(name="n", id="i", queue="q", given=msgspec.Raw(b"{}"), queues=("q",))


def test_the_reason_why_it_cannot_start_a_workflow_reaches_the_parent():
    with (
        FlowProcess(NOWHERE) as flow,
        pytest.raises(DetentError, match=r"cannot be reached|needs temporalio") as refusal,
    ):
        flow.start(WANTED)

    assert refusal.value.way_out


def test_a_process_that_is_killed_is_an_error():
    with FlowProcess(NOWHERE) as flow:
        flow._child.kill()
        with pytest.raises(StoreFailed, match="ended without an answer"):
            flow.start(WANTED)
        with pytest.raises(StoreFailed, match="ended without an answer"):
            flow.result.result(60.0)


def test_the_parent_does_not_load_what_the_process_loads():
    code = (
        "import sys, detent.worker.client; print([name for name in sys.modules if name in ('temporalio', 'asyncio')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
