"""One report for all tests that look at one: it takes a few seconds to make."""

import pytest

from asapool.theory import verify


@pytest.fixture(scope="session")
def told():
    """What the report said on the way."""
    return []


@pytest.fixture(scope="session")
def report(told):
    return verify(max_nodes=9, progress=lambda text, done, total: told.append((text, done / total)))
