"""Reading a project's files without leaving the project."""

import os

from detent.errors import Invalid
from detent.store import disk


def resolve(root: str, path: str) -> str:
    """Where `path` really is, relative to `root`. Links are followed, but not out of the project.

    A link to another place is often shared by several projects, and may be there to mislead: it is refused.
    """
    real = os.path.relpath(os.path.realpath(os.path.join(root, path)), root)
    if real == os.pardir or real.startswith(os.pardir + os.sep):
        raise Invalid(
            f"{path} is a link to {os.path.normpath(os.path.join(root, real))}, outside of {root}",
            way_out=f"nothing was changed; put a file of its own in the place of {path}",
        )
    return real


def read(root: str, path: str) -> bytes | None:
    full = os.path.join(root, path)
    with disk.failing_as("read", full):
        try:
            with open(full, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except (IsADirectoryError, NotADirectoryError) as error:
            raise Invalid(f"{full} is not where a file can be: {error.strerror}") from error


def missing_directories(root: str, path: str) -> list[str]:
    """The directories above `path` that are not there, outermost first."""
    found: list[str] = []
    directory = os.path.dirname(path)
    while directory and not os.path.isdir(os.path.join(root, directory)):
        found.insert(0, directory)
        directory = os.path.dirname(directory)
    return found
