"""One report for all tests that look at one: it takes a few seconds to make."""

import pytest

from asapool.theory import verify


@pytest.fixture(scope="session")
def progress():
    """What the report said on the way."""
    return []


@pytest.fixture(scope="session")
def report(progress):
    return verify(max_nodes=9, progress=lambda text, done, total: progress.append((text, done / total)))
