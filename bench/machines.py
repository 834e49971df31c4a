"""Work on several machines: files there and back, phases on workers against threads, takeovers, many sessions.

Needs a Postgres and a Temporal, as `make test-machines` installs them.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.measure import Setting, interleave, say, seconds_each
from bench.table import Goal, Row, Section
from bench.tree import SETTLED_S, Repository, Tree
from detent.core.session.status import Status
from detent.store.memory import MemoryStore
from detent.worker.trees import JobTree, lent_tree
from tests.support import postgres_server, temporal_server
from tests.support.machines import bare_remote, machine

_FILES, _CHANGED = 2_000, 25
_THREE = '"a", "b", "c"'
_LIMIT_S = 1_800.0
#: An agent that returns at once.
_NOTHING = "echo done"
#: As in a project without settings.
_MANY_HEARTBEAT_S = 10.0


def travel(setting: Setting) -> Section:
    """A job's files there and back, against a commit, a push, a fetch and a reset of git."""
    directory = Path(setting.directory)
    where, store = bare_remote(directory / "remote.git"), MemoryStore()
    own = directory / "own"
    own.mkdir()
    tree = Tree(str(own), _FILES)
    project = machine(own, store, where)
    session = project.start("w", "travel")
    for name in ("one", "two"):
        (directory / name / ".workflow").mkdir(parents=True)
    trees = []
    for name in ("one", "two"):
        with lent_tree(str(directory / name), session.id, None) as place:
            there = machine(directory / name, store, where, place.base)
        handle = there.session(session.id)
        trees.append((JobTree(there, handle), handle, place.base))
        trees[-1][0].make()
    (sender, by_sender, base), (receiver, _, other) = trees
    tree.files = [path.replace(str(own), base) for path in tree.files]

    def ours() -> float:
        tree.change(_CHANGED)
        time.sleep(SETTLED_S)

        def there_and_back() -> None:
            check = sender.settle()
            by_sender.checkpoints.take("work", then=check)
            receiver.make()

        return seconds_each(there_and_back, 1)

    theirs = _Git(directory)
    pair = interleave(ours, theirs, rounds=setting.pick(7, 3))
    same = subprocess.run(["diff", "-r", "-x", ".git", base, other], check=False).returncode == 0
    return Section(
        name="travel",
        rows=(
            Row(
                what=f"files there and back, {_CHANGED} of {_FILES:,} : git push",
                unit="s",
                **pair._asdict(),
                failed="" if same else "the two trees differ",
            ),
        ),
        remarks=(
            "ours: a checkpoint of a job's tree, sent to a bare remote on this disk, and another tree made of it;",
            "theirs: git add, commit, push to a bare remote; fetch and reset --hard in another clone",
        ),
    )


class _Git:
    """The same with git alone."""

    def __init__(self, directory: Path) -> None:
        remote, self._own, self._other = directory / "git.git", directory / "git-own", directory / "git-other"
        subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
        self._own.mkdir()
        self._tree, repository = Tree(str(self._own), _FILES), Repository(str(self._own))
        repository.commit()
        self._git(self._own, "push", "-q", str(remote), "HEAD:main")
        self._git(directory, "clone", "-q", "-b", "main", str(remote), str(self._other))
        self._remote, self._repository = str(remote), repository

    def __call__(self) -> float:
        self._tree.change(_CHANGED)
        time.sleep(SETTLED_S)

        def there_and_back() -> None:
            self._repository.commit()
            self._git(self._own, "push", "-q", self._remote, "HEAD:main")
            self._git(self._other, "fetch", "-q", self._remote, "main")
            self._git(self._other, "reset", "-q", "--hard", "FETCH_HEAD")

        return seconds_each(there_and_back, 1)

    def _git(self, directory: Path, *arguments: str) -> None:
        subprocess.run(["git", "-C", str(directory), *arguments], check=True, capture_output=True)


def machines(setting: Setting) -> Section:
    if reason := temporal_server.missing() or postgres_server.missing():
        return Section(name="machines", rows=(Row(what="phases on workers", skipped=reason),), remarks=())
    return Section(
        name="machines",
        rows=(
            _three_phases(setting, "without work", _NOTHING, Goal(2.0)),
            _three_phases(setting, "with a file each", None, None),
            _takeover(setting),
            *_many_sessions(setting),
        ),
        remarks=(
            "three phases: detent run --on with a worker that is ready; detent run with threads and files;",
            "both are whole processes. A takeover is the time from kill -9 to the next attempt, heartbeat 2 s",
        ),
    )


