import multiprocessing

import pytest


@pytest.fixture
def context():
    return multiprocessing.get_context("spawn")
