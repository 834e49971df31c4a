"""The store in Postgres: journals and shared documents in the database, views as files on each machine.

Only `engine/stores.py` imports this room, and only for a project whose `detent.toml` names a database.
"""
