"""Sections of docs/performance.md on large graphs, busy machines, start-up and files."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.markdown import measured_on, table, times


def scaling_section(result: dict[str, Any]) -> str:
    """One growing graph."""
    rows = []
    for run in result["runs"]:
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
    ours, kept = (_per_edge(result["runs"], side) for side in ("asapool", "asapool, memory kept"))
    start, cheapest, largest = (
        min(edges for edges in ours if edges >= 0.9e5),
        min(ours, key=ours.__getitem__),
        max(ours),
    )
    return (
        "\n## One big graph\n\nForward and backward of one ASAPooling, F = 64, on a torus with ten neighbours per node.\n\n"
        + table(["side", "directed edges", "seconds", "ns per edge", "peak memory"], rows)
        + f"\nFrom {start:,} to {largest:,} edges the time per edge grows {ours[largest] / ours[start]:.2f}× (goal: at most "
        f"1.5×), or {kept[largest] / kept[start]:.2f}× after `asapool.keep_memory()`, which avoids allocating new pages and "
        f"returning them. That starting point is slow: from {cheapest:,} edges, where the time per edge is lowest, "
        f"it grows {ours[largest] / ours[cheapest]:.2f}×, or {kept[largest] / kept[cheapest]:.2f}×.\n"
        + measured_on(result)
    )


def _per_edge(runs: list[dict[str, Any]], side: str) -> dict[int, float]:
    """Nanoseconds per edge by the number of edges."""
    return {run["edges"]: run["nanoseconds_per_edge"] for run in runs if run["side"] == side and "failed" not in run}


def contention_section(result: dict[str, Any]) -> str:
    """A busy machine, and start-up."""
    rows = [
        [str(run["threads"]), f"{run['milliseconds']['alone']['median']:.1f}", f"{run['milliseconds']['beside']['median']:.1f}", f"{run['slower']:.2f}×"]
        for run in result["runs"]
    ]  # fmt: skip
    start = result["start_up_seconds"]
    return (
        f"\n## A busy machine, and start-up\n\n{result['what'][0].upper() + result['what'][1:]}, alone and beside a process that keeps one core busy "
        "(goal: at most 3× slower).\n\n"
        + table(["threads", "alone ms", "beside ms", "slower"], rows)
        + f"\n`import asapool` takes {start['import_asapool']:.2f} s. From there to the end of the first forward and backward "
        f"pass takes {start['import_to_first_step']:.1f} s if the compiled kernels are cached; `asapool --help` takes "
        f"{start['asapool_help']:.2f} s.\n" + measured_on(result)
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
        lines.append(
            f"- Reading D&D from text: {times(reading['tu']['times_faster'])} the speed of torch_geometric's reader."
        )
        lines.append(f"- Memory while reading D&D: at most {memory['times_packed']:.1f}× the packed result.")
        lines.append(f"- Molecules from SMILES: {molecules:,.0f} per second on one core.")
    return "\n".join(lines) + "\n" + measured_on(batching or reading or {})


def predicting_section(result: dict[str, Any]) -> str:
    """Files larger than memory."""
    rows = [
        [file["what"], f"{run['graphs']:,}", f"{run['bytes'] / 1e6:,.0f} MB", f"{run['seconds']:.0f}",
         f"{run['graphs_per_second']:,.0f}", f"{run['graphs_per_processor_second']:,.0f}", f"{run['megabytes_per_second']:.1f}", f"{run['peak_bytes'] / 2**20:,.0f} MiB"]
        for file in result["files"] for run in file["runs"]
    ]  # fmt: skip
    head = [
        "file",
        "graphs",
        "size",
        "seconds",
        "graphs per second",
        "and per processor second",
        "MB per second",
        "peak memory",
    ]
    growth = ", ".join(f"{file['memory_growth']:.2f}× ({file['what']})" for file in result["files"])
    return (
        f"\n## Predicting large files\n\n`asapool predict` as a process, including start-up, with torch's threads set to "
        f"{result['machine']['threads']}: a tenth of a file, then all of it.\n\n" + table(head, rows)
        + f"\nFrom a tenth to the whole file the peak memory grows {growth}.\n" + measured_on(result)
    )  # fmt: skip


def fading_section(result: dict[str, Any]) -> str:
    """Denormal weights."""
    rows = [
        [run["data"], *(f"{run['milliseconds'][side]['median']:.1f}" for side in ("as drawn", "faded", "faded, flushed")),
         *(times(run["slower"][side]) for side in ("faded", "faded, flushed"))]
        for run in result["runs"]
    ]  # fmt: skip
    head = ["data", "ms initial weights", "ms denormal", "ms flushed", "denormal slower", "flushed slower"]
    return (
        "\n## Denormal weights\n\nWeight decay pulls weights that no example needs below the smallest normal number, "
        "where processors slow down. `asapool.training.fit` flushes such numbers to zero; in your own training loop, "
        "`torch.set_flush_denormal(True)` does. A step with one thread and denormal weights in the inner GCN:\n\n"
        + table(head, rows) + measured_on(result)
    )  # fmt: skip


def engines_section(result: dict[str, Any]) -> str:
    """The overhead of experiments."""
    rows = [
        [f"`{run['command']}`", str(run["trainings"]), str(run["processes"]), f"{run['seconds']:.0f}", f"{100 * run['overhead']:.1f} %"]
        for run in result["runs"]
    ]  # fmt: skip
    head = ["`asapool reproduce` with", "training runs", "processes", "seconds", "not training"]
    return (
        "\n## Experiments\n\nThe share of the processes' time in which nothing was trained: starting them, reading data, "
        "writing records and tables, waiting for the last run (goal: less than 3 %).\n\n"
        + table(head, rows) + measured_on(result["runs"][-1])
    )  # fmt: skip


def first_minute_section(result: dict[str, Any]) -> str:
    """Commands on a fresh install."""
    rows = []
    for run in result["runs"]:
        cells = [run["case"]]
        for when in ("nothing compiled", "again"):
            cells += [_seconds(run.get(when, {}).get(what)) for what in ("first epoch", "all")]
        rows.append(cells)
    head = ["command", "first epoch", "all", "again: first epoch", "all"]
    about = (
        "\n## The first minute\n\nProcessor seconds (user and system, from the start of the process) of the first "
        "command after a fresh install, with an empty kernel cache: until the first epoch is on disk "
        "(goal: 10), and in total. Training uses 60 graphs of 25 nodes with default settings, small enough for the "
        "reference backend."
    )
    names = [run["case"] for run in result["runs"]]
    if any("compiled" in name for name in names):
        about += ' "Loops compiled" selects the fused backend, and runs again with the compiled kernels.'
    if any(name.startswith("predict") for name in names):
        about += " Predictions are for five molecules, with the reference and with the fused backend."
    return about + " Medians of the rounds.\n\n" + table(head, rows) + measured_on(result)


def _seconds(values: list[float] | None) -> str:
    return "–" if values is None else f"{median(values):.1f}"


def large_set_section(result: dict[str, Any]) -> str:
    """A set larger than memory."""
    convert, epochs = result["convert"], result["epochs"]
    rows = [
        [f"{run['graphs']:,}", f"{run['epoch_s']:.1f}", f"{run['graphs_per_s']:,}", f"{1e6 / run['graphs_per_s']:.0f}",
         f"{run['largest_process_mib']:,} MiB"]
        for run in epochs
    ]  # fmt: skip
    growth, least = epochs[0]["graphs_per_s"] / epochs[-1]["graphs_per_s"], min(run["graphs_per_s"] for run in epochs)
    return (
        f"\n## A set larger than memory\n\nA table of {result['rows']:,} molecules (MOSES), of which {result['labelled']:,} have a target. "
        f"`asapool data convert --workers {result['jobs']}` takes {convert['seconds'] / 60:.1f} minutes and "
        f"{convert['memory_mib']:,} MiB in all processes (goals: 8 minutes, 1,536 MiB). Then `asapool train -j {result['jobs']}` "
        f"from the memory map, `asap+` with width 64 and batches of {epochs[0]['batch_size']} graphs (goals: 4,000 graphs a second, "
        "2,048 MiB per process):\n\n"
        + table(["training graphs", "epoch s", "graphs per s", "µs per graph", "largest process"], rows)
        + f"\nFrom {epochs[0]['graphs']:,} to {epochs[-1]['graphs']:,} graphs the cost per graph changes by a factor of {growth:.3f} "
        f"(goal: at most 1.15, to a million{'' if growth <= 1.15 else '; not reached'}). The goal of 4,000 graphs a second is "
        f"{'reached with every size' if least >= 4000 else 'not reached with every size'}.\n"
        + (f"\nIn this run {result['note']}.\n" if "note" in result else "")
        + measured_on(result)
    )
