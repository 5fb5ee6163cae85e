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
    "step-repeat": speed.repeated_section,
    "step-avx2": speed.older_processor_section,
    "step-intel": speed.intel_section,
    "step-epyc": speed.other_processor_section,
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
    "large_set": other.large_set_section,
}

HEAD = """# Speed and memory

Every number here comes from a script in `benchmarks/`, which writes its measurements to `benchmarks/results/`. This
page is generated from those files by `python -m benchmarks.page`; `make bench` runs a short version of most of them and
prints it.

Some of the scripts assert that both sides compute the same result before they time them:

- `step` and `operator` pool their batch once with torch_geometric's layer and once with ours under `semantics="pyg"`,
  with the same weights. More than 90 % of the kept nodes must be the same at the same position (equally fit ones may
  swap), with features equal to 10⁻⁴, the sum of every feature to a relative 10⁻³ or an absolute 10⁻², and the number
  of pooled edges to 2 %. `step` also counts the edges of both networks at each level: they are equal to 5 %.
- `batching` and `reading`: our batches and graphs equal those of torch_geometric, number by number, and the molecules
  of a CSV equal those of the built-in set.
- `predicting`: a file read in pieces gets the same predictions as the file read at once, to 2·10⁻⁶.

The others make no such check. `epoch` times training of the networks of `step`, whose weights diverge; `scaling` times
our layer under `semantics="paper"` beside torch_geometric's; `contention`, `fading` and `engines` compare asapool only
with itself.

Except in `scaling` and `contention`, sides take turns within one run, and ratios are medians of the ratios of the
rounds, with the quartiles in brackets. In `step`, `operator` and `fading` every side runs twice in a round and its
second run counts, so that caches and memory are as warm as in training. In `scaling` every measurement is a separate
process, and the fastest round counts. "asapool paper" does more work than torch_geometric: it also differentiates
through the pooled edge weights, which torch_geometric cannot.
"""

NOTES = """
## What makes it fast

- σ works element by element, so attention needs two numbers per node and one per edge, never an E×2F tensor.
- x^c W = S (x W): the fitness needs only three numbers per node along the edges, and only the kept clusters are
  formed.
- A graph is read by row in the forward pass and by column in the backward pass, so that threads never write to the same
  place: results are bitwise identical for any number of threads (except torch's matrix products, where those are used).
- SᵀAS of a small or dense graph is computed in dense rows, eight numbers at a time, with its sparsity pattern as a
  bitmap; that of a large sparse graph along the edges, with one dense row as scratch. The cheaper way is chosen for
  each graph, for the gradient as well.
- A convolution, and a pooling up to the features of the kept clusters, are one operation each (outside torch.compile):
  autograd's bookkeeping per operation is noticeable on small graphs.
- Internally, kept clusters are numbered in the order of their nodes, so that neighbours in the graph are close
  together in memory at every level; in the public API the fittest come first, as in torch_geometric.
- The kernels are compiled without numba's own threads. A small pool of sleeping helper threads shares the rows, so a
  busy neighbour costs only its share of the processor, and a forked process starts with its own pool.
- Imported before torch, asapool sets `GOMP_SPINCOUNT=2000` (unless you set it or `OMP_WAIT_POLICY`), so that torch's
  idle threads do not occupy the cores that our kernels need next, and `THP_MEM_ALLOC_ENABLE=1`, which puts large
  tensors in huge pages.
- A sum over neighbours stays in registers until it is complete, 16 numbers in each; otherwise it would go through
  memory for every neighbour.
- On AMD processors with AVX-512, matrix products whose long side is the nodes are computed in tiles that fit the
  registers: torch's library, MKL, uses half of such a processor's width.
- Sums that look up scattered entries add them in order: if they may be regrouped, the compiler vectorises them with
  gather instructions, which are slower for rows of a few entries.
- The last level of a classifier pools no edges, because nothing reads them.

For one graph with millions of edges, call `asapool.keep_memory()` once: memory that a step frees then stays with the
process for the next one; by default it is returned to the system and allocated again page by page (glibc only).

The number of threads is torch's: `torch.set_num_threads(n)`. For cross-validation on a machine with few cores, one
thread per process is best; `asapool cv -j` does that.

Forked processes: after a process has used two or more threads, a child made by `os.fork` that again sets two
threads hangs in torch's own matrix products, with any library; call `torch.set_num_threads(1)` first in the
child, or start it with `multiprocessing`'s `spawn`. `DataLoader(num_workers=...)` sets one thread in its workers, so
asapool's layers work in them (there is a test). asapool's own worker processes are spawned.
"""


def result(name: str) -> dict[str, Any] | None:
    """A result file, or None if there is none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def page() -> str:
    """docs/performance.md, from the result files."""
    parts = [HEAD]
    for name, section in SECTIONS.items():
        actual = result(name)
        if actual:
            parts.append(section(actual))
    if result("batching") or result("reading"):
        parts.append(other.data_section(result("batching"), result("reading")))
    return "".join([*parts, NOTES])


def main() -> None:
    """Write the page and print it."""
    PAGE.write_text(page())
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
