"""The services of `deploy/compose.yaml` as plain processes: the same commands and variables, in the same order."""

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from detent.store.state_home import digest
from tests.support import temporal_server
from tests.support.page import Page, free_port
from tests.support.postgres import server
from tests.support.temporal_server import TemporalServer
from tests.support.waiting import wait_until

COMPOSE = Path(__file__).parents[2] / "deploy" / "compose.yaml"
DETENT = os.path.join(os.path.dirname(sys.executable), "detent")
SETTINGS = """
[files]
remote = "{remote}"

[agents.script]
adapter = "command"
command = "cat >/dev/null; echo I am a worker; while [ ! -e {top}/go ]; do sleep 0.05; done; echo done"

[run]
agent = "script"
workflow = "trial"
sandbox = "off"
heartbeat_s = 5.0

[workflows.trial]
phases = [{{ key = "work" }}, {{ key = "more", needs = ["work"] }}]
"""


class Services:
    """The services of the file, with the ports of this test in the place of those of the host."""

    def __init__(self, top: Path, temporal: TemporalServer) -> None:
        self._services = yaml.safe_load(COMPOSE.read_text())["services"]
        self.project = top / "project"
        self.port = free_port()
        self._ports = {"localhost:5432": f"localhost:{server().port}", "localhost:7233": f"localhost:{temporal.port}"}
        self._home = top / "home"
        self._home.mkdir()

    def command(self, name: str) -> list[str]:
        words = [str(self.port) if word == "7337" else word for word in self._services[name]["command"]]
        for before, after in self._ports.items():
            words = [word.replace(before, after) for word in words]
        return words

    def environment(self, name: str) -> dict[str, str]:
        given = {key: "secret" if "$" in value else value for key, value in self._services[name]["environment"].items()}
        assert given == {"PGPASSWORD": "secret", "HOME": "/tmp"}
        assert self._services[name]["network_mode"] == "host"
        state = str(self._home / "state")
        return {"PATH": os.environ["PATH"], "XDG_STATE_HOME": state, **given, "HOME": str(self._home)}

    def order(self) -> list[str]:
        """The services in an order in which each comes after those that it waits for."""
        started: list[str] = []
        while len(started) < len(self._services):
            ready = [
                name
                for name, service in self._services.items()
                if name not in started and set(service.get("depends_on", ())) <= set(started)
            ]
            assert ready
            started += ready
        return started

    def run(self, name: str, *words: str) -> str:
        return subprocess.run(
            [DETENT, *(words or self.command(name)[1:])],
            cwd=self.project,
            env=self.environment(name),
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout

    @contextmanager
    def serving(self, name: str):
        """A service that goes on, until it is drained."""
        log = self.project.parent / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [DETENT, *self.command(name)[1:]],
                cwd=self.project,
                env=self.environment(name),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        try:
            wait_until(lambda: "ready" in log.read_text() or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield process
        finally:
            process.terminate()
            assert process.wait(60) == 0


@pytest.fixture
def services(tmp_path, nobody):
    if reason := temporal_server.missing():
        pytest.skip(reason)
    if not server().execute("SELECT 1 FROM pg_database WHERE datname = 'detent'"):
        server().create_database("detent")
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "remote.git"], check=True)
    (tmp_path / "project").mkdir()
    settings = SETTINGS.format(remote=tmp_path / "remote.git", top=tmp_path)
    (tmp_path / "project" / "detent.toml").write_text(settings)
    temporal = TemporalServer(tmp_path).start()
    yield Services(tmp_path, temporal)
    temporal.stop()


def test_the_services_start_in_their_order_and_do_a_run_that_the_page_shows(services, tmp_path):
    order = services.order()
    assert order.index("tables") < order.index("page")
    services.run("tables")
    # A service that is started again finds the tables.
    services.run("tables")
    store = services.command("tables")[-1]
    services.run("tables", "init", "--store", store)
    with ExitStack() as stack:
        for worker in ("worker-1", "worker-2"):
            stack.enter_context(services.serving(worker))
        command = services.command("page")
        assert command[:3] == ["detent", "ui", "--no-open"]
        page = Page(services.project, *command[3:], **services.environment("page"))
        stack.callback(page.kill)
        assert page.origin == f"http://localhost:{services.port}"
        assert page.said["read_only_because"] is None
        on = services.command("worker-1")[3]
        run = stack.enter_context(
            subprocess.Popen(
                [DETENT, "run", "--yes", "--on", on, "try it"],
                cwd=services.project,
                env=services.environment("worker-1"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(run.kill)
        base = f"/api/p/{digest(os.fsencode(services.project.resolve()))}/s/WFS-try-it"

        def lines():
            found = page.get(base)
            shown = found.json["run"] if found.status == 200 else None
            return [line for job in (shown or {"jobs": []})["jobs"] for line in job["lines"]]

        wait_until(lambda: "I am a worker" in lines() or run.poll() is not None)
        assert run.poll() is None, run.stderr.read()
        (tmp_path / "go").touch()
        assert run.wait(60) == 0, run.stderr.read()
        assert page.get(base).ok()["status"] == "completed"
