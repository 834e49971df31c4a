"""A transition against a superstep of LangGraph: how long it takes, and how much it writes, with a state of 20 KB."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from bench.measure import Setting, counted_calls, interleave, seconds_each
from bench.peers import LANGGRAPH, Peer, Unavailable, environment, running
from bench.table import Goal, Row, Section
from bench.transition import BATCH
from bench.workload import KB_20, Work, state_bytes
from detent.core.session.session import encode_session
from detent.engine.projections.write_behind import DELAY_S

_TIME_GOAL = Goal(0.25)
_BYTES_GOAL = Goal(0.02)


def superstep(setting: Setting) -> Section:
    work = Work.start(os.path.join(setting.directory, "superstep"), KB_20)
    with work.project:
        what = f"transition : LangGraph superstep, {_kilobytes(work)} state"
        try:
            with _langgraph(setting, work) as peer:
                ours, theirs = setting.pick(BATCH, 300), setting.pick(200, 50)
                pair = interleave(
                    lambda: seconds_each(lambda: work.move_and_flush(ours), ours),
                    lambda: float(peer.ask(count=theirs)["seconds"]) / theirs,
                    rounds=setting.pick(9, 3),
                )
                facts = peer.ask(count=0)
        except Unavailable as reason:
            return _skipped("superstep", what, _TIME_GOAL, reason)
    return Section(
        name="superstep",
        rows=(Row(what=what, unit="s", **pair._asdict(), goal=_TIME_GOAL),),
        remarks=(f'{facts["versions"]}: durability="sync", {facts["mode"]}',),
    )


def growth(setting: Setting) -> Section:
    work = Work.start(os.path.join(setting.directory, "growth"), KB_20)
    with work.project:
        what = f"bytes a transition : superstep, {_kilobytes(work)} state"
        count = setting.pick(3_000, 1_200)
        before, begun = os.path.getsize(work.journal), time.perf_counter()
        in_a_row = _written(work, count, at_once=count)
        line, seconds = (os.path.getsize(work.journal) - before) / count, time.perf_counter() - begun
        one_by_one = _written(work, 30, at_once=1)
        try:
            with _langgraph(setting, work) as peer:
                steps = setting.pick(300, 100)
                theirs = peer.ask(count=steps)["bytes"] / steps
        except Unavailable as reason:
            return _skipped("growth", what, _BYTES_GOAL, reason)
    return Section(
        name="growth",
        rows=(
            _bytes_row(what, in_a_row, theirs, _BYTES_GOAL),
            _bytes_row("  its line in the journal alone", line, theirs),
            _bytes_row("  with the documents after each, as one command", one_by_one, theirs),
        ),
        remarks=(
            f"ours: all bytes written, journal, snapshots and documents, in {count:,} transitions in {seconds:.1f} s;",
            f"documents are due every {DELAY_S:g} s, so a slower machine writes more of them for each transition.",
            "theirs: growth of the database with its log folded in",
        ),
    )


def _bytes_row(what: str, ours: float, theirs: float, goal: Goal | None = None) -> Row:
    return Row(what=what, unit="B", ours=ours, theirs=theirs, ratio=ours / theirs, goal=goal)


def _written(work: Work, count: int, *, at_once: int) -> float:
    with counted_calls() as calls:
        for _ in range(count // at_once):
            work.move_and_flush(at_once)
    return sum(calls.written) / count


@contextmanager
def _langgraph(setting: Setting, work: Work) -> Iterator[Peer]:
    """LangGraph with the same state: the session as a dictionary, and the phase that moves as a channel of its own."""
    session = msgspec.json.decode(encode_session(work.session.state))
    phase = session["phases"].pop(work.session.state.workflow.order[-2])
    state_file = os.path.join(work.directory, "state.json")
    with open(state_file, "wb") as file:
        file.write(msgspec.json.encode({"session": session, "phase": phase}))
    python = environment("langgraph", LANGGRAPH)
    database = os.path.join(work.directory, "checkpoints.sqlite")
    with running(python, "langgraph_supersteps.py", database, state_file) as peer:
        peer.ask(count=setting.pick(50, 10))
        yield peer


def _kilobytes(work: Work) -> str:
    return f"{state_bytes(work.session.state) / 1024:.1f} KB"


def _skipped(name: str, what: str, goal: Goal, reason: Unavailable) -> Section:
    return Section(name=name, rows=(Row(what=what, goal=goal, skipped=f"LangGraph {reason}"),))
