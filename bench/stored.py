"""What 500 checkpoints of a state of 100 KB take up, 1 % of it changed for each, against LangGraph's SQLite saver."""

import hashlib
import json
import os
from typing import NamedTuple

from bench.checkpoint import start
from bench.measure import Setting, say
from bench.peers import LANGGRAPH, Unavailable, environment, running
from bench.table import Goal, Row, Section
from bench.workload import make_project

_GOAL = Goal(0.1)
_PARTS = 100
_PART_BYTES = 1_000


class State(NamedTuple):
    """Texts by name, and where in each of them the kilobyte lies that changes."""

    name: str
    texts: dict[str, str]
    at: int


def stored(setting: Setting) -> Section:
    count = setting.pick(500, 100)
    rows = []
    for state in (_in_parts(), _in_one_text()):
        say(f"{count} checkpoints of {state.name}")
        what = f"{count} checkpoints : LangGraph's, {state.name}"
        ours = _our_bytes(os.path.join(setting.directory, f"ours-{len(state.texts)}"), state, count)
        try:
            theirs = _their_bytes(os.path.join(setting.directory, f"theirs-{len(state.texts)}"), state, count)
        except Unavailable as reason:
            rows.append(Row(what=what, goal=_GOAL, skipped=f"LangGraph {reason}"))
            continue
        rows.append(Row(what=what, unit="B", ours=ours, theirs=theirs, ratio=ours / theirs, goal=_GOAL))
    return Section(
        name="stored",
        rows=tuple(rows),
        remarks=(
            "one kilobyte changed before each; a channel there is a file here; the first state is counted too;",
            "ours: objects, documents and caches under checkpoints/, and what the journal grew by;",
            "theirs: the database with its log folded in",
        ),
    )


def kilobyte(seed: str) -> str:
    """Text that does not repeat; LangGraph's script has the same."""
    return "".join(hashlib.sha256(f"{seed} {n}".encode()).hexdigest() for n in range(16))[:_PART_BYTES]


def _in_parts() -> State:
    return State("100 x 1 KB", {f"part-{n:03d}": kilobyte(f"part {n}") for n in range(_PARTS)}, at=0)


def _in_one_text() -> State:
    parts = {f"part-{n:03d}": kilobyte(f"part {n}") for n in range(_PARTS)}
    text = json.dumps(parts, indent=1)
    return State("one 100 KB text", {"state": text}, at=text.index(parts[f"part-{_PARTS // 2:03d}"]))


def _our_bytes(directory: str, state: State, count: int) -> int:
    with make_project(directory) as project:
        session = start(project)
        journal = os.path.join(project.place.state, session.id, "journal.jsonl")
        before = os.path.getsize(journal)
        names = sorted(state.texts)
        for name in names:
            with open(os.path.join(directory, f"{name}.txt"), "w", encoding="utf-8") as file:
                file.write(state.texts[name])
        for step in range(count):
            with open(os.path.join(directory, f"{names[step % len(names)]}.txt"), "r+", encoding="utf-8") as file:
                file.seek(state.at)
                file.write(kilobyte(f"step {step}"))
            session.checkpoints.take()
        project.flush()
        grown = os.path.getsize(journal) - before
        return grown + _size(os.path.join(project.place.state, "checkpoints"))


def _their_bytes(directory: str, state: State, count: int) -> int:
    os.makedirs(directory)
    state_file = os.path.join(directory, "state.json")
    with open(state_file, "w", encoding="utf-8") as file:
        json.dump({"texts": state.texts, "at": state.at}, file)
    python = environment("langgraph", LANGGRAPH)
    with running(python, "langgraph_channels.py", os.path.join(directory, "checkpoints.sqlite"), state_file) as peer:
        return int(peer.ask(count=count)["bytes"])


def _size(directory: str) -> int:
    return sum(os.lstat(os.path.join(place, name)).st_size for place, _, names in os.walk(directory) for name in names)
