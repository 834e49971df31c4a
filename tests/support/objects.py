"""Stores that are closed when the test is over: each holds descriptors."""

import pytest

from detent.objects import pack

_opened = []


class Objects(pack.Objects):
    def __init__(self, root, *, compress=False):
        super().__init__(root, compress=compress)
        _opened.append(self)


def close_all():
    while _opened:
        _opened.pop().close()


@pytest.fixture(autouse=True)
def closed():
    yield
    close_all()
