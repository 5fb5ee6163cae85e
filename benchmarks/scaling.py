"""One growing graph through one pooling, forward and backward: time per edge and peak memory, beside torch_geometric.

    python -m benchmarks.scaling [--edges 1e4,1e5,1e6,1e7] [--threads 2] [--rounds 3]

The graph is a torus of N nodes with ten neighbours each (grid-like), F = 64, ratio ½. Every measurement is a process
of its own, so that its peak is its own; a side that needs more than the limit of memory is recorded as such.
Writes benchmarks/results/scaling.json.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

import asapool
from benchmarks.measuring import machine, timed, write

OFFSETS = ((0, 1), (1, 0), (1, 1), (1, -1), (0, 2))  # and back: ten neighbours
LIMIT = 20 * 2**30
OURS, KEPT = "asapool", "asapool, memory kept"  # the second after asapool.keep_memory()
SIDES = (OURS, KEPT, "torch_geometric")


def torus(edges: int) -> tuple[int, torch.Tensor]:
    """About that many directed edges on a square torus."""
    side = max(5, round(math.sqrt(edges / 10)))
    row, col = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    here = (row * side + col).view(-1)
    there = [(((row + a) % side) * side + (col + b) % side).view(-1) for a, b in OFFSETS]
    sources, targets = here.repeat(len(OFFSETS)), torch.cat(there)
    return side * side, torch.stack([torch.cat([sources, targets]), torch.cat([targets, sources])])


def one(side: str, edges: int, threads: int, rounds: int) -> dict[str, Any]:
    """Seconds and peak memory of this process."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    N, edge_index = torus(edges)
    x = torch.randn(N, 64, requires_grad=True)
    layer: torch.nn.Module
    if side == KEPT:
        asapool.keep_memory()
    if side in (OURS, KEPT):
        from asapool.nn import ASAPooling

        layer = ASAPooling(64)
        small = torus(1000)
        layer(torch.randn(small[0], 64), small[1]).x.sum().backward()  # compiled before the clock starts
    else:
        from torch_geometric.nn import ASAPooling as PyGPooling
        from torch_geometric.nn import GCNConv

        layer = PyGPooling(64, GNN=GCNConv)
    before = _held("VmRSS")

    def step() -> None:
        layer(x, edge_index)[0].square().sum().backward()

    seconds = [timed(step) for _ in range(rounds)]
    return {
        "seconds": min(seconds),
        "nanoseconds_per_edge": 1e9 * min(seconds) / edge_index.size(1),
        "peak_bytes": _held("VmHWM"),
        "held_before_bytes": before,
        "nodes": N,
        "edges": edge_index.size(1),
    }


def _held(key: str) -> int:
    result = re.search(key + r":\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert result is not None
    return int(result[1]) * 1024


def measure(side: str, edges: int, threads: int, rounds: int) -> dict[str, Any]:
    """The same in a process of its own."""
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.scaling", "--one", side]
    words += ["--edges", str(edges), "--threads", str(threads), "--rounds", str(rounds)]
    done = subprocess.run(
        words, capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"ended by signal {-done.returncode}"]
        return {"failed": last[0][:200], "limit_bytes": LIMIT, "edges": edges}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", default="1e4,1e5,1e6,1e7")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=SIDES, help="measure here and print")
    args = parser.parse_args(arguments)
    sizes = [round(float(e)) for e in args.edges.split(",")]
    if args.one:
        print(json.dumps(one(args.one, sizes[0], args.threads, args.rounds)))
        return
    runs = [{"side": side, **measure(side, edges, args.threads, args.rounds)} for edges in sizes for side in SIDES]
    torch.set_num_threads(args.threads)
    write("scaling", {"what": "forward and backward of one ASAPooling, F = 64", "runs": runs, "machine": machine()})


if __name__ == "__main__":
    main()
