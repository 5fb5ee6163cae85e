"""Write docs/performance.md from the results that are there.

python -m benchmarks.page
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.measuring import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
BARS = {"PROTEINS": 6, "DD": 6, "NCI1": 5}  # times faster than torch_geometric, two threads

HEAD = """# How fast, and how much memory

Every number here comes from a script in `benchmarks/`, which asserts that both sides compute the same before it times
them, lets the sides take turns within one run, and writes what it measured to `benchmarks/results/`. This page is made
from those files by `python -m benchmarks.page`; `make bench` runs a short version of all scripts but `predicting` and
prints it.

In each round every side runs twice and its second run counts, so that it finds caches and memory as in a training.
Ratios are medians of the ratios of the rounds, with the quartiles in brackets. "asapool paper" does more work than
torch_geometric: it also differentiates through the pooled edge weights, which torch_geometric cannot.
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
- Imported before torch, asapool sets `GOMP_SPINCOUNT=2000` (unless you set it or `OMP_WAIT_POLICY`), so that torch's idle
  threads do not hold the cores our loops want next, and `THP_MEM_ALLOC_ENABLE=1`, which puts large tensors in large
  pages.
- The last level of a classifier pools no edges, because nothing reads them.

The number of threads is torch's: `torch.set_num_threads(n)`. For cross-validation on a machine with few cores, one
thread per process is the best use; `asapool cv -j` does that.
"""


WORKERS = ("asapool paper", "asapool authors", "asapool pyg", "torch_geometric")


def result(name: str) -> dict[str, Any] | None:
    """A result file, where there is one."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def times(ratio: dict[str, float]) -> str:
    """5.2× (5.0–5.4)."""
    return f"{ratio['median']:.1f}× ({ratio['quartile_1']:.1f}–{ratio['quartile_3']:.1f})"


def measured_on(found: dict[str, Any]) -> str:
    """One line on where."""
    m = found["machine"]
    versions = f"Python {m['python']}, torch {m['torch']}, torch_geometric {m['torch_geometric']}, numba {m['numba']}"
    return f"\nMeasured on {m['cpu']}, {m['cores']} cores, {versions}, commit {m['commit'][:10]}, load before {m['load']}.\n"


def step_section(found: dict[str, Any]) -> str:
    """Training steps."""
    rows, goals, counts = [], [], []
    reached: dict[str, list[float]] = {}
    pool = any("torch-geometric-pool" in run["milliseconds"] for run in found["runs"])  # where it was installed
    for run in found["runs"]:
        ms = {side: f"{values['median']:.1f}" for side, values in run["milliseconds"].items()}
        faster = run["times_faster_than_pyg"]
        rows.append(
            [run["data"], str(run["threads"]), ms["torch_geometric"], ms["asapool paper"], times(faster["asapool paper"]),
             ms["asapool authors"], times(faster["asapool authors"]), ms["asapool pyg"], times(faster["asapool pyg"]),
             ms["asapool reference"], ms["matrix products"], times(run["times_the_floor"])]
        )  # fmt: skip
        if pool:
            other = run.get("times_faster_than_tgp")
            rows[-1] += [ms.get("torch-geometric-pool", "–"), times(other["asapool paper"]) if other else "–"]
        reached.setdefault(run["data"], []).append(faster["asapool paper"]["median"])
        counts.append([run["data"], *(_edges(run, side) for side in WORKERS)])
        if run["data"] == "NCI1" and run["threads"] == 1:
            floor = run["times_the_floor"]["median"]
            goals.append(
                f"- NCI1 against its floor: asked for 1.7×, reached {floor:.1f}×{'' if floor <= 1.7 else ' — not reached'}."
            )
    for data, ratios in reached.items():
        least, bar = min(ratios), BARS[data]
        goals.append(f"- {data}: asked for {bar}×, reached {least:.1f}×{'' if least >= bar else ' — not reached'}.")
    head = ["data", "threads", "torch_geometric ms", "paper ms", "faster", "authors ms", "faster", "pyg ms", "faster",
            "reference ms", "floor ms", "paper / floor"]  # fmt: skip
    intro = (
        "\n## A training step\n\nForward, backward and Adam of the three-level network with the authors' settings, on one real "
        "batch. The floor is just the dense matrix products of the same step. All sides have the same weights, which do not "
        "change while they are timed.\n\n"
    )
    if pool:
        head += ["torch-geometric-pool ms", "paper faster"]
        intro = intro.rstrip() + " torch-geometric-pool keeps the edges among the kept nodes instead of SᵀAS, which is less work.\n\n"
    edges = (
        "\nEdges at the three levels, loops aside; the rules of a semantics decide which clusters stay, and so how many edges "
        "there are between them:\n\n" + table(["data", *WORKERS], _once(counts)) + "\n"
    )
    return intro + table(head, rows) + edges + "\n".join(goals) + "\n" + measured_on(found)


