"""warm_up: compile the CPU kernels before the first training run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from types import SimpleNamespace

import numpy as np

from asapool.data import load
from asapool.models import ModelConfig, build
from asapool.models.batches import edge_channels
from asapool.models.methods import method
from asapool.training.config import TrainConfig
from asapool.training.fitting import fit
from asapool.training.new_model import typical_nodes
from asapool.training.predictions import predict


def warm_up(methods: Sequence[str] = ("asap+", "asap")) -> float:
    """Train and predict a few small graphs with each method, so that its kernels are compiled and cached.

    Each method is trained on graphs without edge features and on the same graphs with some.

    Args:
        methods: Names of methods; those without gradient descent have no kernels and are skipped.

    Returns:
        Seconds that it took; about one if the kernels were already cached.
    """
    start = perf_counter()
    plain = load("synthetic:motifs?graphs=8&nodes=9")
    bonds = np.random.default_rng(0).integers(0, 2, (len(plain.col), 2)).astype(np.float32)
    parts = SimpleNamespace(train=np.arange(6), val=np.arange(6, 8))
    for name in methods:
        for graphs in (plain, replace(plain, edge_attr=bonds)):
            if method(name).trainer == "gradient":
                config = ModelConfig(method=name, hidden=8, levels=2, attention_dropout=0.1)
                model = build(
                    config, graphs.num_features, graphs.target.outputs, seed=0, edge_channels=edge_channels(graphs),
                    typical_nodes=typical_nodes(graphs, parts.train),
                )  # fmt: skip
                fit(model, graphs, parts, TrainConfig(epochs=1, seed=0))
                predict(model, graphs)
    return perf_counter() - start
