"""Write docs/performance.md from the results that are there.

python -m benchmarks.page
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import other_sections as other
from benchmarks import speed_sections as speed
from benchmarks.measuring import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
SECTIONS = {
    "step": speed.step_section,
    "step-avx2": speed.older_processor_section,
    "plus_step": speed.plus_section,
    "epoch": speed.epoch_section,
    "sharing": speed.sharing_section,
    "operator": speed.operator_section,
    "scaling": other.scaling_section,
    "contention": other.contention_section,
    "first_minute": other.first_minute_section,
    "fading": other.fading_section,
    "engines": other.engines_section,
    "predicting": other.predicting_section,
}

HEAD = """# How fast, and how much memory

Every number here comes from a script in `benchmarks/`, which writes what it measured to `benchmarks/results/`. This
page is made from those files by `python -m benchmarks.page`; `make bench` runs a short version of most of them and
prints it.

Some of the scripts assert that both sides compute the same before they time them:

- `step` and `operator` pool their batch once with torch_geometric's layer and once with ours of `semantics="pyg"`, with
  the same weights. More than 90 % of the kept nodes must be the same in the same place (equally fit ones may change
  places), the features of these equal to 10⁻⁴, the sum of every feature to 10⁻³ of it or 10⁻², and the number of
  pooled edges to 2 %. `step` also counts the edges of both networks at each level: they are equal to 5 %.
- `batching` and `reading`: our batches and graphs are those of torch_geometric, number by number, and the molecules of
  a CSV are those of the built-in set.
- `predicting`: a file read in pieces gets the answers of the file read at once, to 2·10⁻⁶.

The others assert nothing of the kind. `epoch` times trainings of the networks of `step`, which go their own ways;
`scaling` times ours of `semantics="paper"` beside torch_geometric's layer; `contention`, `fading` and `engines` compare
asapool with itself alone.

But for `scaling` and `contention`, sides take turns within one run, and ratios are medians of the ratios of the rounds,
with the quartiles in brackets. In `step`, `operator` and `fading` every side runs twice in a round and its second run
counts, so that it finds caches and memory as in a training. In `scaling` every measurement is a process of its own, of
which the fastest round counts. "asapool paper" does more work than torch_geometric: it also differentiates through the
pooled edge weights, which torch_geometric cannot.
"""

NOTES = """
## What makes it fast

- σ works element by element, so attention needs two numbers per node and one per edge, never an E×2F tensor.
- x^c W = S (x W): the fitness travels along the edges as three numbers per node, and only the clusters that stay are
  formed.
- The rows of a graph are read forward by row and backward by column, so that threads never write to the same place:
  results are the same bits for any number of threads (torch's matrix products aside).
- SᵀAS of a graph that is small or full is worked out in dense rows, eight numbers at a time, with its structure beside
  it in bits; that of a large sparse one along the edges, with one dense row at hand. Which way is cheaper is decided
  graph by graph. Its gradient goes the same two ways.
- A convolution, and a pooling up to the features of the kept clusters, are one operation each (outside torch.compile):
  autograd keeps books on every operation, and on small graphs that can be felt.
- Inside, kept clusters are numbered in the order of their nodes, so that what lies close together in a graph lies close
  together in memory, level after level; at the boundary the fittest come first, as in torch_geometric.
- The loops are compiled without numba's own threads. A small pool of sleeping helpers shares the rows out, so a busy
  neighbour costs its share of the processor and no more, and a forked process starts with a pool of its own.
- Imported before torch, asapool sets `GOMP_SPINCOUNT=2000` (unless you set it or `OMP_WAIT_POLICY`), so that torch's
  idle threads do not hold the cores our loops want next, and `THP_MEM_ALLOC_ENABLE=1`, which puts large tensors in
  large pages.
- The last level of a classifier pools no edges, because nothing reads them.

For one graph with millions of edges, call `asapool.keep_memory()` once: memory that a step frees then stays with the
process for the next one, where by default the system takes it back and hands it out again page by page (glibc only).

The number of threads is torch's: `torch.set_num_threads(n)`. For cross-validation on a machine with few cores, one
thread per process is the best use; `asapool cv -j` does that.

Forked processes: after a process has used two or more threads, a child made by `os.fork` that asks torch for two
threads again hangs in torch's own matrix products, with any library; call `torch.set_num_threads(1)` first thing in the
child, or start it with `multiprocessing`'s `spawn`. `DataLoader(num_workers=...)` sets one thread in its workers, so
asapool's layers work in them (there is a test). asapool's own worker processes are spawned.
"""


def result(name: str) -> dict[str, Any] | None:
    """A result file, where there is one."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def main() -> None:
    """Put the page together."""
    parts = [HEAD]
    for name, section in SECTIONS.items():
        actual = result(name)
        if actual:
            parts.append(section(actual))
    if result("batching") or result("reading"):
        parts.append(other.data_section(result("batching"), result("reading")))
    PAGE.write_text("".join([*parts, NOTES]))
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
