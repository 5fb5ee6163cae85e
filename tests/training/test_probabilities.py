"""Probabilities are numbers, or there are none."""

import numpy as np
import pytest
import torch

from asapool.data import load
from asapool.errors import DataError
from asapool.models import ModelConfig, build
from asapool.training.predictions import predict


@pytest.fixture
def graphs():
    return load("synthetic:cycles?graphs=12&nodes=6")


def test_a_graph_that_overflows_the_model_is_named(graphs):
    model = build(ModelConfig(method="none", hidden=4), graphs.num_features, 2, seed=0)
    x = graphs.x.copy()
    x[graphs.ptr[7]] = 3e38
    huge = graphs.with_fields(x=x)
    with pytest.raises(DataError, match=r"cycles, graph 7 \(id '7'\): finite logits expected.* huge features"):
        predict(model, huge)
    with pytest.raises(DataError, match="graph 7 "):
        predict(model, huge, [9, 7, 2])
    assert np.isfinite(predict(model, huge, [9, 2])).all()


def test_a_model_that_learned_nothing_finite_is_refused(graphs):
    model = build(ModelConfig(hidden=4), graphs.num_features, 2, seed=0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(float("nan"))
    with pytest.raises(DataError, match=r"gave \[nan, nan\]\. .* train the model again"):
        predict(model, graphs)
