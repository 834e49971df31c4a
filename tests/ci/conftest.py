"""The tests of this folder use programs of others. They run only when the folder is named: `make test-ci`."""

from pathlib import Path

import pytest

from tests.ci.tools import PYTHON

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = [Path(argument.split("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter that has pre-commit and the verifiers of others."""
    if not PYTHON.exists():
        pytest.skip("the environment of tests/ci is missing: make test-ci makes it")
    return PYTHON
