"""What Detent puts into one file and takes out again. Three kinds: hook settings, a block of text, a whole file."""

from collections.abc import Callable
from typing import NamedTuple


class Outcome(NamedTuple):
    """Content that the file should have; none if it should not be there. `note` is for the person who asked."""

    content: bytes | None
    note: str = ""


class Part(NamedTuple):
    path: str
    #: From the present content (none: no file) to the content with our part in it.
    merge: Callable[[bytes | None], Outcome]
    #: From the present content and the one before Detent came (none: no file, or unknown) to one without our part.
    strip: Callable[[bytes, bytes | None], Outcome]
