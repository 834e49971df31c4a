"""Stores that are closed when the test is over: each holds descriptors."""

import hashlib
import os

from detent.objects import pack

_opened: list["Objects"] = []


class Objects(pack.Objects):
    def __init__(self, root: str, *, compress: bool = False) -> None:
        super().__init__(root, compress=compress)
        _opened.append(self)


def close_all() -> None:
    while _opened:
        _opened.pop().close()


OWNER = "0198c0de-0000-7000-8000-000000000001"


ABSENT = "ab" * 32


LARGE = os.urandom(5_000_000)


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def stored(objects: pack.Objects, *contents: bytes) -> list[str]:
    with objects.batch(OWNER) as batch:
        return [batch.add(data) for data in contents]


def packs(root: str) -> dict[str, int]:
    return {name: os.path.getsize(os.path.join(root, name)) for name in os.listdir(root) if name.endswith(".pack")}


def plain_files(root: str) -> list[str]:
    return sorted(
        os.path.relpath(os.path.join(place, name), root)
        for place, _, names in os.walk(root)
        for name in names
        if place != root
    )
