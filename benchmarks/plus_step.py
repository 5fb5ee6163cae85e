"""A training step of asap+ beside one of none+, the same network without pooling: what pooling costs.

    python -m benchmarks.plus_step [--data-root FOLDER] [--names PROTEINS,NCI1,DD] [--threads 1] [--rounds 15]

Default settings of each method for the data set, one real batch, forward and backward and AdamW, in turns. Writes
benchmarks/results/plus_step.json.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from asapool.data import GraphSet, load
from asapool.models.batches import cut
from asapool.training.adam import Adam
from asapool.training.new_model import new_model
from asapool.training.settings import settings_of_methods
from benchmarks.measuring import in_turns, machine, per_data_set, spread, write

METHODS = ("asap+", "none+")


def side(method: str, graphs: GraphSet) -> Callable[[], None]:
    """A step of one method; the rate is zero, so that it does the same in every round."""
    settings = settings_of_methods(METHODS, graphs, {})[method]
    model = new_model(settings.model, graphs, np.arange(len(graphs)), settings.train).train()
    chosen = np.random.default_rng(0).permutation(len(graphs))[: settings.train.batch_size]
    batch = cut(model, graphs, chosen)
    adam = Adam(model.parameters(), weight_decay=settings.train.weight_decay, decoupled=True)

    def step() -> None:
        adam.zero_grad()
        logits, penalty = model.forward_with_penalty(*batch.inputs, **model.more(batch))
        (F.cross_entropy(logits, batch.y) + penalty).backward()
        adam.step(lr=0.0)

    return step


def measure(name: str, threads: int, rounds: int, root: str | None) -> dict[str, Any]:
    """One data set at one number of threads."""
    torch.set_num_threads(threads)
    graphs = load(name, data_root=root)
    seconds = in_turns({method: side(method, graphs) for method in METHODS}, rounds)
    return {
        "data": name,
        "threads": threads,
        "milliseconds": {method: spread([1e3 * s for s in values]) for method, values in seconds.items()},
        "times_none_plus": spread([a / b for a, b in zip(*seconds.values(), strict=True)]),
    }


def main(arguments: list[str] | None = None) -> None:
    runs = per_data_set(__doc__, arguments, measure, threads="1")
    write("plus_step", {"what": "one training step of asap+ and of none+", "runs": runs, "machine": machine()})


if __name__ == "__main__":
    main()
