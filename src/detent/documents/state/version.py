"""The version of a state document: it counts writes, and a writer proves with it what it has read."""

from detent.documents.state.shape import Document, mapping, number


def version_of(doc: object) -> int | float | None:
    return number(mapping(doc).get("state_version"))


def next_version(disk: object) -> int:
    return max(0, int(version_of(disk) or 0)) + 1


def stamped(doc: Document, disk: object) -> Document:
    """The document as the next write after the one on disk, whatever version its author believed in."""
    return {**doc, "state_version": next_version(disk)}
