"""Runs cosmic-ray on the changed lines of a copy of the project.

The tool keeps its work in a database. Mutants of other lines, and those beyond the limit, are taken out of it before
they are run. The result is a report in the schema that `core/reports/mutants.py` reads.
"""

import json
import os
import shlex
import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing

import msgspec

from detent import process
from detent.core.reports.limits import ReportFile

REPORT = "mutants.json"
_SETTINGS, _DATABASE = "detent-mutants.toml", "detent-mutants.sqlite"
#: Seconds for listing the mutants, and for the tests on one mutant.
_LIST_S = 300.0
_ONE_S = 120.0
#: A mutant whose tests could not be started is not tried.
_STATUSES = {"SURVIVED": "Survived", "KILLED": "Killed"}
_TABLES = ("work_results", "mutation_specs", "work_items")

#: Runs a command in the copy, with a limit in seconds.
Run = Callable[[str, float], process.Ran]


def run_mutants(
    directory: str, command: str, lines: Mapping[str, Collection[int]], run: Run, *, most: int, minutes: float
) -> process.Ran:
    """Run the test command on mutants of these lines. The files in `directory` are changed by that."""
    with open(os.path.join(directory, _SETTINGS), "wb") as file:
        file.write(_settings(command, sorted(lines)))
    listed = run(f"cosmic-ray init {_SETTINGS} {_DATABASE}", _LIST_S)
    if listed.problem or listed.exit_code:
        return _failed(listed, "cosmic-ray could not list the mutants")
    try:
        left = _trim(directory, lines, most)
    except sqlite3.Error as error:
        return _failed(listed, f"the database of cosmic-ray cannot be read: {error}")
    if not left:
        return _reported(listed, directory)
    unchanged = run(f"cosmic-ray baseline {_SETTINGS}", _ONE_S + _LIST_S)
    if unchanged.problem or unchanged.exit_code:
        return _failed(unchanged, "the tests do not pass without a mutant")
    ran = run(f"cosmic-ray exec {_SETTINGS} {_DATABASE}", minutes * 60)
    return _reported(ran, directory)


def _failed(ran: process.Ran, why: str) -> process.Ran:
    return msgspec.structs.replace(ran, problem=f"{why}: {ran.problem}" if ran.problem else why)


def _settings(command: str, files: list[str]) -> bytes:
    """The settings of cosmic-ray; a string of JSON is one of TOML too."""
    values = {
        "module-path": files,
        "timeout": _ONE_S,
        "excluded-modules": [],
        # The tool splits the command into words and starts the first.
        "test-command": shlex.join(["bash", "-c", command]),
    }
    rows = "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
    return f'[cosmic-ray]\n{rows}\n[cosmic-ray.distributor]\nname = "local"\n'.encode()


def _trim(directory: str, lines: Mapping[str, Collection[int]], most: int) -> int:
    """Keep the mutants of these lines, evenly spread if there are too many; how many there are."""
    with closing(_open(directory)) as database, database:
        rows = database.execute(
            "SELECT job_id, module_path, start_pos_row, end_pos_row FROM mutation_specs"
            " ORDER BY module_path, start_pos_row, start_pos_col, operator_name, occurrence"
        ).fetchall()
        chosen = [job for job, path, first, last in rows if not _others(lines, path, first, last)]
        if len(chosen) > most:
            chosen = [chosen[index * len(chosen) // most] for index in range(most)]
        keep = set(chosen)
        others = [(job,) for job, *_ in rows if job not in keep]
        for table in _TABLES:
            database.executemany(f"DELETE FROM {table} WHERE job_id = ?", others)  # noqa: S608 - a fixed name
    return len(keep)


def _others(lines: Mapping[str, Collection[int]], path: str, first: int, last: int) -> bool:
    wanted = lines.get(path, ())
    return not any(first <= line <= last for line in wanted)


def _reported(ran: process.Ran, directory: str) -> process.Ran:
    files: dict[str, dict[str, list[object]]] = {}
    try:
        with closing(_open(directory)) as database:
            rows = database.execute(
                "SELECT m.module_path, m.operator_name, m.occurrence, m.start_pos_row, m.end_pos_row, r.test_outcome"
                " FROM mutation_specs m LEFT JOIN work_results r ON r.job_id = m.job_id"
                " ORDER BY m.module_path, m.start_pos_row, m.start_pos_col, m.operator_name, m.occurrence"
            ).fetchall()
    except sqlite3.Error as error:
        return _failed(ran, f"the database of cosmic-ray cannot be read: {error}")
    for path, operator, occurrence, first, last, outcome in rows:
        mutant = {
            "id": str(occurrence),
            "mutatorName": str(operator),
            "location": {"start": {"line": first}, "end": {"line": last}},
            "status": _STATUSES.get(str(outcome).upper(), "Pending"),
        }
        files.setdefault(str(path), {"mutants": []})["mutants"].append(mutant)
    report = ReportFile(REPORT, REPORT, msgspec.json.encode({"files": files}))
    # That the time was over is no failure: the mutants that were not tried are counted.
    return msgspec.structs.replace(ran, exit_code=0, problem=None, files=(report,), unread={})


def _open(directory: str) -> sqlite3.Connection:
    database = sqlite3.connect(os.path.join(directory, _DATABASE))
    # The project's tool made it, so nothing in its schema is trusted.
    database.execute("PRAGMA trusted_schema = OFF")
    return database
