"""The report that all tests share."""

import pytest


@pytest.fixture
def report(theory_report):
    return theory_report[0]


@pytest.fixture
def progress(theory_report):
    """The progress messages of the report."""
    return theory_report[1]
