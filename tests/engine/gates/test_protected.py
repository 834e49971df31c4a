"""Tests and the settings of their runner stay as they were when the session began, whatever is done to the files."""

import os
import subprocess
import sys

import pytest

from detent.core.gate.evidence import Result, Verdict
from detent.engine.gates.copy import Copied, project_copy
from detent.engine.gates.protected import MAX_DATA, MAX_DATA_FILE, Changes, ProtectedFiles
from detent.engine.gates.stored import is_intact
from detent.objects.universe import Moment, Scope, Universe
from tests.support.campaign import sampled
from tests.support.cheats import STAND_IN
from tests.support.gated import CODE, HAS_GIT, TEST, UNITTEST, WITHOUT_PLUGINS, calculator, started, verdicts
from tests.support.project import write

PYTEST = f"{sys.executable} -m pytest -q {WITHOUT_PLUGINS}"
GATE = f'{{ kind = "tests", command = "{PYTEST}" }}'
BROKEN = CODE.replace("+", "-")
SKIP_ALL = (
    "def pytest_collection_modifyitems(items):\n    items[:] = [item for item in items if 'easy' in item.nodeid]\n"
)
EASY = "def test_easy():\n    assert True\n"
PYPROJECT = '[project]\nname = "calc"\nversion = "1.0"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n'


def protected_result(handle):
    protected = handle.state.phases["work"].gates["tests"].receipt.protected
    return protected.result if protected is not None else None


@pytest.fixture
def work(tmp_path):
    """A project with a test that the code does not pass, and one that it does."""
    calculator(tmp_path, code=BROKEN)
    write(tmp_path, "tests/test_easy.py", EASY)
    write(tmp_path, "pyproject.toml", PYPROJECT)
    project, handle = started(tmp_path, GATE)
    with project:
        yield tmp_path, handle


READS = "import pathlib\n\nfrom calc import add\n\n\ndef test_data():\n    data = pathlib.Path('{}').read_text()\n"
READS += "    assert add(2, 3) == int(data)\n"


@pytest.mark.parametrize("path", ["tests/data/sum.txt", "testdata/sum.golden"])
def test_data_that_tests_read_is_protected_as_they_are(tmp_path, path):
    write(tmp_path, "calc.py", CODE)
    write(tmp_path, "tests/test_data.py", READS.format(path))
    write(tmp_path, path, "5")
    project, handle = started(tmp_path, GATE)
    with project:
        write(tmp_path, "calc.py", BROKEN)
        write(tmp_path, path, "-1")
        handle.gates.run("tests")
        assert protected_result(handle) is Result.FAILED
        assert verdicts(handle)["tests"] is Verdict.FAIL

        write(tmp_path, "calc.py", CODE)
        write(tmp_path, path, "5")
        write(tmp_path, "tests/data/new.txt", "data of a new test")
        handle.gates.run("tests")
        assert protected_result(handle) is None
        assert verdicts(handle)["tests"] is Verdict.PASS


