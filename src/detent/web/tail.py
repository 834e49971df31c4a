"""Follows journals for the pages that look at them: one tailer a session, whatever the number of viewers.

A viewer names the version that it has. It gets every commit behind it once and in order, because versions are
contiguous and an answer says which one it is: after a restart of the server the page names the version it reached.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec

from detent.core.session.events import Commit
from detent.core.session.phase_name import Named, phase_name
from detent.engine.run_lease import live_lease
from detent.errors import DetentError
from detent.store.port import Cursor, Store, all_commits
from detent.web.projects import KnownProject, Projects
from detent.web.screens.log import commit_record
from detent.web.screens.runs import RunFollower, run_record
from detent.web.screens.session import runner_record

#: Pauses between two looks: at watched journals, at runs, at all other sessions; and between signs of life.
POLL_S, RUN_S, OTHERS_S, ALIVE_S = 0.1, 0.5, 1.0, 10.0
#: Commits that a tailer keeps for viewers that come a little later.
MAX_KEPT = 500
#: Messages that a viewer may be behind. A slower one is cut off and comes back with the version that it reached.
MAX_WAITING = 5_000
MAX_WATCHED = 32
_encode = msgspec.json.Encoder().encode


class Key(NamedTuple):
    project: str
    session: str

    def __str__(self) -> str:
        return f"{self.project}/{self.session}"


class Message(NamedTuple):
    """One event of a stream. Only commits have a position."""

    event: str
    key: Key
    version: int
    data: bytes

    def encode(self, *, alone: bool) -> bytes:
        """As server-sent event; `alone`: the stream is about one session, so that its version is the id."""
        named = b"id: %s\n" % (str(self.version) if alone else f"{self.key}@{self.version}").encode()
        return (named if self.version else b"") + b"event: %s\ndata: %s\n\n" % (self.event.encode(), self.data)


def _message(event: str, key: Key, data: dict[str, Any], version: int = 0) -> Message:
    return Message(event, key, version, _encode({"project": key.project, "session": key.session, **data}))


def _commit_message(key: Key, commit: Commit, named: Named) -> Message:
    return _message("commit", key, {"commit": commit_record(commit, named)}, commit.version)


class Viewer:
    """The queue of one stream."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Message | None] = asyncio.Queue()
        self.is_closed = False

    def put(self, message: Message) -> None:
        if not self.is_closed and self._waiting.qsize() >= MAX_WAITING:
            self.close()
        elif not self.is_closed:
            self._waiting.put_nowait(message)

    def close(self) -> None:
        self.is_closed = True
        self._waiting.put_nowait(None)

    async def next(self, timeout_s: float) -> "Message | TimeoutError | None":
        """The next message; None at the end."""
        try:
            return await asyncio.wait_for(self._waiting.get(), timeout_s)
        except TimeoutError as late:
            return late


class _Tail:
    """The tailer of one session. Its files are read by one thread at a time."""

    def __init__(self, key: Key, store: Store, end: Cursor, clock: Callable[[], Any], named: Named) -> None:
        """`end` is where it begins to follow; `named` names the phases of the session."""
        self.key, self.cursor, self._named = key, end, named
        self.viewers: list[Viewer] = []
        #: The last messages, contiguous up to the cursor.
        self.kept: deque[Message] = deque(maxlen=MAX_KEPT)
        self._store, self._clock = store, clock
        self._run = RunFollower(store.feed_reader(key.session))
        self._lease: dict[str, Any] | None = None
        self._next_run_s = 0.0

    def poll(self) -> list[Message]:
        """The news since the last call. A journal that cannot be followed ends with a reset."""
        fresh: list[Message] = []
        try:
            more = self._store.may_have_news(self.key.session, self.cursor.version)
            while more:
                commits, self.cursor, _, more = self._store.read(self.key.session, self.cursor)
                fresh += [_commit_message(self.key, commit, self._named) for commit in commits]
            return fresh + self._poll_run()
        except DetentError as error:
            return [*fresh, _message("reset", self.key, {"message": error.message})]

    def _poll_run(self) -> list[Message]:
        now_s = time.monotonic()
        if now_s < self._next_run_s:
            return []
        self._next_run_s = now_s + RUN_S
        lease = runner_record(live_lease(self._store, self.key.session, now=self._clock()))
        is_new = self._run.poll()
        if not is_new and lease == self._lease:
            return []
        self._lease = lease
        run = run_record(self._run.view) if lease is not None else None
        return [_message("run", self.key, {"run": run, "runner": lease})]

    def since(self, version: int) -> list[Message] | None:
        """The commits behind a version, if they are all kept; None if not."""
        if version == self.cursor.version:
            return []
        behind = [message for message in self.kept if message.version > version]
        return behind if behind and behind[0].version == version + 1 else None

    def read_since(self, version: int, until: int) -> list[Message]:
        """The same from the journal."""
        store = self._store.reopen()
        try:
            commits = (commit for commit in all_commits(store, self.key.session) if version < commit.version <= until)
            return [_commit_message(self.key, commit, self._named) for commit in commits]
        finally:
            store.close()

    def close(self) -> None:
        self._run.close()
        self._store.close()


