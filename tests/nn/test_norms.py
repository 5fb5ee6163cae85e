"""Normalisations by name, and graph normalisation against torch_geometric's; readouts of every set."""

import itertools

import pytest
import torch

from asapool import kernels
from asapool.errors import ConfigError
from asapool.nn import GraphNorm, LayerNorm, NodeNorm, Readout, normalisation
from tests.graphs import random_batch, with_random_parameters

X, PTR = torch.tensor([[1.0, 9], [3, 5], [5, -6]]), torch.tensor([0, 2, 2, 3])  # two nodes, none, one


def pointer(batch):
    return torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(batch).cumsum(0)])


def test_graph_norm_by_hand(backend):
    """1, 3 have mean 2; with α = ½ the rest is 0, 2, of mean square 2: 0/√2 and 2/√2, times γ = 3, plus β = 1."""
    one = torch.ones(1)
    y = kernels.graph_norm(X[:2, :1], PTR[[0, 1]], 3 * one, one, one / 2, 0.0, backend=backend)
    torch.testing.assert_close(y.view(-1), torch.tensor([1, 1 + 6 / 2**0.5]))


def test_graph_norm_equals_torch_geometric_and_has_its_gradients(backend):
    from torch_geometric.nn import GraphNorm as Theirs

    x, _, _, batch = random_batch(4, F=3)
    ours, theirs = with_random_parameters(GraphNorm(3, backend=backend).double()), Theirs(3).double()
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(x, pointer(batch)), theirs(x, batch))
    inputs = [x.requires_grad_(), *ours.parameters()]
    assert torch.autograd.gradcheck(lambda *_: ours(x, pointer(batch)), inputs)


def test_graph_norm_with_any_number_of_threads(loops_shared):
    x, _, _, batch = random_batch(4, graphs=30, F=3, dtype=torch.float32)
    results = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        try:
            norm, x = with_random_parameters(GraphNorm(3)), x.detach().requires_grad_()
            y = norm(x, pointer(batch))
            results.append([y, *torch.autograd.grad(y.square().sum(), [x, *norm.parameters()])])
        finally:
            torch.set_num_threads(1)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_norms_by_name():
    x = torch.randn(6, 3)
    ptr = torch.tensor([0, 4, 6])
    assert type(normalisation("batch", 3)) is NodeNorm
    assert torch.equal(normalisation("batch", 3)(x, ptr), torch.nn.BatchNorm1d(3)(x))
    assert type(normalisation("layer", 3)) is LayerNorm
    assert torch.equal(normalisation("layer", 3)(x, ptr), torch.nn.LayerNorm(3)(x))
    assert torch.equal(normalisation("none", 3)(x, ptr), x)
    assert normalisation("batch", 3).train()(x[:1], ptr).isfinite().all()
    with pytest.raises(ConfigError, match="norm must be"):
        normalisation("instance", 3)
    with pytest.raises(ConfigError, match="whole number of at least 1"):
        normalisation("batch", 0)


VALUES = {"mean": [[2.0, 7], [0, 0], [5, -6]], "max": [[3.0, 9], [0, 0], [5, -6]], "sum": [[4.0, 14], [0, 0], [5, -6]]}
SETS = [s for n in (1, 2, 3) for s in itertools.permutations(VALUES, n)]


@pytest.mark.parametrize("parts", SETS, ids="-".join)
def test_every_set_of_readouts(parts, backend):
    expected = torch.cat([torch.tensor(VALUES[part]) for part in parts], dim=1)
    assert torch.equal(kernels.readout(X, PTR, parts, backend=backend), expected)
    assert torch.equal(Readout(parts, backend=backend)(X, ptr=PTR), expected)
    x, _, _, batch = random_batch(3, graphs=3, most=4, F=2)
    assert torch.autograd.gradcheck(lambda x: Readout(parts, backend=backend)(x, batch), [x.requires_grad_()])


def test_equal_maxima_share_the_gradient_also_beside_a_sum(backend):
    x = torch.tensor([[2.0], [1], [2]], requires_grad=True)
    kernels.readout(x, torch.tensor([0, 3]), ("max", "sum"), backend=backend).sum().backward()
    assert x.grad.view(-1).tolist() == [1.5, 1, 1.5]


@pytest.mark.parametrize("parts", [(), ("mean", "mean"), ("median",)])
def test_readouts_that_do_not_exist(parts):
    with pytest.raises(ConfigError, match="one or more of mean, max, sum, each once"):
        Readout(parts)
