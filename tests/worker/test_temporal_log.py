"""What the library of Temporal logs is no answer of a command: it goes to standard error."""

import subprocess
import sys

import pytest

#: Connects to a port where nothing listens, with all that the library logs.
CONNECT = """
import asyncio, logging, time
from detent.errors import StoreFailed
from detent.worker import temporal
from detent.worker.address import parse_address

everything = temporal.TelemetryFilter(core_level="TRACE", other_level="TRACE")
temporal.TelemetryFilter = lambda **_: everything
logging.basicConfig(level=1)
try:
    asyncio.run(temporal.connect(parse_address("temporal://127.0.0.1:9/default"), "test"))
except StoreFailed as error:
    print("answer:", error.message)
time.sleep(0.5)
"""


def test_the_log_of_the_library_goes_to_standard_error():
    pytest.importorskip("temporalio")
    ran = subprocess.run([sys.executable, "-c", CONNECT], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("answer: ")
    assert ran.stdout.count("\n") == 1
    assert "sdk_core" in ran.stderr