class Tails:
    """All tailers of the server, and one task that drives them."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._tails: dict[Key, _Tail] = {}
        #: Viewers that want to hear of every session.
        self._others: list[Viewer] = []
        self._marks: dict[Key, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @property
    def count(self) -> int:
        """Tailers at work."""
        return len(self._tails)

    async def stop(self) -> None:
        """End every stream, so that the server can stop."""
        for viewer in {*self._others, *(viewer for tail in self._tails.values() for viewer in tail.viewers)}:
            viewer.close()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def stream(
        self, wanted: Iterable[tuple[KnownProject, str, int | None]], *, alone: bool
    ) -> AsyncIterator[bytes]:
        """The events of the wanted sessions, each behind its version; with all others, unless it is `alone`."""
        viewer = Viewer()
        try:
            for known, session, after in wanted:
                await self._join(viewer, known, session, after)
            if not alone:
                await self._join_others(viewer)
            self._start()
            yield b": alive\n\n"
            while True:
                message = await viewer.next(ALIVE_S)
                if message is None:
                    return
                yield b": alive\n\n" if isinstance(message, TimeoutError) else message.encode(alone=alone)
        finally:
            self._leave(viewer)

    async def _join(self, viewer: Viewer, known: KnownProject, session: str, after: int | None) -> None:
        key = Key(known.id, session)
        async with self._lock:
            tail = self._tails.get(key)
            if tail is None:
                tail = await asyncio.to_thread(self._open, known, session)
                self._tails[key] = tail
            # No message comes in between: the task puts them under the same lock.
            reached, version = tail.cursor.version, tail.cursor.version if after is None else after
            if version > reached:
                why = f"the journal of {session} ends at commit {reached}, and the page has seen commit {version}"
                viewer.put(_message("reset", key, {"message": why}))
                version = reached
            behind = tail.since(version)
            if behind is None:
                behind = await asyncio.to_thread(tail.read_since, version, reached)
            for message in behind:
                viewer.put(message)
            tail.viewers.append(viewer)

    async def _join_others(self, viewer: Viewer) -> None:
        """From here on the viewer hears of every change; what it read before may be out of date."""
        async with self._lock:
            if not self._others:
                await asyncio.to_thread(self._changed)
            self._others.append(viewer)
            viewer.put(Message("changed", Key("", ""), 0, _encode({"project": None, "session": None})))

    def _open(self, known: KnownProject, session: str) -> _Tail:
        with self._projects.reading(known) as project:
            journal = project.journal(project.session_id(session))
            named = partial(phase_name, journal.session())
            return _Tail(Key(known.id, session), project.store.reopen(), journal.end, project.clock, named)

    def _leave(self, viewer: Viewer) -> None:
        with suppress(ValueError):
            self._others.remove(viewer)
        for tail in self._tails.values():
            with suppress(ValueError):
                tail.viewers.remove(viewer)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        """Poll until the last viewer has left."""
        next_others_s = 0.0
        while self._others or self._tails:
            async with self._lock:
                await self._poll()
                if self._others and time.monotonic() >= next_others_s:
                    next_others_s = time.monotonic() + OTHERS_S
                    await self._poll_others()
            await asyncio.sleep(POLL_S)

    async def _poll_others(self) -> None:
        for key in await asyncio.to_thread(self._changed):
            for viewer in self._others:
                viewer.put(_message("changed", key, {}))

    async def _poll(self) -> None:
        left = [tail for tail in self._tails.values() if not tail.viewers]
        for tail in left:
            del self._tails[tail.key]
            tail.close()
        tails = list(self._tails.values())
        if not tails:
            return
        for tail, fresh in await asyncio.to_thread(lambda: [(each, each.poll()) for each in tails]):
            for message in fresh:
                if message.event == "commit":
                    tail.kept.append(message)
                for viewer in tail.viewers:
                    viewer.put(message)
                if message.event == "reset":
                    # The next look opens the journal anew.
                    for viewer in tail.viewers:
                        viewer.close()
                    self._tails.pop(tail.key, None)
                    self._projects.forget(tail.key.project)
                    tail.close()

    def _changed(self) -> list[Key]:
        """The sessions that have commits since the last look."""
        marks: dict[Key, int] = {}
        for known in self._projects.all():
            with suppress(DetentError), self._projects.reading(known) as project:
                for name, position in project.store.positions().items():
                    marks[Key(known.id, name)] = position
        before, self._marks = self._marks, marks
        return [key for key in {*marks, *before} if marks.get(key) != before.get(key)]
