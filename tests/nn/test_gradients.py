"""Gradients in float64 against finite differences: features, edge weights and every parameter."""

import itertools

import pytest
import torch

from asapool.nn import GCN, ASAPooling, BasicLEConv, LEConv, Master2Token, Readout, Source2Token, Token2Token
from tests.graphs import random_batch, with_random_parameters


def check(function, inputs, parameters, *, random_direction=False):
    """All partial derivatives; with `random_direction` a random combination of them, which is much faster."""
    wanted = [t.requires_grad_() for t in inputs] + list(parameters)
    assert torch.autograd.gradcheck(lambda *_: function(), wanted, atol=1e-6, fast_mode=random_direction)


def pooled(pool, data, weights=True):
    x, edge_index, edge_weight, batch = data

    def run():
        out = pool(x, edge_index, edge_weight, batch)
        return (out.x, out.edge_weight) if weights else (out.x,)

    return run


DATA = {"seed": 11, "graphs": 2, "most": 6, "F": 2, "directed": True, "loops": True}


CHOICES = (("m2t", "t2t", "s2t"), ("leconv", "basic-leconv", "gcn"), ("both", "cluster", "none"))
PAIRS = [  # every attention with every fitness and every aggregate, every fitness with every aggregate
    (CHOICES[0][i], CHOICES[1][j], CHOICES[2][(i + j) % 3]) for i, j in itertools.product(range(3), repeat=2)
]


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize(("attention", "fitness", "aggregate"), PAIRS)
def test_every_attention_fitness_and_aggregate(attention, fitness, aggregate, hops, backend):
    data = random_batch(**DATA)
    pool = ASAPooling(2, attention=attention, fitness=fitness, aggregate=aggregate, hops=hops, backend=backend)
    pool = with_random_parameters(pool.double())
    check(pooled(pool, data), [data[0], data[2]], pool.parameters(), random_direction=True)


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("attention", ["m2t", "t2t", "s2t"])
@pytest.mark.parametrize("master", ["max", "mean"])
def test_sigma_outside(master, attention, hops, backend):
    """Here the query matters, so the master query and W have gradients; a second hop only adds members."""
    data = random_batch(**DATA)
    pool = ASAPooling(2, attention=attention, master=master, hops=hops, semantics="pyg", GNN=GCN, backend=backend)
    pool = with_random_parameters(pool.double())
    check(pooled(pool, data), [data[0], data[2]], pool.parameters(), random_direction=hops == 2)


def test_authors_features(backend):
    """Their S is detached when edges are formed, so only the features are fully differentiable."""
    data = random_batch(**DATA)
    pool = with_random_parameters(ASAPooling(2, semantics="authors", backend=backend).double())
    check(pooled(pool, data, weights=False), [data[0], data[2]], pool.parameters())


@pytest.mark.parametrize("options", [{"soft_edges": False}, {"max_neighbours": 1}, {"ratio": 1.0}, {"ratio": 2}])
def test_edge_options(options, backend):
    data = random_batch(**DATA)
    pool = with_random_parameters(ASAPooling(2, backend=backend, **options).double())
    check(pooled(pool, data), [data[0], data[2]], pool.parameters())


def test_through_two_levels(backend):
    """The weights of level two are functions of level one's attention; GCN's degrees are functions of them."""
    x, edge_index, edge_weight, batch = random_batch(**DATA)
    first, second = (with_random_parameters(ASAPooling(2, 0.7, backend=backend).double(), s) for s in (1, 2))

    def run():
        one = first(x, edge_index, edge_weight, batch)
        return second(one.x, one.edge_index, one.edge_weight, one.batch).x

    check(run, [x, edge_weight], [*first.parameters(), *second.parameters()])


@pytest.mark.parametrize("layer", [GCN(2, 3), GCN(3, 2, relu=True), LEConv(2, 3), BasicLEConv(2, 2)], ids=repr)
def test_convolutions(layer, backend):
    x, edge_index, edge_weight, _ = random_batch(**{**DATA, "F": layer.in_channels})
    layer = with_random_parameters(layer.double())
    layer.backend = backend
    check(lambda: layer(x, edge_index, edge_weight), [x, edge_weight], layer.parameters())


@pytest.mark.parametrize("kind", [Master2Token, Token2Token, Source2Token])
@pytest.mark.parametrize("sigma", ["inside", "outside"])
def test_attentions(kind, sigma, backend):
    x, edge_index, _, _ = random_batch(**DATA)
    layer = with_random_parameters(kind(2, sigma=sigma, backend=backend).double())
    check(lambda: layer(x, edge_index).alpha, [x], layer.parameters())


def test_readout_and_lift(backend):
    x, edge_index, edge_weight, batch = random_batch(**DATA)
    check(lambda: Readout(backend=backend)(x, batch), [x], [])
    pool = with_random_parameters(ASAPooling(2, backend=backend).double())

    def lifted():
        step = pool.explain(x, edge_index, edge_weight, batch)
        return step.lift(step.x)

    check(lifted, [x, edge_weight], pool.parameters())


def test_members_that_share_the_maximum_share_its_gradient(backend):
    from asapool import kernels

    pattern, _ = kernels.pack(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.tensor([0, 3]), 3, backend=backend)
    x = torch.tensor([[2.0], [1.0], [2.0]], requires_grad=True)
    m = kernels.cluster_max(pattern, x, backend=backend)
    assert m.view(-1).tolist() == [2.0, 2.0, 2.0]
    m[1].backward()  # the middle cluster holds 2, 1, 2
    assert x.grad.view(-1).tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("options", [{}, {"GNN": GCN}, {"attention": "dynamic"}])
def test_gradients_have_the_strides_of_the_weights(options, backend):
    """DistributedDataParallel warns of others."""
    pool = ASAPooling(5, backend=backend, **options).double()
    out = pool(*random_batch(8))
    (out.x.sum() + out.edge_weight.sum()).backward()
    strides = {name: (p.grad.stride(), p.stride()) for name, p in pool.named_parameters() if p.grad is not None}
    assert len(strides) > 5
    assert {name: pair for name, pair in strides.items() if pair[0] != pair[1]} == {}