def test_data_is_kept_up_to_its_limits_and_is_no_test(tmp_path, tmp_path_factory):
    write(tmp_path, "tests/test_a.py", EASY)
    names = [f"{number:02}.txt" for number in range(MAX_DATA // MAX_DATA_FILE + 1)]
    for name in names:
        write(tmp_path, f"tests/{name}", "x" * MAX_DATA_FILE)
    for path in ("tests/large.txt", "tests/.cache/a.txt", "data/a.txt"):
        write(tmp_path, path, "x" * (MAX_DATA_FILE + 1 if "large" in path else 1))

    files = ProtectedFiles.take(moment(tmp_path, tmp_path_factory.mktemp("cache")), ()).files

    assert sorted(files) == [*(f"tests/{name}" for name in names[:-1]), "tests/test_a.py"]
    assert ProtectedFiles(files).has_tests()
    assert not ProtectedFiles({path: files[path] for path in files if path.endswith(".txt")}).has_tests()


CHEATS = {
    "new conftest of the tests": {"tests/conftest.py": SKIP_ALL},
    "new conftest at the top": {"conftest.py": SKIP_ALL},
    "new pytest.ini": {"pytest.ini": "[pytest]\naddopts = -k easy\n"},
    "new .pytest.ini": {".pytest.ini": "[pytest]\naddopts = -k easy\n"},
    "new tox.ini": {"tox.ini": "[pytest]\naddopts = -k easy\n", "pyproject.toml": '[project]\nname = "calc"\n'},
    "new setup.cfg": {"setup.cfg": "[tool:pytest]\naddopts = -k easy\n", "pyproject.toml": '[project]\nname = "c"\n'},
    "changed pyproject.toml": {"pyproject.toml": PYPROJECT.replace('"-q"', '"-k easy"')},
    "weaker test": {"tests/test_calc.py": TEST.replace("5)", "-1)")},
    "a conftest that git ignores": {".gitignore": "conftest.py\n", "conftest.py": SKIP_ALL},
    "tests that git ignores": {".gitignore": "tests/\n", "tests/test_calc.py": EASY},
    "a module in place of pytest": {"pytest.py": "print('2 passed in 0.1s')\n"},
    "a module in place of the standard library's": {"shlex.py": STAND_IN},
    "an ignored package in place of the standard library's": {
        ".gitignore": "shlex/\n",
        "shlex/__init__.py": STAND_IN,
    },
    "an ignored package in place of pytest": {
        ".gitignore": "pytest/\n",
        "pytest/__init__.py": "",
        "pytest/__main__.py": "print('2 passed in 0.1s')\n",
    },
}


@pytest.mark.parametrize("how", sampled(list(CHEATS), 6, "beside the code"))
def test_what_an_agent_writes_beside_the_code_does_not_make_the_tests_pass(work, how):
    root, handle = work
    for path, text in CHEATS[how].items():
        write(root, path, text)

    handle.gates.run("tests")

    receipt = handle.state.phases["work"].gates["tests"].receipt
    if "in place of pytest" in how:
        # It wrote no report, so it did not pass in the first place.
        assert (receipt.result, receipt.protected) == (Result.UNCLEAR, None)
    else:
        assert (receipt.result, receipt.protected.result) == (Result.FAILED, Result.FAILED)
    assert verdicts(handle)["tests"] in (Verdict.FAIL, Verdict.PENDING)


def test_a_module_that_had_the_name_of_a_standard_one_before_may_change(tmp_path):
    calculator(tmp_path)
    write(tmp_path, "turtle.py", "")
    project, handle = started(tmp_path, GATE)
    with project:
        write(tmp_path, "turtle.py", "LENGTH = 3\n")

        handle.gates.run("tests")

        receipt = handle.state.phases["work"].gates["tests"].receipt
        assert (receipt.result, receipt.protected) == (Result.PASSED, None)


def test_a_deleted_test_runs_all_the_same(work):
    root, handle = work
    (root / "tests/test_calc.py").unlink()

    handle.gates.run("tests")

    assert protected_result(handle) is Result.FAILED
    assert not (root / "tests/test_calc.py").exists()


def test_a_test_that_is_put_back_by_its_own_run_runs_as_it_was(tmp_path):
    calculator(tmp_path, code=BROKEN)
    write(tmp_path, "tests/test_easy.py", EASY)
    project, handle = started(tmp_path, GATE.replace(" }", ', inputs = ["calc.py"] }'))
    with project:
        puts_back = f"from pathlib import Path\n\n\ndef test_it():\n    Path(__file__).write_text({TEST!r})\n"
        write(tmp_path, "tests/test_calc.py", puts_back)

        handle.gates.run("tests")

        assert (tmp_path / "tests/test_calc.py").read_text() == TEST
        assert (protected_result(handle), verdicts(handle)) == (Result.FAILED, {"tests": Verdict.FAIL})


def test_a_directory_of_tests_that_became_a_link_is_put_back_without_touching_its_target(work):
    root, handle = work
    (root / "tests").rename(root / "old")
    write(root, "other/test_easy.py", EASY)
    (root / "tests").symlink_to("other")
    for path in (root / "old").glob("*.py"):
        path.unlink()

    handle.gates.run("tests")

    assert protected_result(handle) is Result.FAILED
    assert [path.name for path in (root / "other").glob("*.py")] == ["test_easy.py"]


def test_without_a_change_of_the_tests_one_run_counts_for_both(work):
    root, handle = work
    write(root, "calc.py", CODE)
    write(root, "README.md", "# Calc\n")
    write(root, "pyproject.toml", PYPROJECT.replace("1.0", "2.0") + "\n[tool.ruff]\nline-length = 100\n")

    handle.gates.run("tests")

    assert (protected_result(handle), verdicts(handle)) == (None, {"tests": Verdict.PASS})


def test_an_honest_new_test_passes_with_the_old_ones(work):
    root, handle = work
    write(root, "calc.py", CODE)
    write(root, "tests/test_more.py", "from calc import add\n\n\ndef test_more():\n    assert add(1, 1) == 2\n")
    write(root, "pyproject.toml", PYPROJECT.replace('"-q"', '"-q --strict-markers"').replace("1.0", "2.0"))

    handle.gates.run("tests")

    assert (protected_result(handle), verdicts(handle)) == (Result.PASSED, {"tests": Verdict.PASS})
    assert (root / "tests/test_more.py").exists()


def test_a_project_without_tests_gets_its_first_ones(tmp_path):
    write(tmp_path, "calc.py", CODE)
    write(tmp_path, "pyproject.toml", PYPROJECT)
    project, handle = started(tmp_path, GATE)
    with project:
        write(tmp_path, "tests/conftest.py", "")
        write(tmp_path, "tests/test_easy.py", EASY)
        handle.gates.run("tests")

        assert (protected_result(handle), verdicts(handle)) == (None, {"tests": Verdict.PASS})


def test_a_part_that_cannot_be_separated_closes_the_gate_and_is_named(work):
    root, handle = work
    write(root, "calc.py", CODE)
    write(root, "pyproject.toml", 'tool = { pytest = { ini_options = { addopts = "-k easy" } } }\n')

    handle.gates.run("tests")

    assert (protected_result(handle), verdicts(handle)) == (Result.ERROR, {"tests": Verdict.FAIL})


# The files


def moment(root, cache):
    return Moment(Universe(str(cache), Scope(str(root), exclude=("node_modules/", ".venv/", "__pycache__/"))))


@pytest.fixture
def files(tmp_path):
    root = tmp_path / "project"
    calculator(root)
    write(root, "pyproject.toml", PYPROJECT)
    write(root, ".gitignore", ".npmrc\n")
    write(root, ".npmrc", "//registry/:_authToken=abc\n")
    return root, ProtectedFiles.take(moment(root, tmp_path / "a"), ()), tmp_path


def test_the_files_of_the_start_are_kept_with_their_contents(files):
    _, kept, _ = files

    assert {path: file.content is not None for path, file in kept.files.items()} == {
        ".npmrc": False,
        "pyproject.toml": True,
        "tests/__init__.py": True,
        "tests/test_calc.py": True,
    }
    digest, data = kept.encode()
    assert ProtectedFiles.decode(data).files == kept.files
    assert is_intact(digest, data)
    assert b"authToken" not in data


def test_changes_are_told_by_content(files):
    root, kept, directory = files
    assert not kept.changes(moment(root, directory / "b"))

    before = os.stat(root / "tests/test_calc.py")
    write(root, "tests/test_calc.py", TEST.replace("5)", "6)"))
    os.utime(root / "tests/test_calc.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    (root / "tests/__init__.py").unlink()
    write(root, "tests/test_new.py", EASY)
    write(root, "tests/data.txt", "data")
    write(root, "conftest.py", "")
    write(root, ".npmrc", "script-shell=./evil\n")

    assert kept.changes(moment(root, directory / "c")) == Changes(
        changed=("tests/test_calc.py",),
        deleted=("tests/__init__.py",),
        added=("conftest.py", "tests/test_new.py"),
        unclear=(".npmrc",),
    )
    accepted = ("tests/test_calc.py", "tests/__init__.py", "conftest.py", "tests/test_new.py", ".npmrc")
    assert not kept.changes(moment(root, directory / "d"), accepted=accepted)


def test_a_start_looks_at_the_files_once_and_runs_nothing(tmp_path):
    calculator(tmp_path)
    write(tmp_path, "conftest.py", "raise SystemExit('the project was run')\n")
    project, _ = started(tmp_path, GATE)

    assert project.checkpoints.universe.walks == 1
    project.close()


# The copy


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "repository" / "packages" / "api"
    calculator(root)
    write(tmp_path, "repository/packages/web/index.js", "1\n")
    write(root, ".venv/bin/python", "x")
    write(root, "build/out.o", "compiled")
    write(root, "__pycache__/calc.pyc", "x")
    write(root, "tests/__pycache__/test_calc.pyc", "x")
    write(root, "local_settings.py", "SECRET = 1\n")
    write(root, "run.sh", "#!/bin/sh\n").chmod(0o751)
    (root / "inner").symlink_to("tests")
    (root / "absolute").symlink_to(root / "calc.py")
    (root / "outside").symlink_to(tmp_path / "repository/packages/web")
    files = {"calc.py", "tests/__init__.py", "tests/test_calc.py", "run.sh"}
    return Copied(root=str(tmp_path / "repository"), base=str(root), files=files), root


def test_a_copy_has_files_of_its_own_and_links_to_what_is_left_out(tree):
    given, root = tree
    with project_copy(given._replace(without=("tests/__init__.py",))) as copy:
        assert sorted(os.listdir(copy)) == sorted(
            [".venv", "absolute", "build", "calc.py", "inner", "local_settings.py", "outside", "run.sh", "tests"]
        )
        assert os.listdir(os.path.join(copy, "tests")) == ["test_calc.py"]
        assert os.path.realpath(os.path.join(copy, ".venv")) == str(root / ".venv")
        assert os.path.realpath(os.path.join(copy, "build")) == str(root / "build")
        assert os.path.realpath(os.path.join(copy, "local_settings.py")) == str(root / "local_settings.py")
        assert os.stat(os.path.join(copy, "run.sh")).st_mode & 0o777 == 0o751
        assert os.stat(os.path.join(copy, "calc.py")).st_mtime_ns == (root / "calc.py").stat().st_mtime_ns
        # A package beside this one is found as before.
        assert os.path.exists(os.path.join(copy, "../web/index.js"))
    assert not os.path.exists(copy)


def test_nothing_is_written_through_the_copy_into_the_files_in_use(tree):
    given, root = tree
    with project_copy(given._replace(replaced={"tests/test_calc.py": (b"old", False)})) as copy:
        for path in ("calc.py", "absolute", "inner/test_calc.py", "tests/__init__.py", "run.sh"):
            with open(os.path.join(copy, path), "a") as file:
                file.write("# written by a test\n")
        with open(os.path.join(copy, "tests/test_calc.py")) as file:
            assert file.read() == "old# written by a test\n"

    for path in given.files:
        assert "written" not in (root / path).read_text()


def test_an_ignored_directory_with_a_protected_file_is_no_link(tree):
    given, root = tree
    write(root, "build/test_built.py", "new")
    with project_copy(given._replace(replaced={"build/test_built.py": (b"old", True)})) as copy:
        assert os.stat(os.path.join(copy, "build/test_built.py")).st_mode & 0o111
        assert os.path.islink(os.path.join(copy, "build/out.o"))
    assert (root / "build/test_built.py").read_text() == "new"


def test_a_temporary_directory_in_the_project_is_not_used(tree, monkeypatch):
    given, root = tree
    (root / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(root / "tmp"))

    with project_copy(given) as copy:
        assert not copy.startswith(given.root)


@pytest.mark.skipif(not HAS_GIT, reason="git is not there")
def test_programs_that_ask_git_get_an_answer_in_the_copy(tmp_path):
    calculator(tmp_path, git=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    command = f"git ls-files --error-unmatch calc.py && git status --short && {UNITTEST}"
    project, handle = started(tmp_path, f'{{ kind = "tests", command = "{command}" }}')
    with project:
        index = (tmp_path / ".git/index").read_bytes()
        write(tmp_path, "tests/test_calc.py", TEST + "# more\n")
        handle.gates.run("tests")

        assert protected_result(handle) is Result.PASSED
        assert (tmp_path / ".git/index").read_bytes() == index
