"""Layers on a padded batch give the numbers and gradients they give on the packed one."""

import pytest
import torch

from asapool.errors import ConfigError
from asapool.nn import GCN, GIN, GINE, SAGE, ASAPooling, SAGPooling, TopKPooling
from asapool.nn.norms import NodeNorm, normalisation
from tests.graphs import with_random_parameters
from tests.kernels.test_dense import Both, F

VARIANTS = [
    {},
    {"semantics": "authors"},
    {"semantics": "pyg"},
    {"semantics": "pyg", "add_self_loops": True},
    {"attention": "t2t", "hops": 2},
    {"attention": "s2t", "semantics": "authors", "aggregate": "cluster"},
    {"master": "mean", "semantics": "authors", "fitness": "gcn"},
    {"fitness": "basic-leconv", "aggregate": "none", "soft_edges": False},
    {"max_neighbours": 2, "ratio": 0.8},
    {"ratio": 2},
    {"attention": "dynamic"},
    {"attention": "dynamic", "master": "mean", "hops": 2},
]


def named(options):
    return ",".join(f"{k}={v}" for k, v in options.items()) or "paper"


@pytest.mark.parametrize("options", VARIANTS, ids=named)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_three_levels_of_pooling(options, directed):
    both = Both(3, directed=directed)
    pool = with_random_parameters(ASAPooling(F, **{"ratio": 0.6, **options}).double(), seed=1)
    grads, outputs = [], []
    for x, graph, kept in ((both.x, both.graph, None), (both.padded_x, both.padded, "mask")):
        h = start = x.clone().requires_grad_()
        pool.zero_grad()
        for _ in range(3):
            step = pool.step(h, graph)
            h, graph = step.x, step.after
        real = h if kept is None else h[graph.pattern.ptr.mask]
        weight = graph.weight
        (real.square().sum() + weight.pow(2).sum()).backward()
        outputs.append((real, weight.sum(), graph.pattern.ptr.diff()))
        own = start.grad if kept is None else both.real(start.grad)
        grads.append([own, *(p.grad for p in pool.parameters() if p.grad is not None)])
    (a, a_total, a_sizes), (b, b_total, b_sizes) = outputs
    assert torch.equal(a_sizes, b_sizes)
    assert torch.allclose(a, b)
    assert torch.allclose(a_total, b_total)
    for one, other in zip(*grads, strict=True):
        assert torch.allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("layer", [TopKPooling, SAGPooling])
def test_selection(layer):
    both = Both(2)
    pool = with_random_parameters(layer(F, 0.5).double())
    packed, padded = pool.step(both.x, both.graph), pool.step(both.padded_x, both.padded)
    mask = padded.ptr.mask
    assert torch.equal(packed.ptr.diff(), padded.ptr.sizes)
    assert torch.allclose(packed.x, padded.x[mask])
    assert torch.allclose(packed.after.weight.sum(), padded.after.weight.sum())


@pytest.mark.parametrize(
    "layer",
    [
        GCN(F, 7, relu=True),
        GCN(F, 2, loops="fill"),
        GIN(F, 4),
        GIN(F, 4, train_eps=True, batch_norm=True),
        SAGE(F, 7, relu=True),
        SAGE(F, 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_convolutions(layer, training):
    both = Both(5, loops=True)
    layer = with_random_parameters(layer.double()).train(training)
    state = {k: v.clone() for k, v in layer.state_dict().items()}
    packed = layer(both.x, both.graph)
    statistics = {k: v for k, v in layer.state_dict().items() if "running" in k}
    after = {k: v.clone() for k, v in statistics.items()}
    layer.load_state_dict(state)
    assert torch.allclose(packed, both.real(layer(both.padded_x, both.padded)))
    for name, value in after.items():
        assert torch.allclose(value, layer.state_dict()[name])


def test_edge_features():
    both = Both(7)
    both.graph.edge_attr = torch.randn(both.pattern.col.numel(), 3, dtype=torch.float64)
    both.graph.edge_attr[both.pattern.diag] = 0
    both.padded.edge_attr = torch.stack([both.pad_entries(both.graph.edge_attr[:, d]) for d in range(3)], dim=3)
    layer = with_random_parameters(GINE(F, 4, 3, train_eps=True, batch_norm=True).double())
    assert torch.allclose(layer(both.x, both.graph), both.real(layer(both.padded_x, both.padded)))


@pytest.mark.parametrize("name", ["batch", "graph", "layer", "none"])
def test_normalisations(name):
    both = Both(1)
    norm = with_random_parameters(normalisation(name, F).double())
    noisy = both.padded_x + (~both.padded.pattern.ptr.mask)[:, :, None] * 1e3
    assert torch.allclose(norm(both.x, both.ptr), both.real(norm(noisy, both.padded.pattern.ptr)))


def test_a_single_node_uses_the_running_statistics():
    from asapool.kernels import Padding

    norm = NodeNorm(1)
    x = torch.tensor([[[3.0], [9.0]]])
    assert torch.allclose(norm(x, Padding(torch.tensor([1]), 2))[0, 0], norm(torch.tensor([[3.0]])), atol=1e-6)
    assert int(norm.num_batches_tracked) == 0


@pytest.mark.parametrize("options", [{}, {"max_neighbours": 2}, {"soft_edges": False}], ids=named)
def test_edge_features_through_two_levels(options):
    both = Both(3, directed=True)
    e = torch.linspace(-1, 1, 2 * both.pattern.col.numel(), dtype=both.x.dtype).view(-1, 2)
    e = e * (both.graph.weight != 0)[:, None]
    both.graph.edge_attr = e
    both.padded.edge_attr = torch.stack([both.pad_entries(column) for column in e.unbind(1)], dim=-1)
    pool = with_random_parameters(ASAPooling(F, 0.6, **options).double(), seed=1)
    totals = []
    for x, graph in ((both.x, both.graph), (both.padded_x, both.padded)):
        for _ in range(2):
            step = pool.step(x, graph)
            x, graph = step.x, step.after
        edges = graph.edge_attr * graph.weight.unsqueeze(-1)
        totals.append((edges.flatten(0, -2).sum(0), graph.edge_attr.square().sum()))
    for packed, padded in zip(*totals, strict=True):
        torch.testing.assert_close(packed, padded)


def test_members_need_a_packed_batch():
    both = Both(3)
    with pytest.raises(ConfigError, match="packed batch"):
        ASAPooling(F, assign="members").double().step(both.padded_x, both.padded)
