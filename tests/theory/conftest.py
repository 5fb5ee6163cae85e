"""One report for all tests that use it: it takes a few seconds to compute."""

import pytest

from asapool.theory import verify


@pytest.fixture(scope="session")
def progress():
    """The progress messages of the report."""
    return []


@pytest.fixture(scope="session")
def report(progress):
    return verify(max_nodes=9, progress=lambda text, done, total: progress.append((text, done / total)))
