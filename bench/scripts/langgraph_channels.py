"""Runs under LangGraph's own Python: a graph whose every superstep changes one kilobyte of one of its channels.

Arguments: the database, a JSON file with the texts of the channels and where the kilobyte lies in each of them. Each
request on stdin runs `count` supersteps; the answer is what the database then takes up.
"""

import hashlib
import json
import os
import sqlite3
import sys
from typing import Any, TypedDict

os.environ["LANGSMITH_TRACING"] = "false"

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

CONFIG = {"configurable": {"thread_id": "bench"}}


def kilobyte(seed: str) -> str:
    return "".join(hashlib.sha256(f"{seed} {n}".encode()).hexdigest() for n in range(16))[:1_000]


def main(database: str, state_file: str) -> None:
    with open(state_file, encoding="utf-8") as file:
        start: dict[str, Any] = json.load(file)
    names, at = sorted(start["texts"]), start["at"]
    state = TypedDict("state", {"step": int, "until": int, **dict.fromkeys(names, str)})

    def change(now: dict[str, Any]) -> dict[str, Any]:
        name, new = names[now["step"] % len(names)], kilobyte(f"step {now['step']}")
        return {"step": now["step"] + 1, name: now[name][:at] + new + now[name][at + len(new) :]}

    connection = sqlite3.connect(database, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    builder = StateGraph(state)
    builder.add_node("change", change)
    builder.add_edge(START, "change")
    builder.add_conditional_edges("change", lambda now: "change" if now["step"] < now["until"] else END)
    graph = builder.compile(checkpointer=saver)
    for line in sys.stdin:
        count = json.loads(line)["count"]
        graph.invoke(
            {**start["texts"], "step": 0, "until": count},
            {**CONFIG, "recursion_limit": count + 5},
            durability="sync",
        )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        print(json.dumps({"bytes": os.path.getsize(database)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
