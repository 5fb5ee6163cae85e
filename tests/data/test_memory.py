"""Peak memory while reading is bounded by the packed result, not by the text."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.data.sources import write_tu

CODE = """
import re, sys
from asapool.data import load
def held(key):
    return int(re.search(key + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
load("synthetic:paths?graphs=2")
before = held("VmRSS")
graphs = load(sys.argv[1])
print(held("VmHWM") - before, sum(a.nbytes for a in (graphs.x, graphs.ptr, graphs.rowptr, graphs.col, graphs.y)))
"""


def factor(source):
    """Peak memory of a process that reads source, over the bytes of the packed arrays."""
    if not re.search("VmHWM", Path("/proc/self/status").read_text() if Path("/proc/self/status").exists() else ""):
        pytest.skip("peak memory is read from /proc, which this system does not have")
    done = subprocess.run([sys.executable, "-c", CODE, str(source)], capture_output=True, text=True, check=True)
    peak, packed = map(int, done.stdout.split())
    return peak / packed


def test_dd_is_read_in_eight_times_its_packed_size(shared_datasets):
    assert factor(shared_datasets / "DD.zip") <= 8


def test_wide_attributes_are_read_in_bounded_memory(tmp_path):
    # the shape of FRANKENSTEIN: 780 numbers per node, here for 4,000 nodes
    N = 4000
    row = ", ".join(f"{k % 7}.{k % 1000:03d}" for k in range(780)) + "\n"
    folder = write_tu(
        tmp_path, "FRANKENSTEIN", A="1, 2\n2, 1\n", graph_indicator="1\n" * (N - 1) + "2\n", graph_labels="0\n1\n",
        node_labels=None, node_attributes=row * N, edge_labels=None, edge_attributes=None,
    )  # fmt: skip
    assert factor(folder) <= 8
