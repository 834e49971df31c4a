import pytest

from tests.support.objects import close_all


@pytest.fixture(autouse=True)
def _closed():
    yield
    close_all()
