"""A process that has a session open and works on its tasks.

Argument: the directory. A request on stdin is one of: `count`, start and do so many tasks, then write the documents,
answered by the seconds that each took; `start`, start one and write its documents, answered by its id and claim.
"""

import json
import sys
import time
from typing import Any

from detent.engine.project import Project, open_project


def main(directory: str) -> None:
    with open_project(directory, actor="bench") as project:
        for line in sys.stdin:
            print(json.dumps(_answer(project, json.loads(line))), flush=True)


def _answer(project: Project, request: dict[str, Any]) -> dict[str, Any]:
    tasks = project.session().tasks
    if "start" in request:
        claimed = tasks.start()
        project.flush()
        return {"task": claimed.task, "claim": claimed.fence}
    started, done = [], []
    for _ in range(request["count"]):
        begun = time.perf_counter()
        claimed = tasks.start()
        between = time.perf_counter()
        tasks.done(claimed.task, fence=claimed.fence)
        started.append(between - begun)
        done.append(time.perf_counter() - between)
    begun = time.perf_counter()
    project.flush()
    return {"start": started, "done": done, "documents": time.perf_counter() - begun}


if __name__ == "__main__":
    main(*sys.argv[1:])
