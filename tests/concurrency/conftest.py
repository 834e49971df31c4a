import pytest

from tests.support.workers import forked


@pytest.fixture
def context():
    return forked()
