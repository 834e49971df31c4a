"""Makes the tables of a database, and brings those of an older Detent up to date. A version table says which it has."""

from typing import TYPE_CHECKING, Any

from detent.errors import Invalid
from detent.store.postgres.pool import Pool
from detent.store.postgres.queries import migrations, queries

if TYPE_CHECKING:
    import psycopg

#: Of this schema's migrations alone; two that migrate at once wait for each other.
_LOCK = 7_244_811_001
_PREPARE = b"""
CREATE SCHEMA IF NOT EXISTS detent;
CREATE TABLE IF NOT EXISTS detent.migration (
    version     integer PRIMARY KEY,
    name        text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
"""


def migrate(pool: Pool) -> list[str]:
    """Apply the migrations that the database lacks, all or none; returns their names."""

    def apply(database: "psycopg.Cursor[Any]") -> list[str]:
        with database.connection.transaction():
            # Held by this transaction alone, so a dead peer frees it and a pooler does not mind.
            database.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            if not _has_schema(database):
                database.execute(_PREPARE)
            before = _version(database)
            applied = []
            for number, name, statements in migrations():
                if number > before:
                    database.execute(statements)
                    database.execute("INSERT INTO detent.migration (version, name) VALUES (%s, %s)", (number, name))
                    applied.append(name)
            return applied

    applied = pool.run(apply)
    # The tables may be those of a newer Detent.
    check_schema(pool)
    return applied


def has_schema(pool: Pool) -> bool:
    return pool.run(_has_schema)


def check_schema(pool: Pool) -> None:
    """Refuse a database without tables, with older ones, or with those of a newer Detent."""

    def look(database: "psycopg.Cursor[Any]") -> int | None:
        return _version(database) if _has_schema(database) else None

    version, newest = pool.run(look), migrations()[-1][0]
    migrating = "detent store migrate URL, with the role that owns the tables; docs/scale.md"
    if version is None:
        raise Invalid(f"{pool.name} has no tables of Detent", way_out=migrating)
    if version < newest:
        raise Invalid(
            f"{pool.name} has the tables of version {version}, and this Detent needs {newest}",
            way_out=f"{migrating}; then grant the privileges again: detent store roles",
        )
    if version > newest:
        raise Invalid(
            f"{pool.name} has the tables of version {version}, and this Detent knows {newest}",
            way_out="upgrade this Detent",
        )


def _has_schema(database: "psycopg.Cursor[Any]") -> bool:
    row = database.execute(queries()["has_schema"]).fetchone()
    return bool(row and row[0])


def _version(database: "psycopg.Cursor[Any]") -> int:
    row = database.execute(queries()["schema_version"]).fetchone()
    return int(row[0]) if row else 0
