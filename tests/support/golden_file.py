"""Comparing text with a file that people can look at; UPDATE_GOLDEN=1 writes the file instead."""

import os
from pathlib import Path


def check_golden(path: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", "utf-8")
    assert path.read_text("utf-8") == text + "\n"
