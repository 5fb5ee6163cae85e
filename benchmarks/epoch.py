"""One epoch (training and validation) with the authors' settings, beside the same network in torch_geometric's layers.

    python -m benchmarks.epoch [--data-root FOLDER] [--names PROTEINS,NCI1] [--threads 1,2] [--rounds 3]

Ours is `asapool.training.fit`, theirs a loop over torch_geometric's DataLoader as users write it; same split, same
batch size. The throughput of `asapool cv -j 2` is that of two such processes with one thread each.
Writes benchmarks/results/epoch.json.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch
import torch.nn.functional as F
from torch_geometric.loader import DataLoader

from asapool.data import GraphSet, load
from asapool.data.splits import authors_folds
from asapool.models import ModelConfig, build
from asapool.training import TrainConfig, fit
from benchmarks.measuring import in_turns, machine, per_data_set, spread, timed, write
from benchmarks.networks import SETTINGS, PyGNetwork, Setting

EPOCHS = 2  # per round; the ratio is of the same number on both sides


def ours(graphs: GraphSet, setting: Setting) -> Callable[[], None]:
    """Epochs of ours, authors' semantics."""
    config = ModelConfig(method="asap", hidden=setting.hidden, attention_dropout=setting.dropout, semantics="authors")
    train = TrainConfig(epochs=EPOCHS, batch_size=setting.batch, lr=setting.lr, seed=0)
    split = authors_folds(graphs, seed=8971, fold=0)

    def epochs() -> None:
        fit(build(config, graphs.num_features, graphs.num_classes, seed=0), graphs, split, train)

    return epochs


def theirs(graphs: GraphSet, setting: Setting) -> Callable[[], None]:
    """Epochs with torch_geometric."""
    split, objects = authors_folds(graphs, seed=8971, fold=0), list(graphs)
    train = DataLoader([objects[i] for i in split.train], batch_size=setting.batch, shuffle=True)
    val = DataLoader([objects[i] for i in split.val], batch_size=setting.batch)

    def epochs() -> None:
        model = PyGNetwork(graphs.num_features, setting)
        optimiser = torch.optim.Adam(model.parameters(), lr=setting.lr, weight_decay=5e-4)
        for _ in range(EPOCHS):
            model.train()
            for batch in train:
                optimiser.zero_grad()
                out = model(batch.x, batch.edge_index, batch.batch, batch.num_graphs)
                F.cross_entropy(out, batch.y).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                for batch in val:
                    model(batch.x, batch.edge_index, batch.batch, batch.num_graphs)

    return epochs


def _alone(name: str, root: str | None) -> float:
    """Seconds of our epochs in a process of its own, one thread, after a warm-up."""
    torch.set_num_threads(1)
    epochs = ours(load(name, data_root=root), SETTINGS[name])
    epochs()
    return timed(epochs)


def measure(name: str, threads: int, rounds: int, root: str | None) -> dict[str, Any]:
    """One data set; with two threads also two processes of ours at once."""
    torch.set_num_threads(threads)
    graphs, setting = load(name, data_root=root), SETTINGS[name]
    sides = {"asapool": ours(graphs, setting), "torch_geometric": theirs(graphs, setting)}
    seconds = in_turns(sides, rounds, warm_up=1, settle=False)  # an epoch is long enough to settle by itself
    result: dict[str, Any] = {
        "data": name,
        "threads": threads,
        "seconds_per_epoch": {side: spread([s / EPOCHS for s in values]) for side, values in seconds.items()},
        "times_faster": spread([a / b for a, b in zip(seconds["torch_geometric"], seconds["asapool"], strict=True)]),
    }
    if threads == 2:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            both = list(pool.map(_alone, [name, name], [root, root]))
        theirs_median = spread(seconds["torch_geometric"])["median"]
        result["throughput_of_two_processes"] = sum(theirs_median / s for s in both)
    return result


def main(arguments: list[str] | None = None) -> None:
    runs = per_data_set(__doc__, arguments, measure, rounds=3)
    write("epoch", {"what": "one epoch, training and validation", "runs": runs, "machine": machine()})


if __name__ == "__main__":
    main()
