"""The composition root: the only place that chooses and constructs a store."""

import os

from detent.config import place as places
from detent.config.place import Place
from detent.store.files import FileStore
from detent.store.port import Store
from detent.store.second_copy import Registration, SecondCopies
from detent.store.state_home import lost_sessions, registered_roots, state_home


def open_store(place: Place) -> Store:
    """The store of the project, with second copies of its journals in the user's state directory."""
    state = places.at_root(place.root).state
    registration = Registration(_home(), place.root, state)
    return FileStore(place.state, SecondCopies(registration, os.path.relpath(place.state, state).removeprefix(".")))


def lost_project(start: str, below: str = "") -> tuple[str, list[str]] | None:
    """The nearest project around `start` whose whole state is gone, and its sessions; only `below` that directory."""
    directory, home = os.path.realpath(start), _home()
    while home and directory != below:
        if sessions := lost_sessions(home, directory, places.at_root(directory).state):
            return directory, sessions
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return None


def project_roots() -> list[str]:
    """The roots of the projects that this user has worked on and that are still there."""
    return [root for root in registered_roots(_home()) if os.path.isdir(places.at_root(root).state)]


def user_state() -> str:
    """Detent's directory in the user's state; empty if the environment names none."""
    return _home()


def _home() -> str:
    return state_home(os.environ.get("XDG_STATE_HOME", ""), os.environ.get("HOME", ""))


# What follows is about this checkout, so it is in files wherever the journals are.


def checkout_store(root: str) -> Store:
    """The installed clients, and the failures of their hooks."""
    return FileStore(places.at_root(root).state)


def scratch_store(directory: str) -> Store:
    """A store for the time of one command, in a temporary directory that the caller removes."""
    return FileStore(directory)


def worktree_store(root: str) -> Store:
    """The records of the worktrees."""
    return FileStore(places.worktrees(root))
