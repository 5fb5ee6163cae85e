"""Explainers that importance is compared with (benchmarks/explainers.py) find what they should on small graphs."""

import numpy as np
import pytest
import torch

from asapool.data import GraphSet, load
from asapool.insight.importance import frozen
from asapool.models import ModelConfig, build
from benchmarks.explainers import PGExplainer, SubgraphX, gnn_explainer, trained_pg_explainer
from tests.insight.test_faithfulness import Sum, path


def test_subgraphx_finds_the_pair_that_decides():
    # the log odds of class 1 are Σ x = 1: without nodes 2 and 3 they would be −5
    scores = SubgraphX(Sum(), path([-1.0, -1.0, 3.0, 3.0, -1.0, -1.0, -1.0]), 0, 1, size=2, rollouts=20)()
    assert set(np.argsort(-scores)[:2].tolist()) == {2, 3}


def test_the_shapley_value_of_a_subgraph_without_players_around_it_is_exact():
    graphs = GraphSet(x=np.array([[2.0], [-1.0]]), ptr=[0, 2], rowptr=[0, 0, 0], col=[])
    search = SubgraphX(Sum(), graphs, 0, 1, size=1)
    with_it, without = torch.tensor([1.0, -1.0]).sigmoid().tolist()  # node 1 is not in reach of node 0, so it stays
    assert search.shapley([np.array([True, False])]) == pytest.approx([with_it - without], abs=1e-6)


@pytest.mark.parametrize("method", ["asap", "asap+"])
def test_pgexplainer_learns_a_mask_of_the_edges(method):
    graphs = load("synthetic:motifs?graphs=8&nodes=9")
    model = build(ModelConfig(method=method, hidden=8, levels=1), graphs.num_features, 2, seed=0)
    with frozen(model):
        before, after = (PGExplainer(model, graphs, seed=0, epochs=epochs)(graphs, 0) for epochs in (0, 3))
        again = PGExplainer(model, graphs, seed=0, epochs=3)(graphs, 0)
    assert before.shape == after.shape == (graphs.ptr[1],)
    assert np.isfinite(after).all()
    assert not np.allclose(before, after)
    np.testing.assert_array_equal(after, again)


def test_of_several_pgexplainers_the_one_with_the_lowest_loss_is_kept():
    graphs = load("synthetic:motifs?graphs=8&nodes=9")
    model = build(ModelConfig(hidden=8, levels=1), graphs.num_features, 2, seed=0)
    with frozen(model):
        kept = trained_pg_explainer(model, graphs, seed=2, attempts=3)
        losses = [PGExplainer(model, graphs, seed=2000 + k).last_loss for k in range(3)]
    assert kept.last_loss == min(losses) < max(losses)


def test_gnnexplainer_leaves_the_model_in_evaluation_mode():
    graphs = load("synthetic:motifs?graphs=4&nodes=9")
    model = build(ModelConfig(hidden=8, levels=1), graphs.num_features, 2, seed=0)
    with frozen(model):
        mask = gnn_explainer(model, graphs, 0)
        assert not any(module.training for module in model.modules())
    assert mask.shape == (graphs.ptr[1],)
