"""Sections of docs/performance.md that compare with torch_geometric: a training step, an epoch, one layer."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import measured_on, table, times

BARS = {"PROTEINS": 8, "DD": 8, "NCI1": 7}  # times faster than torch_geometric, with one thread
WORKERS = ("asapool paper", "asapool authors", "asapool pyg", "torch_geometric")


def step_section(result: dict[str, Any]) -> str:
    """Training steps."""
    rows, goals, counts, others = [], [], [], list[list[str]]()
    reached: dict[str, list[float]] = {}
    pool = any("torch-geometric-pool" in run["milliseconds"] for run in result["runs"])  # where it was installed
    for run in result["runs"]:
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
        if run["threads"] == 1:
            reached.setdefault(run["data"], []).append(faster["asapool paper"]["median"])
        if "asapool drop-in" in faster:
            others.append(
                [run["data"], str(run["threads"]), ms["torch_geometric"], ms["asapool drop-in"],
                 times(faster["asapool drop-in"]), times(run["drop_in_times_faster_without_pooling"]),
                 ms["asapool dense"], times(faster["asapool dense"]), times(faster["asapool reference"])]
            )  # fmt: skip
        counts.append([run["data"], *(_edges(run, side) for side in WORKERS)])
    for data, ratios in reached.items():
        least, bar = min(ratios), BARS[data]
        goals.append(f"- {data}: goal {bar}×, reached {least:.1f}×{'' if least >= bar else ' — not reached'}.")
    head = ["data", "threads", "torch_geometric ms", "paper ms", "faster", "authors ms", "faster", "pyg ms", "faster",
            "reference ms", "floor ms", "paper / floor"]  # fmt: skip
    intro = (
        "\n## A training step\n\nForward, backward and Adam of the three-level network with the authors' settings, on one real "
        "batch. The floor is the dense matrix products of the same step alone, computed by torch. On AMD processors with "
        "AVX-512 asapool computes them itself in half the time (MKL does not use the whole width there), so that a step can "
        "come close to the floor or below. asapool and torch_geometric pool with the same weights, which do not change during "
        "timing.\n\n"
    )
    if pool:
        head += ["torch-geometric-pool ms", "paper faster"]
        intro = (
            intro.rstrip()
            + " torch-geometric-pool keeps the edges among the kept nodes instead of SᵀAS, which is less work.\n\n"
        )
    edges = (
        "\nEdges at the three levels, without self-loops; the semantics decide which clusters are kept, and so how many edges "
        "there are between them:\n\n" + table(["data", *WORKERS], _once(counts)) + "\n"
    )
    return intro + table(head, rows) + edges + "\n".join(goals) + "\n" + _drop_in(others) + measured_on(result)


def _drop_in(rows: list[list[str]]) -> str:
    """Our pooling between torch_geometric's layers, and the plain torch backends."""
    if not rows:
        return ""
    head = ["data", "threads", "torch_geometric ms", "drop-in ms", "faster", "faster with pooled graphs given", "dense ms",
            "dense faster", "reference faster"]  # fmt: skip
    return (
        "\nThe drop-in case is torch_geometric's network with our pooling instead of its own: its GCNConv and readouts stay, "
        "and every pooling layer packs its edges and unpacks the pooled ones (goal: 5×). The upper bound for any pooling layer "
        "is torch_geometric's network with pooled graphs given, so that only its own convolutions and readouts "
        "remain. `dense` and `reference` are the plain torch backends (goals: dense 2× on NCI1 and "
        "1.5× on PROTEINS, reference 1× on D&D).\n\n" + table(head, rows)
    )


def plus_section(result: dict[str, Any]) -> str:
    """The cost of pooling in asap+."""
    rows = [
        [run["data"], str(run["threads"]), *(f"{run['milliseconds'][m]['median']:.1f}" for m in ("asap+", "none+")),
         times(run["times_none_plus"])]
        for run in result["runs"]
    ]  # fmt: skip
    return (
        "\n## asap+ and none+\n\nA training step of `asap+` beside one of `none+`, the same network without pooling, with the "
        "default settings for the data set (goal: at most 1.6×).\n\n"
        + table(["data", "threads", "asap+ ms", "none+ ms", "asap+ / none+"], rows)
        + measured_on(result)
    )


def repeated_section(result: dict[str, Any]) -> str:
    """The same once more, so that a reader sees how much a machine of a cloud matters."""
    return _elsewhere(
        "The generation of processors before",
        "The same script on an AMD EPYC that runs 512-bit instructions in two halves, with later code. Every side takes "
        "longer here, asapool on the small networks by more than torch_geometric. The ratios of one run are good to about a "
        "tenth:",
        result,
    )


def intel_section(result: dict[str, Any]) -> str:
    """The same on an Intel processor."""
    return _elsewhere(
        "An Intel processor with AVX-512", "The same script, before sums over neighbours stayed in registers:", result
    )


