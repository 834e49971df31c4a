"""Figures that a test prints, whatever pytest captures."""

import sys

import pytest


@pytest.fixture
def report(capsys):
    def tell(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return tell
