"""A workplace: a tree of this machine and the project in it, where jobs of a session are done one after another."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from detent.core.run.run_event import RunEvent
from detent.engine.agents import environment as variables
from detent.engine.sandbox import sandboxes, why_off
from detent.process.marked import end_marked
from detent.run.context import RunContext
from detent.run.workspaces import opened_at
from detent.worker.board import Assignment, Ended
from detent.worker.host import Hosted
from detent.worker.prepared import prepare
from detent.worker.trees import JobTree, lent_tree

if TYPE_CHECKING:
    from detent.engine.project import Project

#: Makes the receiver of the events of a session.
Teller = Callable[["Project", str], Callable[[RunEvent], None]]


class Workplace:
    """Used by one thread, except `watch`."""

    def __init__(self, outer: "Project", session: str, teller: Teller) -> None:
        """`outer` is the project in the checkout of this machine; the caller closes it."""
        self._session, self._tell = session, teller(outer, session)
        self._prepared = prepare(outer, session, wait=False)
        with ExitStack() as stack:
            place = stack.enter_context(lent_tree(outer.place.root, session, outer.place.project))
            self._project = stack.enter_context(opened_at(outer, place))
            settings = self._project.settings.run.sandbox_settings()
            if why_off(settings) is None:
                self._project.sandbox = stack.enter_context(sandboxes(self._project, settings))
            self._files = JobTree(self._project, self._project.session(session))
            self._opened = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def host(self, assignment: Assignment, run: str) -> Hosted:
        """The job, not yet begun. `run` is the id of this try."""
        context = RunContext(
            self._project,
            self._session,
            run,
            agents=self._prepared.agents,
            options=self._prepared.options,
            tell=self._tell,
        )
        hosted = Hosted(self._project, context, assignment)
        hosted.job.files = self._files
        return hosted

    def do(self, hosted: Hosted, *, is_retry: bool = False) -> Ended:
        """Do the job in the files of the newest checkpoint."""
        try:
            self._files.make()
            return hosted.run(is_retry=is_retry)
        finally:
            # End processes that a gate, a step or an agent has left behind.
            end_marked(f"{variables.RUN}={hosted.job.context.run}")


def watch(hosted: Hosted) -> None:
    """Stop the job if it is to end; end the check of a gate whose job is stopping: it does not watch for it itself."""
    hosted.watch()
    job = hosted.job
    if job.is_stopping() and job.is_at_gate and job.claim is not None:
        end_marked(f"{variables.RUN}={job.context.run}", f"{variables.GATE}={job.claim.token}")
