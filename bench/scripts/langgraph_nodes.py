"""Runs under LangGraph's own Python: a chain of nodes, each committed to SQLite before the next one begins.

Arguments: the database, how many nodes. Each request on stdin runs the chain once, in a new thread of its own.
"""

import json
import os
import sqlite3
import sys
import time
from importlib.metadata import version
from typing import TypedDict

os.environ["LANGSMITH_TRACING"] = "false"

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    done: int


def work(state: State) -> State:
    return {"done": state["done"] + 1}


def main(database: str, nodes: str) -> None:
    count = int(nodes)
    connection = sqlite3.connect(database, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    builder = StateGraph(State)
    names = [f"node-{number}" for number in range(count)]
    for name in names:
        builder.add_node(name, work)
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    graph = builder.compile(checkpointer=saver)
    for number, _ in enumerate(sys.stdin):
        thread = f"run-{number}"
        begun = time.perf_counter()
        came = graph.invoke(
            {"done": 0},
            {"configurable": {"thread_id": thread}, "recursion_limit": count + 5},
            durability="sync",
        )
        seconds = time.perf_counter() - begun
        # A run takes up 80 MB; the next one finds the room again.
        saver.delete_thread(thread)
        if came["done"] != count:
            sys.exit(f"{came['done']} of {count} nodes were run")
        answer = {
            "seconds": seconds,
            "mode": _mode(connection),
            "versions": f"langgraph {version('langgraph')}, sqlite saver {version('langgraph-checkpoint-sqlite')}",
        }
        print(json.dumps(answer), flush=True)


def _mode(connection: sqlite3.Connection) -> str:
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    synchronous = ("OFF", "NORMAL", "FULL", "EXTRA")[connection.execute("PRAGMA synchronous").fetchone()[0]]
    return f"journal_mode={journal}, synchronous={synchronous}"


if __name__ == "__main__":
    main(*sys.argv[1:])
