"""The state of a run, folded from its feed."""

from typing import Any

import msgspec

from detent.core.run.run_view import RunView, fold
from detent.engine.project import Project
from detent.run.feed import FeedEvents
from detent.store.port import FeedReader


def run_view(project: Project, session: str) -> RunView | None:
    """The run as its feed tells it; None without a feed."""
    follower = RunFollower(project.store.feed_reader(session))
    try:
        follower.poll()
        return follower.view
    finally:
        follower.close()


class RunFollower:
    """Follows a feed: each poll folds what is new."""

    def __init__(self, reader: FeedReader) -> None:
        self._events = FeedEvents(reader)
        self._view = RunView()
        self._is_begun = False

    @property
    def view(self) -> RunView | None:
        return self._view if self._is_begun else None

    def poll(self) -> bool:
        """Whether something is new."""
        before = self._view
        for event in self._events.read():
            self._view, self._is_begun = fold(self._view, event), True
        return self._view is not before

    def close(self) -> None:
        self._events.close()


def run_record(view: RunView | None) -> dict[str, Any] | None:
    if view is None:
        return None
    ended = view.ended
    return {
        "run": view.run,
        "started_at": view.started_at,
        "parallel": view.parallel,
        "ended": {"end": ended.end, "said": ended.said, "at": ended.at} if ended is not None else None,
        "jobs": [
            {
                **msgspec.structs.asdict(job),
                "tool": {"tool": job.tool.tool, "input": job.tool.input} if job.tool is not None else None,
                "tokens": msgspec.to_builtins(job.tokens),
            }
            for job in view.jobs
        ],
    }