def other_processor_section(result: dict[str, Any]) -> str:
    """The same on a processor without AVX-512."""
    return _elsewhere(
        "A processor without AVX-512",
        "The same script with fewer rounds, before sums over neighbours stayed in registers and the groups of the dense "
        "backend were chosen by their time:",
        result,
    )


def _elsewhere(title: str, intro: str, result: dict[str, Any]) -> str:
    sides = ("asapool paper", "asapool drop-in", "asapool dense", "asapool reference")
    rows = [
        [run["data"], str(run["threads"]), f"{run['milliseconds']['torch_geometric']['median']:.1f}",
         *(times(run["times_faster_than_pyg"][side]) for side in sides), times(run["times_the_floor"])]
        for run in result["runs"]
    ]  # fmt: skip
    head = ["data", "threads", "torch_geometric ms", *sides, "paper / floor"]
    return f"\n### {title}\n\n{intro}\n\n" + table(head, rows) + measured_on(result)


def older_processor_section(result: dict[str, Any]) -> str:
    """The distance to the floor with slower matrix products."""
    rows = [
        [run["data"], str(run["threads"]),
         *(f"{run['milliseconds'][side]['median']:.1f}" for side in ("asapool paper", "matrix products")),
         times(run["times_the_floor"]), times(run["times_faster_than_pyg"]["asapool paper"])]
        for run in result["runs"]
    ]  # fmt: skip
    head = ["data", "threads", "paper ms", "floor ms", "paper / floor", "faster than torch_geometric"]
    return (
        "\n### The floor without AVX-512\n\nThe floor depends on the processor: AVX-512 multiplies twice as fast, so that "
        "everything else weighs twice as much beside it. The same with torch's products limited to AVX2, as on processors "
        "without AVX-512 (`MKL_ENABLE_INSTRUCTIONS=AVX2 python -m benchmarks.step`):\n\n"
        + table(head, rows) + measured_on(result)
    )  # fmt: skip


def _edges(run: dict[str, Any], side: str) -> str:
    return ", ".join(f"{count:,}" for count in run["edges"][side])


def _once(rows: list[list[str]]) -> list[list[str]]:
    return [row for k, row in enumerate(rows) if row not in rows[:k]]


def epoch_section(result: dict[str, Any]) -> str:
    """Epochs."""
    rows = [
        [run["data"], str(run["threads"]),
         *(f"{run['seconds_per_epoch'][side]['median']:.2f}" for side in ("torch_geometric", "asapool")),
         times(run["times_faster"]),
         f"{run['throughput_of_two_processes']:.1f}×" if "throughput_of_two_processes" in run else "–"]
        for run in result["runs"]
    ]  # fmt: skip
    head = ["data", "threads", "torch_geometric s", "asapool s", "faster", "two processes, one thread each"]
    return (
        "\n## An epoch\n\nTraining and validation with the authors' settings: `asapool.training.fit` beside the same network in "
        "torch_geometric's layers and DataLoader. The last column is the throughput of two of our processes, as run by "
        "`asapool cv -j 2`, relative to one torch_geometric process (goals: 5× and 9×).\n\n"
        + table(head, rows)
        + measured_on(result)
    )


def sharing_section(result: dict[str, Any]) -> str:
    """Epochs of one training run shared by two processes."""
    rows = [
        [run["data"], *(f"{run['seconds_per_epoch'][side]['median']:.2f}" for side in ("one process", "two processes")),
         times(run["times_faster"]), times(run["ceiling"])]
        for run in result["runs"]
    ]  # fmt: skip
    return (
        "\n## One training run in two processes\n\nAn epoch of `asapool train` and of `asapool train -j 2`, one thread per "
        "process, authors' settings (goal: 1.7×). The ceiling is the work of two independent training runs side by side.\n\n"
        + table(["data", "one process s", "two processes s", "faster", "ceiling"], rows)
        + measured_on(result)
    )


def operator_section(result: dict[str, Any]) -> str:
    """One layer called with edge_index."""
    rows = [
        [run["data"], str(run["threads"]), what,
         *(f"{run[what]['milliseconds'][side]['median']:.2f}" for side in ("torch_geometric", "asapool", "asapool pyg")),
         *(times(run[what]["times_faster_than_pyg"][side]) for side in ("asapool", "asapool pyg"))]
        for run in result["runs"] for what in ("inference", "forward and backward")
    ]  # fmt: skip
    head = ["data", "threads", "what", "torch_geometric ms", "asapool ms", "asapool pyg ms", "faster", "faster (pyg)"]
    return (
        "\n## One pooling layer, called like torch_geometric's\n\nIncludes input checks and packing of the edges.\n\n"
        + table(head, rows) + measured_on(result)
    )  # fmt: skip
