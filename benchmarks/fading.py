"""A training step when weights have faded below the smallest normal number, with and without flushing them to zero.

    python -m benchmarks.fading [--data-root FOLDER] [--names NCI1] [--threads 1] [--rounds 15]

Weight decay draws a weight that no example asks for towards zero; see asapool.kernels.threads. Here the weights of the
GCN inside every pooling are made that small. Writes benchmarks/results/fading.json.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from asapool.data import load
from asapool.kernels.threads import flush_denormals
from benchmarks.measuring import in_turns, machine, per_data_set, spread, write
from benchmarks.networks import SETTINGS, training_step
from benchmarks.step import our_network


def flushed(step: Callable[[], None]) -> Callable[[], None]:
    """The step as `asapool.training.fit` runs it."""

    def run() -> None:
        with flush_denormals():
            step()

    return run


def measure(name: str, threads: int, rounds: int, root: str | None) -> dict[str, Any]:
    """One data set at one number of threads."""
    torch.set_num_threads(threads)
    setting = SETTINGS[name]
    graphs = load(name, data_root=root)
    batch = graphs.batch(torch.arange(setting.batch).numpy())
    parts, steps = (batch.x, batch.ptr, batch.rowptr, batch.col), {}
    for side in ("as drawn", "faded", "faded, flushed"):
        model = our_network(batch, setting, semantics="paper")
        if side != "as drawn":
            for pool in model.encoder.pools:
                pool.inner.lin.weight.data.mul_(1e-39)
        step = training_step(model, lambda model=model: F.cross_entropy(model(*parts), batch.y))
        steps[side] = flushed(step) if side == "faded, flushed" else step
    seconds = in_turns(steps, rounds)
    return {
        "data": name,
        "threads": threads,
        "milliseconds": {side: spread([1e3 * s for s in values]) for side, values in seconds.items()},
        "slower": {
            side: spread([a / b for a, b in zip(seconds[side], seconds["as drawn"], strict=True)])
            for side in ("faded", "faded, flushed")
        },
    }


def main(arguments: list[str] | None = None) -> None:
    runs = per_data_set(__doc__, arguments, measure, names="NCI1", threads="1")
    write("fading", {"what": "a training step with faded weights", "runs": runs, "machine": machine()})


if __name__ == "__main__":
    main()