def _edges(run: dict[str, Any], side: str) -> str:
    return ", ".join(f"{count:,}" for count in run["edges"][side])


def _once(rows: list[list[str]]) -> list[list[str]]:
    return [row for k, row in enumerate(rows) if row not in rows[:k]]


def fading_section(found: dict[str, Any]) -> str:
    """Faded weights."""
    rows = [
        [run["data"], *(f"{run['milliseconds'][side]['median']:.1f}" for side in ("as drawn", "faded", "faded, flushed")),
         *(times(run["slower"][side]) for side in ("faded", "faded, flushed"))]
        for run in found["runs"]
    ]  # fmt: skip
    head = ["data", "ms as drawn", "ms faded", "ms faded, flushed", "faded slower", "flushed slower"]
    return (
        "\n## Weights that fade away\n\nWeight decay draws weights that no example asks for below the smallest normal number, "
        "where processors slow down. `asapool.training.fit` takes such numbers for zero; in a loop of your own, "
        "`torch.set_flush_denormal(True)` does. A step of one thread with the weights of the inner GCN made that small:\n\n"
        + table(head, rows) + measured_on(found)
    )  # fmt: skip


def epoch_section(found: dict[str, Any]) -> str:
    """Epochs."""
    rows = [
        [run["data"], str(run["threads"]),
         *(f"{run['seconds_per_epoch'][side]['median']:.2f}" for side in ("torch_geometric", "asapool")),
         times(run["times_faster"]),
         f"{run['throughput_of_two_processes']:.1f}×" if "throughput_of_two_processes" in run else "–"]
        for run in found["runs"]
    ]  # fmt: skip
    head = ["data", "threads", "torch_geometric s", "asapool s", "faster", "two processes, one thread each"]
    return (
        "\n## An epoch\n\nTraining and validation with the authors' settings: `asapool.training.fit` beside the same network in "
        "torch_geometric's layers and DataLoader. The last column is the throughput of two processes of ours, as `asapool cv -j 2` "
        "runs them, beside that one torch_geometric process (asked for: 5× and 9×).\n\n" + table(head, rows) + measured_on(found)
    )


def operator_section(found: dict[str, Any]) -> str:
    """One layer called with edge_index."""
    rows = [
        [run["data"], str(run["threads"]), what,
         *(f"{run[what]['milliseconds'][side]['median']:.2f}" for side in ("torch_geometric", "asapool", "asapool pyg")),
         *(times(run[what]["times_faster_than_pyg"][side]) for side in ("asapool", "asapool pyg"))]
        for run in found["runs"] for what in ("inference", "forward and backward")
    ]  # fmt: skip
    head = ["data", "threads", "what", "torch_geometric ms", "asapool ms", "asapool pyg ms", "faster", "faster (pyg)"]
    return (
        "\n## One pooling layer, called as torch_geometric's\n\nChecks of the input and packing of the edges included.\n\n"
        + table(head, rows) + measured_on(found)
    )  # fmt: skip


