"""Sessions at a fixed time, told as a list of commands."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from detent.config.catalogue import Catalogue
from detent.config.settings import Settings
from detent.core.session.commands import Begin, Cancel, Command, Fail, Finish, Redo
from detent.core.session.decide import decide, decide_start
from detent.core.session.events import Commit, Event
from detent.core.session.evolve import evolve
from detent.core.session.session import Session
from detent.core.workflow.graph import Workflow, chain
from tests.support.values import NOON, commit, start

NOW = NOON + timedelta(hours=5)


class Story:
    """Each command happens so many minutes after the one before."""

    def __init__(self, graph: Workflow, task: str = "Add login with passkeys", **settings: Any) -> None:
        self.at = NOON
        self.commits: list[Commit] = []
        events = decide_start(start(graph, session="WFS-add-login", task=task, **settings))
        self.session: Session = evolve(None, self._commit(events, "ada"))

    def then(self, minutes: int, command: Command, *, by: str = "ada") -> "Story":
        self.at += timedelta(minutes=minutes)
        self.session = evolve(self.session, self._commit(decide(self.session, command), by))
        return self

    def _commit(self, events: Iterable[Event], by: str) -> Commit:
        self.commits.append(commit(len(self.commits) + 1, *events, at=self.at, by=by))
        return self.commits[-1]


def shipped(name: str) -> Workflow:
    return Catalogue(Settings()).workflow(name)


def half_way() -> Story:
    """A feature in its third phase, the second of them at its second attempt."""
    return (
        Story(shipped("feature"), number=5)
        .then(12, Finish(summary="Wrote down 12 requirements and the two questions that are still open for the owner"))
        .then(1, Begin())
        .then(30, Fail(error="the scan ran out of memory\nTraceback: …"))
        .then(5, Redo(phase="02-impact-analysis"))
        .then(47, Finish(summary="Touches 3 modules", artifacts=("docs/impact.md",)), by="bea")
        .then(2, Begin())
    )


def in_parallel() -> Story:
    """Two branches, one of them finished, in a graph that joins again."""
    return (
        Story(shipped("canonical"), task="把登录 page 🎉 made faster for everybody who waits for it on a slow line")
        .then(4, Finish(summary="Understood"))
        .then(0, Begin())
        .then(15, Finish(summary="计划 of the work 🗺️ in four steps"))
        .then(1, Begin(phase="data"))
        .then(1, Begin(phase="architecture"))
        .then(20, Finish(phase="architecture", summary="Two services and a queue"))
    )


def failed() -> Story:
    return Story(shipped("fix")).then(95, Fail(error="cannot be reproduced \x1b[31mon this machine\x1b[0m"))


def ended() -> Story:
    story = Story(chain("adhoc", [("Write the parser", "developer"), ("Check it", "")]))
    return story.then(90, Finish(summary="Parser")).then(1, Begin()).then(60 * 26, Finish(summary="Checked"))


def cancelled() -> Story:
    return half_way().then(10, Cancel(reason="not wanted any more"))
