"""Freed memory is reused instead of being requested from the system again."""

import platform
import textwrap

import pytest

from tests.children import run_python

SCRIPT = textwrap.dedent(
    """
    import resource, torch, asapool
    if {kept}:
        assert asapool.keep_memory()
    faults = []
    for _ in range(8):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(2):
            torch.zeros(25_000_000).add_(1)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    print(min(faults))
    """
)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps its own rules")
def test_freed_memory_is_reused():
    """Twice 100 MB are 50,000 pages, or 100 large ones; the page size is the machine's, so the two are compared.

    It may take a few rounds until there is room for both in what was freed.
    """
    faults = {}
    for kept in (False, True):
        ran = run_python(SCRIPT.format(kept=kept))
        assert ran.returncode == 0, ran.stderr
        faults[kept] = int(ran.stdout)
    assert faults[False] >= 50
    assert faults[True] <= faults[False] / 10
