"""The projects of a database: each has journals and documents of its own."""

from detent.store.postgres.pool import Pool
from detent.store.postgres.queries import queries
from detent.store.state_home import new_id


def add_project(pool: Pool, name: str) -> bool:
    """Add the project; False if the database has it already."""
    values = {"name": name, "public_id": new_id()}
    return pool.run(lambda database: database.execute(queries()["add_project"], values).rowcount == 1)
