import pytest

from tests.support.installed_project import Place


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)