def scaling_section(found: dict[str, Any]) -> str:
    """One growing graph."""
    rows = []
    for run in found["runs"]:
        if "failed" in run:
            rows.append(
                [
                    run["side"],
                    f"{run['edges']:,}",
                    "–",
                    "–",
                    f"over {run['limit_bytes'] / 2**30:.0f} GiB: {run['failed']}",
                ]
            )
        else:
            peak = f"{run['peak_bytes'] / 2**30:.2f} GiB"
            rows.append(
                [run["side"], f"{run['edges']:,}", f"{run['seconds']:.2f}", f"{run['nanoseconds_per_edge']:.0f}", peak]
            )
    ours = {
        run["edges"]: run["nanoseconds_per_edge"]
        for run in found["runs"]
        if run["side"] == "asapool" and "failed" not in run
    }
    sizes = sorted(ours)
    growth = ours[sizes[-1]] / ours[next(s for s in sizes if s >= 0.9e5)]
    return (
        "\n## One big graph\n\nForward and backward of one ASAPooling, F = 64, on a torus with ten neighbours per node.\n\n"
        + table(["side", "directed edges", "seconds", "ns per edge", "peak memory"], rows)
        + f"\nFrom 10⁵ edges to {sizes[-1]:.0e} the time per edge grows {growth:.2f}× (asked for: at most 1.5×).\n"
        + measured_on(found)
    )


def contention_section(found: dict[str, Any]) -> str:
    """A busy neighbour, and the start."""
    rows = [
        [str(run["threads"]), f"{run['milliseconds']['alone']['median']:.1f}", f"{run['milliseconds']['beside']['median']:.1f}", f"{run['slower']:.2f}×"]
        for run in found["runs"]
    ]  # fmt: skip
    start = found["start_up_seconds"]
    return (
        f"\n## A busy neighbour, and the start\n\n{found['what'][0].upper() + found['what'][1:]}, alone and beside a process that keeps one core busy "
        "(asked for: at most 3× slower).\n\n"
        + table(["threads", "alone ms", "beside ms", "slower"], rows)
        + f"\n`import asapool` takes {start['import_asapool']:.2f} s, and from there to the end of a first forward and backward in a "
        f"process that finds the compiled loops on disk {start['import_to_first_step']:.1f} s; `asapool --help` "
        f"{start['asapool_help']:.2f} s.\n" + measured_on(found)
    )


def data_section(batching: dict[str, Any] | None, reading: dict[str, Any] | None) -> str:
    """Batches and files."""
    lines = ["\n## Batches and files\n"]
    if batching:
        lines.append(
            f"- Cutting mini-batches ({batching['what']}): {times(batching['times_faster'])} the speed of PyG's DataLoader."
        )
    if reading:
        memory, molecules = reading["memory"], reading["molecules"]["asapool"]["median"]
        lines.append(f"- Reading D&D from text: {times(reading['tu']['times_faster'])} the speed of torch_geometric's reader.")
        lines.append(f"- Memory while reading D&D: at most {memory['times_packed']:.1f}× the packed result.")
        lines.append(f"- Molecules from SMILES: {molecules:,.0f} per second on one core.")
    return "\n".join(lines) + "\n" + measured_on(batching or reading or {})


def predicting_section(found: dict[str, Any]) -> str:
    """Files larger than the memory."""
    rows = [
        [file["what"], f"{run['graphs']:,}", f"{run['bytes'] / 1e6:,.0f} MB", f"{run['seconds']:.0f}",
         f"{run['graphs_per_second']:,.0f}", f"{run['graphs_per_processor_second']:,.0f}", f"{run['megabytes_per_second']:.1f}", f"{run['peak_bytes'] / 2**20:,.0f} MiB"]
        for file in found["files"] for run in file["runs"]
    ]  # fmt: skip
    head = ["file", "graphs", "size", "seconds", "graphs per second", "and per processor second", "MB per second", "peak memory"]
    growth = ", ".join(f"{file['memory_growth']:.2f}× ({file['what']})" for file in found["files"])
    return (
        f"\n## Predicting large files\n\n`asapool predict` as a process, start included, with torch's threads set to "
        f"{found['machine']['threads']}: a tenth of a file, then all of it.\n\n" + table(head, rows)
        + f"\nFrom a tenth to the whole file the peak memory grows {growth}.\n" + measured_on(found)
    )  # fmt: skip


def main() -> None:
    """Put the page together."""
    parts = [HEAD]
    for name, section in (
        ("step", step_section), ("epoch", epoch_section), ("operator", operator_section), ("scaling", scaling_section), ("contention", contention_section), ("fading", fading_section)
    ):  # fmt: skip
        found = result(name)
        if found:
            parts.append(section(found))
    if result("batching") or result("reading"):
        parts.append(data_section(result("batching"), result("reading")))
    found = result("predicting")
    if found:
        parts.append(predicting_section(found))
    PAGE.write_text("".join([*parts, NOTES]))
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
