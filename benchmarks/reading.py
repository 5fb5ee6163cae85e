"""How fast sources are read: TU text beside torch_geometric.io.read_tu_data, molecules per second, and memory.

    python -m benchmarks.reading [--data-root FOLDER] [--name DD] [--rounds 5]

TU text is read from an unpacked folder by both sides, after their equality was asserted, taking turns within one run,
with one thread. Memory is the peak of a process of its own, less what it held before.
Writes benchmarks/results/reading.json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.io import read_tu_data

from asapool.data import GraphSet, load
from asapool.data.download import find_tu
from benchmarks.measuring import data_root, machine, spread, timed, write

MEMORY = """
import re, sys
from asapool.data import load
def held(key):
    return int(re.search(key + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
load("synthetic:paths?graphs=2")
before = held("VmRSS")
graphs = load(sys.argv[1])
print(held("VmHWM") - before, graphs.summary().bytes)
"""


def assert_same(graphs: GraphSet, theirs: Any, slices: Any) -> None:
    """Features, labels and edges are those PyG reads."""
    assert torch.equal(torch.from_numpy(graphs.x.copy()), theirs.x)
    assert torch.equal(torch.from_numpy(graphs.y.copy()), theirs.y)
    assert np.array_equal(graphs.ptr, slices["x"].numpy())
    counts = np.diff(slices["edge_index"].numpy())
    source, target = theirs.edge_index.numpy() + np.repeat(graphs.ptr[:-1], counts)
    N = len(graphs.x)
    row = np.repeat(np.arange(N), np.diff(graphs.rowptr))
    assert np.array_equal(row * N + graphs.col, np.sort(target * N + source))


def read_both(folder: Path, name: str, rounds: int) -> dict[str, Any]:
    """Seconds of both readers on the same folder."""
    data, slices, _ = read_tu_data(str(folder), name)
    assert_same(load(folder, features="labels"), data, slices)  # also the warm-up of both
    del data, slices
    ours, pyg = [], []
    for _ in range(rounds):
        pyg.append(timed(lambda: read_tu_data(str(folder), name)))
        ours.append(timed(lambda: load(folder, features="labels")))
    ratios = [a / b for a, b in zip(pyg, ours, strict=True)]
    return {"what": f"seconds to read {name} from text", "asapool": spread(ours), "pyg_read_tu_data": spread(pyg),
            "times_faster": spread(ratios)}  # fmt: skip


def read_memory(source: Path) -> dict[str, Any]:
    """Peak memory while reading, over the size of the packed result."""
    done = subprocess.run([sys.executable, "-c", MEMORY, str(source)], capture_output=True, text=True, check=True)
    peak, packed = map(int, done.stdout.split())
    return {"what": f"bytes held at most while reading {source.name}", "peak": peak, "packed": packed,
            "times_packed": peak / packed}  # fmt: skip


def read_molecules(rounds: int) -> dict[str, Any]:
    """Molecules per second from a CSV on one core: the NCI molecules that come with rdkit."""
    alerts = load("nci-alerts")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "molecules.csv"
        rows = [f"{text},{label}" for text, label in zip(alerts.source_text or (), alerts.y.tolist(), strict=True)]
        path.write_text("smiles,label\n" + "\n".join(rows) + "\n")
        assert np.array_equal(load(path).x, alerts.x)  # also the warm-up
        seconds = [timed(lambda: load(path, workers=1)) for _ in range(rounds)]
    atoms = len(alerts.x) / len(alerts)
    return {"what": f"molecules per second, {len(alerts)} NCI molecules of {atoms:.1f} atoms, one core",
            "asapool": spread([len(alerts) / s for s in seconds])}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--name", default="DD")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    actual = find_tu(args.name, data_root(args.data_root))
    with tempfile.TemporaryDirectory() as folder:
        if actual.suffix == ".zip":
            with zipfile.ZipFile(actual) as archive:
                archive.extractall(folder)
            data_folder = Path(folder) / args.name
        else:
            data_folder = actual
        result = {"tu": read_both(data_folder, args.name, args.rounds), "memory": read_memory(actual)}
    write("reading", result | {"molecules": read_molecules(args.rounds), "machine": machine()})


if __name__ == "__main__":
    main()
