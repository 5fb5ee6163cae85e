"""Edge masks of torch_geometric's explainers on models that pool."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import GCNConv, GraphConv, global_mean_pool

from asapool.nn import GCN, ASAPooling, TopKPooling, explainable
from tests.graphs import random_batch

X, EDGES, WEIGHT, BATCH = random_batch(8, F=8, dtype=torch.float32)
TRIANGLES = torch.tensor([[0, 1, 2, 2, 3, 4, 5, 6], [1, 2, 0, 3, 4, 5, 6, 4]])  # two, joined by a path
ONE = torch.randn(7, 4, generator=torch.Generator().manual_seed(2)), torch.cat([TRIANGLES, TRIANGLES.flip(0)], dim=1)
PATH3 = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def masked(model, mask, *args, **kwargs):
    """The result of a model under a mask of numbers between 0 and 1."""
    wrapped = explainable(model)
    set_masks(wrapped, mask, args[1], apply_sigmoid=False)
    result = wrapped(*args, **kwargs)
    clear_masks(wrapped)
    return result


def even(semantics="paper", **options):
    """A pool with uniform memberships before a mask is applied, and φ_i = x_i + Σ_j A_ij (x_i − x_j)."""
    pool = ASAPooling(1, ratio=2, semantics=semantics, **options)
    nn.init.zeros_(pool.attention.w)
    for W in (pool.fitness.W1, pool.fitness.W2, pool.fitness.W3):
        nn.init.ones_(W)
    return pool


def test_a_mask_by_hand(backend):
    """The path 0 – 1 – 2, whose second edge has the mask ½.

    α: c(0) ½, ½ · c(1) ⅓, ⅓, ½·⅓ over ⅚ = 0.4, 0.4, 0.2 · c(2) ½·½, ½ over ¾ = ⅓, ⅔, so x^c = 1.5, 2, 10/3.
    φ: 1.5 − 0.5 = 1 · 2 + 0.5 − ½·4/3 = 11/6 · 10/3 + ½·4/3 = 4: 2 and 1 are kept.
    A^p with s_2 = (0, ⅓, ⅔), s_1 = (0.4, 0.4, 0.2), A + I = (1 1 0 / 1 1 ½ / 0 ½ 1).
    """
    x, mask = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1.0, 1.0, 0.5, 0.5])
    pooled = masked(even(backend=backend), mask, x, PATH3)
    assert pooled.perm.tolist() == [2, 1]
    phi = torch.tensor([4, 11 / 6]).sigmoid()
    torch.testing.assert_close(pooled.x.view(-1), phi * torch.tensor([10 / 3, 2]))
    dense = torch.zeros(2, 2).index_put(tuple(pooled.edge_index), pooled.edge_weight)
    torch.testing.assert_close(dense, torch.tensor([[7 / 9, 17 / 30], [17 / 30, 0.76]]))


def test_a_fitness_without_weights_sees_the_mask_too():
    """As above, but x^c_1 = 2 has no inner GCN before it and its own self-loop among its neighbours, worth 0."""
    x, mask = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1.0, 1.0, 0.5, 0.5])
    weight = torch.tensor([3.0, 3.0, 3.0, 3.0])  # which counts in A^p only
    pooled = masked(even("pyg"), mask, x, PATH3, weight)
    torch.testing.assert_close(pooled.x.view(-1), torch.tensor([4, 11 / 6]).sigmoid() * torch.tensor([10 / 3, 2]))


OPTIONS = [
    {}, {"semantics": "authors"}, {"semantics": "pyg"}, {"hops": 2}, {"attention": "s2t"}, {"attention": "dynamic"},
    {"fitness": "gcn"}, {"fitness": "gcn", "semantics": "authors"}, {"assign": "members"}, {"GNN": GraphConv},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_mask_of_ones_changes_nothing(options):
    pool = ASAPooling(8, **options)
    result = masked(pool, torch.ones(EDGES.size(1)), X, EDGES, WEIGHT, BATCH)
    for one, other in zip(result, pool(X, EDGES, WEIGHT, BATCH), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("options", [{}, {"attention": "s2t", "semantics": "pyg"}, {"hops": 2}], ids=str)
def test_the_gradient_of_a_mask(options):
    torch.manual_seed(3)
    x, edge_index, edge_weight, _ = random_batch(4, graphs=1, most=6, F=4)
    pool = ASAPooling(4, **options).double()

    def through(mask):
        pooled = masked(pool, mask, x, edge_index, edge_weight)
        return pooled.x, pooled.edge_weight

    mask = torch.rand(edge_index.size(1), dtype=torch.float64).clamp(0.2).requires_grad_()
    assert torch.autograd.gradcheck(through, mask)


@pytest.mark.parametrize("semantics", ["paper", "pyg"])
def test_a_mask_of_zero_is_a_graph_without_the_edge(semantics):
    """For attention without a query; the features of kept clusters are the same."""
    pool = ASAPooling(8, ratio=1.0, attention="s2t", semantics=semantics)
    kept = torch.rand(EDGES.size(1), generator=torch.Generator().manual_seed(1)) < 0.7
    result = masked(pool, kept.float(), X, EDGES, WEIGHT, BATCH)
    expected = pool(X, EDGES[:, kept], WEIGHT[kept], BATCH)
    order, other = result.perm.argsort(), expected.perm.argsort()
    torch.testing.assert_close(result.x[order], expected.x[other])


class Net(nn.Module):
    """Convolution, pooling, convolution, mean, classes."""

    def __init__(self, pool, conv):
        super().__init__()
        self.first, self.pool, self.second, self.out = conv(4, 8), pool, conv(8, 8), nn.Linear(8, 2)

    def forward(self, x, edge_index, batch=None):
        x = self.first(x, edge_index).relu()
        x, edge_index, edge_weight, batch, _ = self.pool(x, edge_index, batch=batch)
        x = self.second(x, edge_index=edge_index, edge_weight=edge_weight).relu()
        return self.out(global_mean_pool(x, batch))


def explanation(model, x, edge_index):
    config = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
    explainer = Explainer(
        model, GNNExplainer(epochs=20, lr=0.1), explanation_type="model", edge_mask_type="object",
        model_config=config,
    )  # fmt: skip
    return explainer(x, edge_index).edge_mask


@pytest.mark.parametrize("conv", [GCNConv, GCN], ids=["GCNConv", "our GCN"])
@pytest.mark.parametrize("pool", [ASAPooling(8), ASAPooling(8, semantics="pyg", GNN=GCNConv), TopKPooling(8)], ids=str)
def test_gnn_explainer_learns_an_edge_mask(conv, pool):
    torch.manual_seed(0)
    x, edge_index = ONE
    net = Net(pool, conv).eval()
    before = net(x, edge_index)
    mask = explanation(explainable(net), x, edge_index)
    assert mask.shape == (edge_index.size(1),)
    moved = mask > 0  # GNNExplainer gives 0 to edges without a gradient
    assert moved.all() if isinstance(pool, ASAPooling) else moved.any()  # top-k drops nodes with all their edges
    assert mask.unique().numel() > 8
    assert torch.equal(net(x, edge_index), before)
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in net.modules())


def test_every_edge_moves_the_answer_as_its_gradient_says():
    """The mask's gradient through both levels is the difference quotient of the loss."""
    torch.manual_seed(1)
    x, edge_index = ONE
    net, target = Net(ASAPooling(8), GCNConv).double().eval(), torch.tensor([1])
    mask = torch.full((edge_index.size(1),), 0.9, dtype=torch.float64, requires_grad=True)

    def loss(m):
        return cross_entropy(masked(net, m, x.double(), edge_index), target)

    loss(mask).backward()
    slope, step = mask.grad.clone(), torch.zeros_like(mask.detach())
    step[5] = 1e-6
    with torch.no_grad():
        quotient = (loss(mask + step) - loss(mask - step)) / 2e-6
    torch.testing.assert_close(slope[5], quotient, rtol=1e-5, atol=1e-9)
    assert slope.abs().min() > 0


def test_without_the_wrapper_torch_geometric_fails():
    """The reason for the wrapper: a layer after the pooling gets 3 nodes and a mask of 16 edges."""
    with pytest.raises(AssertionError):
        explanation(Net(ASAPooling(8, ratio=3), GCNConv).eval(), *ONE)
