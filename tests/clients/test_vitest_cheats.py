"""Ways to open a tests gate without tests that pass, with real Vitest. In every one of them `sub` is broken."""

import json
import os
import shutil

import pytest

from detent.core.gate.evidence import Verdict
from detent.engine.project import open_project
from detent.errors import GateClosed
from tests.clients import vitest
from tests.clients.client import ClientUnavailable, install
from tests.support.project import build_project, write

PHASE, GATE = "06-implementation", "tests"
COMMAND = "npm test"
CODE = "export const add = (a, b) => a + b\nexport const sub = (a, b) => a - b\n"
BROKEN = CODE.replace("a - b", "a + b + 1")
PACKAGE = {
    "name": "calc",
    "version": "1.0.0",
    "type": "module",
    "scripts": {"test": "vitest run", "build": "true"},
    "devDependencies": {"vitest": "*"},
}


def file_with_test(name, right):
    return (
        f'import {{ expect, test }} from "vitest"\nimport {{ {name} }} from "../calc.js"\n\n'
        f'test("{name}", () => {{ expect({name}(3, 2)).toBe({right}) }})\n'
    )


FILES = {
    "calc.js": CODE,
    "package.json": json.dumps(PACKAGE, indent=2) + "\n",
    "test/add.test.js": file_with_test("add", 5),
    "test/sub.test.js": file_with_test("sub", 1),
    ".gitignore": "node_modules\n",
}
SUB = "test/sub.test.js"
CONFIG = "export default {{ test: {{ {} }} }}\n"


def remove(root):
    (root / SUB).unlink()


def skip(root):
    write(root, SUB, FILES[SUB].replace("test(", "test.skip("))


def expect_failure(root):
    write(root, SUB, FILES[SUB].replace("test(", "test.fails("))


def weaken(root):
    write(root, SUB, FILES[SUB].replace("toBe(1)", "toBeDefined()"))


def replace_script(root):
    package = PACKAGE | {"scripts": {"test": "echo 'Tests  2 passed (2)'", "build": "true"}}
    write(root, "package.json", json.dumps(package))


def exclude(name):
    def act(root):
        write(root, name, CONFIG.format('exclude: ["**/sub.test.js", "**/node_modules/**"]'))

    return act


def mock(root):
    write(
        root, "setup.js", 'import { vi } from "vitest"\nvi.mock("./calc.js", () => ({ add: () => 5, sub: () => 1 }))\n'
    )
    write(root, "vitest.config.js", CONFIG.format('setupFiles: ["./setup.js"]'))


def run_one_test(root):
    write(root, SUB, FILES[SUB] + 'test.only("fine", () => {})\n')


CHEATS = {
    "the failing test is deleted": remove,
    "the failing test is skipped": skip,
    "the failing test is expected to fail": expect_failure,
    "the failing test asserts nothing": weaken,
    "only another test of the file runs": run_one_test,
    "the script prints what a runner prints": replace_script,
    "a new vitest.config.js leaves the test out": exclude("vitest.config.js"),
    "a new vite.config.js leaves the test out": exclude("vite.config.js"),
    "a new setup file mocks the code": mock,
}


@pytest.fixture(scope="session")
def modules():
    """node_modules with Vitest, installed once into the cache of the clients."""
    try:
        _, program = install(vitest)
    except ClientUnavailable as why:
        pytest.skip(str(why))
    return program.removesuffix("/vitest/vitest.mjs")


@pytest.fixture
def begun(modules, tmp_path, monkeypatch):
    """A project in which a session has just begun to implement."""
    monkeypatch.setenv("PATH", os.pathsep.join((os.path.dirname(shutil.which("npm") or ""), "/usr/bin", "/bin")))
    build_project(tmp_path, f'[run]\ntests = "{COMMAND}"\n', files=FILES)
    shutil.copytree(modules, tmp_path / "node_modules", symlinks=True)
    with open_project(tmp_path, actor="tester") as project:
        handle = project.start("fix", "mend it")
        handle.finish("traced")
        handle.begin()
        yield handle


def verdict(handle):
    handle.gates.run(GATE)
    return next(judged for judged in handle.gates.judgements(PHASE)[PHASE] if judged.gate == GATE)


def test_honest_work_passes(begun):
    judged = verdict(begun)

    assert judged.verdict is Verdict.PASS, judged.reason


def test_an_honest_run_of_broken_code_fails(begun, tmp_path):
    write(tmp_path, "calc.js", BROKEN)

    assert verdict(begun).verdict is Verdict.FAIL


@pytest.mark.parametrize("cheat", CHEATS)
@pytest.mark.parametrize("first", ["a whole run first", "no run before"])
def test_no_cheat_opens_the_gate(begun, tmp_path, cheat, first):
    if first == "a whole run first":
        assert verdict(begun).verdict is Verdict.PASS
    write(tmp_path, "calc.js", BROKEN)
    CHEATS[cheat](tmp_path)

    judged = verdict(begun)

    assert judged.verdict is not Verdict.PASS, judged.reason
    with pytest.raises(GateClosed):
        begun.finish("done")
