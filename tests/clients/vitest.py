"""Vitest, a test runner; installed as the clients are."""

from pathlib import Path

NAME = "vitest"
PACKAGE = "vitest"
VERSION = "3.2.4"


def entry(prefix: Path) -> list[str]:
    return ["node", str(prefix / "node_modules/vitest/vitest.mjs")]
