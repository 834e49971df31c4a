"""The tests of this folder start servers and workers. They run only when the folder is named: `make test-machines`."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = [Path(argument.split("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


@pytest.fixture
def report(capsys):
    """Prints a figure, whatever pytest captures."""

    def tell(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return tell
