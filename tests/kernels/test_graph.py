"""The values that a graph caches stay correct."""

import pytest
import torch

from asapool import kernels
from asapool.nn import GCN, Graph
from tests.graphs import PATH4

X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
PATTERN, SLOT = kernels.pack(PATH4, torch.tensor([0, 4]), 4)


def weights():
    drawn = torch.rand(6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return torch.zeros(10, dtype=torch.float64).index_add(0, SLOT, drawn)


@pytest.fixture
def layer(backend):
    return GCN(3, 2, backend=backend).double()


@pytest.mark.parametrize("trained", [False, True])
def test_weights_changed_in_place_are_seen(layer, trained):
    w = weights().requires_grad_(trained)
    graph = Graph(PATTERN, w)
    layer(X, graph)
    with torch.no_grad():
        w.mul_(w)
    torch.testing.assert_close(layer(X, graph), layer(X, Graph(PATTERN, w.detach().clone())))


def test_weights_that_are_trained_have_a_gradient_in_every_step(layer):
    w = weights().requires_grad_()
    graph = Graph(PATTERN, w)
    with torch.no_grad():
        layer(X, graph)
    grads = [torch.autograd.grad(layer(X, graph).square().sum(), w)[0] for _ in range(2)]
    assert grads[0].abs().sum() > 0
    assert torch.equal(*grads)


def test_intermediate_weights_have_a_gradient_after_use_without_gradients(layer):
    leaf = weights().requires_grad_()
    graph = Graph(PATTERN, 2 * leaf)
    with torch.no_grad():
        layer(X, graph)
    assert torch.autograd.grad(layer(X, graph).square().sum(), leaf)[0].abs().sum() > 0


def test_inference_first_and_training_after(layer):
    graph = Graph(PATTERN, weights())
    with torch.inference_mode():
        layer(X, graph)
    trained = layer(X, graph)
    trained.sum().backward()
    assert layer.lin.weight.grad.abs().sum() > 0
    with torch.inference_mode():
        assert torch.equal(layer(X, Graph(PATTERN, weights())), trained)


def test_computed_once(backend):
    graph = Graph(PATTERN, weights())
    assert graph.hat("add") is graph.hat("add")
    assert graph.hat("add") is not graph.hat("fill")
    assert kernels.gcn_weights(graph, backend=backend) is kernels.gcn_weights(graph, backend=backend)
