"""A file that is all ours. Its last line is a seal over the rest: as long as it holds, nobody has edited the file.

So a file of ours is recognised in a fresh clone too, where nothing else tells; and one that a person has made their own
is never overwritten or removed.
"""

import hashlib
import re

from detent.clients.installing.part import Outcome

_SEAL = re.compile(rb"^(?:<!-- |# )detent:file ([0-9a-f]{16})(?: -->)?\n\Z", re.MULTILINE)


def sealed(text: str, *, comment: tuple[str, str] = ("<!-- ", " -->")) -> bytes:
    body = text.encode()
    return body + f"{comment[0]}detent:file {_digest(body)}{comment[1]}\n".encode()


def is_sealed(content: bytes) -> bool:
    seal = _SEAL.search(content)
    return seal is not None and seal.group(1).decode() == _digest(content[: seal.start()])


def merge(current: bytes | None, *, name: str, content: bytes) -> Outcome:
    if current is None or is_sealed(current):
        return Outcome(content)
    return Outcome(current, f"{name} is somebody's own and was left as it is")


def strip(current: bytes, _original: bytes | None, *, name: str) -> Outcome:
    if is_sealed(current):
        return Outcome(None)
    return Outcome(current, f"{name} was edited and is kept" if _SEAL.search(current) else "")


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]
