"""The dispatcher of a distributed run: its own machine first, then the board; what an earlier loop may still do."""

from concurrent.futures import Future

import pytest

from detent.config.settings import AgentSettings
from detent.errors import StoreFailed
from detent.run.agents import OneAgent, make_agent
from detent.run.context import RunContext, RunOptions
from detent.run.job import Job, JobOutcome
from detent.worker.board import Assignment, Board, Ended
from detent.worker.dispatcher import RemoteDispatcher


class BoardLink:
    """The way to a board in this process."""

    def __init__(self, loop: str) -> None:
        self.board, self._loop = Board(), loop
        self.board.attach(loop)

    def attach(self, deliver):
        self.deliver = deliver
        return list(self.board.open.values())

    def submit(self, job):
        assert self.board.submit(self._loop, job)

    def stop(self, job, why):
        assert self.board.stop(self._loop, job, why)

    def close(self):
        pass


class OneSlot:
    """A machine that does one job at a time."""

    def __init__(self) -> None:
        self.jobs: dict[str, Future[Ended]] = {}
        self.given: list[Assignment] = []
        self.stopped: list[str] = []

    def start(self, job):
        if self.jobs:
            return None
        self.given.append(job)
        self.jobs[job.id] = Future()
        return self.jobs[job.id]

    def end(self, **fields):
        name, future = self.jobs.popitem()
        future.set_result(Ended(id=name, outcome=JobOutcome.FINISHED, **fields))

    def stop(self, job, why):
        self.stopped.append(job)

    def close(self):
        pass


@pytest.fixture
def stage(project):
    session = project.start("feature", "t")
    agents = OneAgent("sh", make_agent(AgentSettings(adapter="command", command="true")))
    context = RunContext(project, session.id, "run-f-1", agents=agents, options=RunOptions(), tell=lambda event: None)
    return context, BoardLink("run-f-1"), OneSlot()


def dispatcher(stage, **more) -> RemoteDispatcher:
    context, link, here = stage
    made = RemoteDispatcher(context, link, lambda phase: (), here, **more)
    assert made.adopt() == []
    return made


def job(stage, phase) -> Job:
    return Job(stage[0], phase, version=1)


def test_the_machine_of_the_loop_does_a_job_and_the_board_gets_the_others(stage):
    made, (_, link, here) = dispatcher(stage), stage
    own, other = made.start(job(stage, "a")), made.start(job(stage, "b"))
    assert ([each.phase for each in here.given], [each.phase for each in link.board.open.values()]) == (["a"], ["b"])
    here.end(turns=2)
    link.deliver(Ended(id=next(iter(link.board.open)), outcome=JobOutcome.FAILED))
    assert (own.result(0).outcome, other.result(0).outcome) == (JobOutcome.FINISHED, JobOutcome.FAILED)
    assert stage[0].turns == 2
    made.start(job(stage, "c"))
    assert [each.phase for each in here.given] == ["a", "c"]


def test_a_job_is_stopped_where_it_is_done(stage):
    made, (_, link, here) = dispatcher(stage), stage
    own, other = job(stage, "a"), job(stage, "b")
    made.start(own)
    made.start(other)
    made.stop(own, "enough")
    made.stop(other, "enough")
    assert (here.stopped, list(link.board.stopping)) == ([here.given[0].id], list(link.board.open))


def test_an_error_that_another_try_can_end_reaches_the_loop(stage):
    future = dispatcher(stage).start(job(stage, "a"))
    next(iter(stage[2].jobs.values())).set_exception(StoreFailed("gone"))
    with pytest.raises(StoreFailed, match="gone"):
        future.result(0)


@pytest.mark.parametrize(("term", "took_over"), [(1, False), (2, False), (1, True)])
def test_the_first_job_of_a_phase_takes_over_from_an_earlier_loop(stage, term, took_over):
    stage[0].took_over = took_over
    made, here = dispatcher(stage, term=term), stage[2]
    for _ in range(2):
        made.start(job(stage, "a"))
        here.end()
    later = term > 1 or took_over
    assert [each.takes_over for each in here.given] == [later, False]
