"""Theorem 1 by training, with the package's kernels and with its layers."""

import pytest
import torch

from asapool.errors import ConfigError, InputError
from asapool.nn import GCN, LEConv
from asapool.theory.extremum import auc, bound, circulant, draw, gcn, leconv, train


@pytest.mark.parametrize("r", [2, 4])
def test_leconv_solves_the_task_and_gcn_stays_at_its_bound(r):
    good, stuck = (train(layer, "above", seed=r, r=r, steps=150) for layer in ("leconv", "gcn"))
    assert good.accuracy > 0.98
    assert good.auc > 0.999
    assert stuck.bound == 0.5
    assert stuck.accuracy < 0.5 + 0.03  # 6144 nodes of 512 independent graphs: four standard errors
    assert abs(stuck.auc - 0.5) < 0.03


def test_local_maxima():
    good, stuck = (train(layer, "maximum", steps=100) for layer in ("leconv", "gcn"))
    assert stuck.accuracy <= bound("maximum", 2) + 0.03
    assert abs(stuck.auc - 0.5) < 0.03
    assert good.accuracy > 0.88
    assert good.auc > 0.96


@pytest.mark.parametrize(("name", "least", "most"), [("leconv", 0.98, 1.0), ("gcn", 0.0, 0.53)])
def test_the_layers_themselves(name, least, most):
    generator = torch.Generator().manual_seed(0)
    seen, unseen = (draw("above", 256, generator) for _ in range(2))
    torch.manual_seed(0)
    layer = (LEConv(4, 1) if name == "leconv" else GCN(4, 1)).double()
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(150):
        optimiser.zero_grad()
        score = layer(seen.x, seen.graph).view(-1)
        torch.nn.functional.binary_cross_entropy_with_logits(score, seen.y.double()).backward()
        optimiser.step()
    with torch.no_grad():
        right = ((layer(unseen.x, unseen.graph).view(-1) > 0) == unseen.y).double().mean()
    assert least <= float(right) <= most


def test_no_gcn_weights_do_better_than_chance():
    sample = draw("above", 2000, torch.Generator().manual_seed(5))
    for seed in range(20):
        W = torch.randn(4, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        assert abs(auc(gcn(sample.graph, sample.x, W).view(-1), sample.y) - 0.5) < 0.02


def test_the_constructed_leconv_is_perfect():
    sample = draw("above", 100, torch.Generator().manual_seed(6))
    W = torch.eye(4, 1, dtype=torch.float64)
    phi = leconv(sample.graph, sample.x, 0 * W, W, W).view(-1)
    assert torch.equal(phi > 0, sample.y)


def test_on_complete_graphs_every_gcn_of_any_depth_scores_all_nodes_alike():
    sample = draw("above", 3, torch.Generator().manual_seed(7), N=5, r=4)
    x = sample.x
    for seed in range(3):
        W = torch.randn(x.size(1), 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        x = gcn(sample.graph, x, W).tanh()
        assert float((x.view(3, 5, 4) - x.view(3, 5, 4)[:, :1]).abs().max()) < 1e-12


def test_labels_by_hand():
    sample = draw("maximum", 1, torch.Generator().manual_seed(0), N=5)
    s = sample.x[:, 0].tolist()
    assert sample.y.tolist() == [s[i] > s[i - 1] and s[i] > s[(i + 1) % 5] for i in range(5)]
    sample = draw("above", 1, torch.Generator().manual_seed(0), N=5)
    assert sample.y.tolist() == [2 * s[i] > s[i - 1] + s[(i + 1) % 5] for i in range(5)]


def test_equal_scores_share_a_rank():
    assert auc(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, False, True])) == 0.5


def test_the_same_seed_gives_the_same_run():
    assert train("gcn", "above", seed=3, steps=10, copies=16) == train("gcn", "above", seed=3, steps=10, copies=16)


def test_invalid_arguments_are_refused():
    with pytest.raises(InputError, match="r must be even"):
        circulant(5, 3)
    with pytest.raises(ConfigError, match="task must be one of"):
        bound("minimum", 2)
