"""The composition root: the only place that chooses and constructs a store."""

from detent.config import place as places
from detent.config.place import Place
from detent.store.files import FileStore
from detent.store.port import Store


def open_store(place: Place) -> Store:
    """The store of the project."""
    return FileStore(place.state)


# What follows is about this checkout, so it is in files wherever the journals are.


def checkout_store(root: str) -> Store:
    """The installed clients, and the failures of their hooks."""
    return FileStore(places.at_root(root).state)


def worktree_store(root: str) -> Store:
    """The records of the worktrees."""
    return FileStore(places.worktrees(root))
