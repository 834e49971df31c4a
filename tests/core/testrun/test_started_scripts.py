"""The scripts that a test command starts are found by reading, however the command names them."""

import pytest

from detent.core.testrun.started_scripts import MAX_SCRIPTS, started_scripts

FILES = {
    "run.sh": "pytest -q\n",
    "ci/all": '#!/bin/sh\nset -e\n./ci/unit.sh\nbash "$(dirname "$0")/slow.sh"\n',
    "ci/unit.sh": "python tools/runtests.py\n",
    "ci/slow.sh": ". ci/env\n",
    "ci/env": "export A=1\n",
    "tools/runtests.py": "import os\nos.system('sh run.sh')\n",
    "Makefile": "include mk/tests.mk\n\ntest:\n\t@echo testing\n\t-sh ci/slow.sh\n",
    "mk/tests.mk": "unit:\n\t./ci/unit.sh\n",
    "package.json": '{"scripts": {"test": "node ci/test.js", "build": "tsc"}}',
    "ci/test.js": "",
    "src/app.py": "",
    "docs/run.sh": "",
}


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("sh run.sh", "run.sh"),
        ("./run.sh -v", "run.sh"),
        ("CI=1 timeout 60 bash -eu ./run.sh", "run.sh"),
        ("cd . && source run.sh", "run.sh"),
        ("python3.11 -X dev tools/../tools/runtests.py", ""),
        ("python tools/runtests.py all", "tools/runtests.py"),
        ("sh ci/all", "ci/all ci/unit.sh ci/slow.sh ci/env tools/runtests.py"),
        ("make -j2 test", "mk/tests.mk ci/slow.sh ci/unit.sh ci/env tools/runtests.py"),
        ("npm test", "ci/test.js"),
        ("python -m pytest src/app.py", ""),
        ("python -m doctest src/app.py", ""),
        ("node --test ci/test.js", ""),
        ("sh -c 'python tools/runtests.py'", "tools/runtests.py"),
        ("pytest run.sh", ""),
        ("sh missing.sh", ""),
    ],
)
def test_the_scripts_of_a_command(command, found):
    assert started_scripts([command], FILES, FILES.get) == set(found.split())


def test_scripts_that_start_each_other_end():
    files = {"a.sh": "sh b.sh", "b.sh": "sh a.sh"}

    assert started_scripts(["sh a.sh"], files, files.get) == {"a.sh", "b.sh"}


def test_a_long_chain_is_not_followed_for_ever():
    files = {f"{number}.sh": f"sh {number + 1}.sh" for number in range(3 * MAX_SCRIPTS)}

    assert len(started_scripts(["sh 0.sh"], files, files.get)) == MAX_SCRIPTS


@pytest.mark.parametrize("text", ["{", "[]", '{"scripts": []}', '{"scripts": {"test": 1}}', "[" * 100_000])
def test_a_damaged_recipe_names_no_script(text):
    assert started_scripts(["npm test"], {"package.json": text}, lambda _: text) == set()
