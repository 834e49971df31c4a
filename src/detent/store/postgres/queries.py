"""The statements of the store, from `sql/queries.sql`, and the migrations beside it."""

import os
from functools import cache

_DIRECTORY = os.path.join(os.path.dirname(__file__), "sql")
_NAME = "-- name: "


@cache
def queries() -> dict[str, bytes]:
    """The statements by name."""
    statements: dict[str, bytes] = {}
    with open(os.path.join(_DIRECTORY, "queries.sql"), encoding="utf-8") as file:
        for part in file.read().split(_NAME)[1:]:
            name, _, text = part.partition("\n")
            lines = [line for line in text.splitlines() if not line.startswith("--")]
            statements[name.strip()] = "\n".join(lines).strip().encode()
    return statements


@cache
def migrations() -> tuple[tuple[int, str, bytes], ...]:
    """Number, name and statements of each migration, in order."""
    files = sorted(name for name in os.listdir(_DIRECTORY) if name[:4].isdigit())
    migrations_there = []
    for name in files:
        with open(os.path.join(_DIRECTORY, name), "rb") as file:
            migrations_there.append((int(name[:4]), name.removesuffix(".sql"), file.read()))
    return tuple(migrations_there)


def roles_sql() -> str:
    """The statements that give the run-time role its privileges, for `psql`."""
    with open(os.path.join(_DIRECTORY, "roles.sql"), encoding="utf-8") as file:
        return file.read()
