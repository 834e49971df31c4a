"""Several people in one test: other accounts of this machine, which root can act for.

The real user of a process says whose it is, and the effective one what it may do. So a process of root with another
real user belongs to another account, and can still write the files of the test.
"""

import os
import pwd
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

_ROOT = 0
#: The account of the tests, and four others in the order of their numbers: `daemon` and so on.
ME = pwd.getpwuid(os.getuid()).pw_name
_OTHERS = sorted({entry.pw_uid: entry.pw_name for entry in pwd.getpwall() if entry.pw_uid != os.getuid()}.items())[:4]
ANN, BOB, CEM, DEE = [*(name for _, name in _OTHERS), *("nobody-1", "nobody-2", "nobody-3", "nobody-4")][:4]

needs_people = pytest.mark.skipif(os.getuid() != _ROOT, reason="only root can act for several accounts")


def becoming(name: str) -> Callable[[], None]:
    """Makes the calling process one of `name`'s; for the child of a fork too."""
    uid = pwd.getpwnam(name).pw_uid
    return lambda: os.setresuid(uid, _ROOT, _ROOT)


@contextmanager
def acting(name: str) -> Iterator[None]:
    """This process is one of `name`'s meanwhile."""
    before = os.getuid()
    becoming(name)()
    try:
        yield
    finally:
        os.setresuid(before, _ROOT, _ROOT)


def roles(**filled: str) -> str:
    """Settings in which each role is filled by one person."""
    return "\n".join(["[decisions.roles]", *(f'{role} = ["{name}"]' for role, name in filled.items()), ""])


#: The approvers of the canonical workflows, each filled by one person.
SEATS = {"architect": ANN, "security-engineer": BOB, "data-engineer": CEM, "developer": DEE, "qa-engineer": ME}
FILLED = roles(**SEATS)


def by_ada(text: str) -> str:
    """The text with the account of the tests called ada, as it is called in the environment of the tests."""
    return re.sub(rf"\b{re.escape(ME)}\b(, as ada\b)?", "ada", text)
