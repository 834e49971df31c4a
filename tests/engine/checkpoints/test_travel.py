"""Several jobs of one machine send files at the same time."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from detent.engine.checkpoints.travel import Travel


class Nowhere:
    """A place that takes every snapshot and keeps none; and objects that are all the same manifest."""

    def send(self, *_snapshot: object) -> None:
        pass

    def read(self, _digest: str) -> bytes:
        return b"{}"


def test_jobs_send_at_the_same_time(tmp_path):
    nowhere: Any = Nowhere()
    travels = [Travel(nowhere, nowhere, str(tmp_path)) for _ in range(4)]

    def send(number: int) -> None:
        travels[number % 4].send("WFS-a", f"{number:064x}", {})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(2_000)))

    assert [path.name for path in tmp_path.iterdir()] == ["travel-last"]