def _three_phases(setting: Setting, what: str, command: str | None, goal: Goal | None) -> Row:
    """Three phases by one worker that is ready against threads and files; `command` replaces that of the agent."""
    from tests.support.worker_machines import cluster

    directory = Path(setting.directory, f"three-{what.rsplit(maxsplit=1)[-1]}")
    directory.mkdir()
    with cluster(directory, seconds=0, phases=_THREE, command=command) as world:
        world.machine("worker", has_links=False)
        local = directory / "local"
        world.checkout(local, store_port=world.postgres_port)
        text = (local / "detent.toml").read_text()
        (local / "detent.toml").write_text(text[text.index("[agents.sh]") :])
        count = iter(range(1_000_000))

        def run(root: Path, *more: str) -> float:
            argv = [sys.executable, "-m", "detent", "run", f"task {next(count)}", "--workflow", "w", "--yes", *more]
            env = world.env(root, "own")
            return seconds_each(lambda: subprocess.run(argv, cwd=root, env=env, check=True, capture_output=True), 1)

        say(f"3 phases {what} on a worker")
        pair = interleave(lambda: run(world.root, "--on", world.address), lambda: run(local), rounds=setting.pick(9, 3))
    return Row(what=f"3 phases {what} on a worker : on threads", unit="s", **pair._asdict(), goal=goal)


def _takeover(setting: Setting) -> Row:
    from tests.support.worker_machines import cluster, wait_until

    say("takeover after kill -9")
    directory = Path(setting.directory, "takeover")
    directory.mkdir()
    with cluster(directory) as world:
        victim = world.machine("victim")
        world.machine("other", slots=2)
        session = world.start_session()
        world.run()
        wait_until(victim.works_on, "the victim does nothing")
        before, since = victim.works_on(), time.time()
        victim.send(signal.SIGKILL)
        wait_until(lambda: world.retaken_at(session, before, since), "no worker took over")
        return Row(what="takeover after kill -9", unit="s", ours=world.retaken_at(session, before, since))


def _many_sessions(setting: Setting) -> list[Row]:
    """Sessions whose commands return at once: phases a second, and the CPU time of each part."""
    from detent.core.session.session import SessionStatus
    from detent.worker.address import parse_address
    from detent.worker.client import flow_id
    from detent.worker.given import NAME, Given
    from detent.worker.prepared import project_key
    from detent.worker.queues import loop_queue
    from detent.worker.temporal import Loop, connect, start_flow
    from tests.support import postgres
    from tests.support.worker_machines import cluster

    sessions, phases, workers = setting.pick(200, 8), 20, setting.pick(8, 2)
    directory = Path(setting.directory, "many")
    directory.mkdir()
    row = ", ".join(f'"p{number}"' for number in range(phases))
    with cluster(directory, phases=row, command=_NOTHING) as world, world.project as project, Loop() as loop:
        machines = [world.machine(f"m{number}", has_links=False) for number in range(workers)]
        parts = {
            "workers": [each.process.pid for each in machines if each.process is not None],
            "Temporal": [world.temporal.pid],
            "Postgres": [postgres.server().pid],
        }
        handles = []
        for number in range(sessions):
            handles.append(project.start("w", f"task {number}"))
            _progress(f"{number + 1} of {sessions} sessions started")
        address, key = parse_address(world.address), project_key(project)
        service = loop.call(connect(address))
        before = {part: sum(map(_cpu_s, pids)) for part, pids in parts.items()}
        begun = time.monotonic()
        for handle in handles:
            given = Given(project=key, session=handle.id, on=str(address), heartbeat_s=_MANY_HEARTBEAT_S, wait=False)
            loop.call(start_flow(service, address.namespace, NAME, flow_id(project, handle.id), given, loop_queue(key)))
        left = handles
        while left and time.monotonic() < begun + _LIMIT_S:
            time.sleep(1.0)
            left = [handle for handle in left if handle.state.status is not SessionStatus.COMPLETED]
            _progress(f"{len(left)} of {sessions} sessions left after {time.monotonic() - begun:.0f} s")
        seconds = time.monotonic() - begun
        used = {part: sum(map(_cpu_s, pids)) - before[part] for part, pids in parts.items()}
        done = sum(len(handle.state.with_status(Status.COMPLETED)) for handle in handles)
    return [
        Row(
            what=f"{sessions} sessions x {phases} phases, {workers} workers",
            unit="s",
            ours=seconds,
            failed="" if not left else f"{len(left)} sessions are not completed",
        ),
        Row(what="  phases a second", unit="/s", ours=done / seconds),
        *(Row(what=f"  CPU of {part} a phase", unit="ms", ours=used[part] / done * 1000) for part in parts),
    ]


def _progress(text: str) -> None:
    """One line that changes."""
    print(f"\r  {text}   ", end="", file=sys.stderr, flush=True)


def _cpu_s(pid: int) -> float:
    """CPU time of a process, of the children that it waited for, and of those that run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(_cpu_s(int(child)) for child in children)
