"""Runs under LangGraph's own Python: supersteps of a graph whose state is committed to SQLite before each next one.

Arguments: the database, a JSON file with the state. Each request on stdin runs `count` supersteps.
"""

import json
import os
import sqlite3
import sys
import time
from importlib.metadata import version
from typing import Any, TypedDict

os.environ["LANGSMITH_TRACING"] = "false"

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

CONFIG = {"configurable": {"thread_id": "bench"}}


class State(TypedDict):
    #: What does not change; LangGraph writes only the channels that a node returns to `writes`.
    session: dict[str, Any]
    #: What a transition changes: about as much as Detent's event says.
    phase: dict[str, Any]
    step: int
    until: int


def move(state: State) -> dict[str, Any]:
    step = state["step"] + 1
    return {"step": step, "phase": {**state["phase"], "attempt": step}}


def main(database: str, state_file: str) -> None:
    with open(state_file, encoding="utf-8") as file:
        start: dict[str, Any] = json.load(file)
    connection = sqlite3.connect(database, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("PRAGMA synchronous=FULL")
    builder = StateGraph(State)
    builder.add_node("move", move)
    builder.add_edge(START, "move")
    builder.add_conditional_edges("move", lambda state: "move" if state["step"] < state["until"] else END)
    graph = builder.compile(checkpointer=saver)
    for line in sys.stdin:
        count = json.loads(line)["count"]
        before = _bytes(connection, database)
        seconds = 0.0
        if count:
            begun = time.perf_counter()
            graph.invoke(
                {**start, "step": 0, "until": count},
                {**CONFIG, "recursion_limit": count + 5},
                durability="sync",
            )
            seconds = time.perf_counter() - begun
        answer = {
            "seconds": seconds,
            "bytes": _bytes(connection, database) - before,
            "mode": f"journal_mode={_pragma(connection, 'journal_mode')}, synchronous={_synchronous(connection)}",
            "versions": f"langgraph {version('langgraph')}, sqlite saver {version('langgraph-checkpoint-sqlite')}",
        }
        print(json.dumps(answer), flush=True)


def _bytes(connection: sqlite3.Connection, database: str) -> int:
    """Size of the database with its log folded in."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return sum(os.path.getsize(path) for path in (database, f"{database}-wal") if os.path.exists(path))


def _pragma(connection: sqlite3.Connection, name: str) -> str:
    return str(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _synchronous(connection: sqlite3.Connection) -> str:
    return ("OFF", "NORMAL", "FULL", "EXTRA")[int(_pragma(connection, "synchronous"))]


if __name__ == "__main__":
    main(*sys.argv[1:])
