"""One epoch of one training, alone and shared by two processes (`asapool train -j 2`), one thread each.

    python -m benchmarks.sharing [--data-root FOLDER] [--names NCI1,DD] [--rounds 5]

Authors' settings. A round is a training of a few epochs on each side; the first epoch, in which processes start and
loops are loaded, does not count. Before timing, the losses of both sides are compared. What two cores can give at most
is measured too: an epoch of one process while another one trains independently; twice the time alone divided by it is
the `ceiling`.
Writes benchmarks/results/sharing.json.
"""

from __future__ import annotations

import multiprocessing as mp
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asapool.data import GraphSet
from asapool.training import RunSettings, resolve, start
from asapool.training.parallel import Processes
from asapool.training.state import Epoch, Progress
from benchmarks.measuring import machine, per_data_set, spread, write
from benchmarks.networks import SETTINGS

EPOCHS = 4


def epochs(settings: RunSettings, graphs: GraphSet, jobs: int) -> list[Epoch]:
    """The epochs of a training with so many processes."""
    seen: list[Epoch] = []

    def on_epoch(epoch: Epoch, progress: Progress) -> None:
        seen.append(epoch)

    with tempfile.TemporaryDirectory() as folder, Processes(jobs) as processes:
        start(settings, graphs, Path(folder) / "run", on_epoch=on_epoch, processes=processes)
    return seen


def train_on(settings: RunSettings, graphs: GraphSet, begun: Any) -> None:
    """Train again and again, until the process is ended."""
    torch.set_num_threads(1)
    while True:
        epochs(settings, graphs, 1)
        begun.set()


def beside_another(settings: RunSettings, graphs: GraphSet) -> list[Epoch]:
    """The epochs of a training while another process trains the same."""
    context = mp.get_context("spawn")
    begun = context.Event()
    other = context.Process(target=train_on, args=(settings, graphs, begun), daemon=True)
    other.start()
    begun.wait()
    try:
        return epochs(settings, graphs, 1)
    finally:
        other.terminate()
        other.join()


def measure(name: str, threads: int, rounds: int, root: str | None) -> dict[str, Any]:
    """One data set."""
    torch.set_num_threads(1)
    setting = SETTINGS[name]
    tables = {
        "data": {"source": name, "data_root": root},
        "model": {
            "method": "asap", "semantics": "authors", "hidden": setting.hidden, "attention_dropout": setting.dropout,
        },
        "train": {"epochs": EPOCHS, "batch_size": setting.batch, "lr": setting.lr, "threads": 1},
    }  # fmt: skip
    settings, graphs = resolve(tables)
    settings = replace(settings, train=replace(settings.train, threads=1))
    seconds: dict[str, list[float]] = {"one process": [], "two processes": [], "one beside another": []}
    one, two, beside = seconds.values()
    for _ in range(rounds):
        made = [epochs(settings, graphs, 1), epochs(settings, graphs, 2), beside_another(settings, graphs)]
        np.testing.assert_allclose(made[1][0].loss, made[0][0].loss, rtol=1e-3)  # later ones go their own ways
        for held, values in zip(made, seconds.values(), strict=True):
            values.append(statistics.median(epoch.seconds for epoch in held[1:]))
    return {
        "data": name,
        "seconds_per_epoch": {kind: spread(values) for kind, values in seconds.items()},
        "times_faster": spread([a / b for a, b in zip(one, two, strict=True)]),
        "ceiling": spread([2 * a / b for a, b in zip(one, beside, strict=True)]),
    }


def main(arguments: list[str] | None = None) -> None:
    runs = per_data_set(__doc__, arguments, measure, names="NCI1,DD", threads="1", rounds=5)
    write("sharing", {"what": "one epoch with one and two processes", "runs": runs, "machine": machine()})


if __name__ == "__main__":
    main()
