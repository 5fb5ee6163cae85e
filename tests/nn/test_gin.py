"""GIN and GINE: values by hand, dense algebra, torch_geometric's numbers, gradients and symmetries."""

import pytest
import torch

from asapool import kernels
from asapool.errors import ConfigError, InputError
from asapool.kernels import Graph
from asapool.nn import GIN, GINE
from tests.graphs import PATH3, random_batch, with_random_parameters

DATA = {"seed": 11, "graphs": 2, "most": 6, "F": 2, "directed": True, "loops": True}


def edge_features(edges, D, seed=0):
    return torch.randn(edges.size(1), D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def dense_gin(conv, x, edges, weight, attr=None):
    """Σ over edges one at a time, then the network by its formula."""
    eps = 0 if conv.eps is None else conv.eps
    y = [(1 + eps) * x[i] for i in range(len(x))]
    for e, (j, i) in enumerate(edges.t().tolist()):
        message = x[j] if attr is None else (x[j] + conv.edge.weight @ attr[e]).relu()
        y[i] = y[i] + weight[e] * message
    h = torch.stack(y) @ conv.first.weight.t() + conv.first.bias
    if conv.norm is not None:
        h = (h - h.mean(0)) / (h.var(0, unbiased=False) + 1e-5).sqrt() * conv.norm.weight + conv.norm.bias
    h = h.relu() @ conv.second.weight.t() + conv.second.bias
    return h.relu() if conv.relu else h


def test_sums_over_a_path_by_hand(backend):
    """x = 1, 5, 2 on a path with weights 2 (0–1) and 3 (1–2), ε = ½: 1½·1 + 2·5, 1½·5 + 2·1 + 3·2, 1½·2 + 3·5."""
    pattern, slot = kernels.pack(PATH3, torch.tensor([0, 3]), 3, backend=backend)
    weight = torch.zeros(pattern.col.numel()).index_copy(0, slot, torch.tensor([2.0, 3, 2, 3]))
    x, eps = torch.tensor([[1.0], [5], [2]]), torch.tensor(0.5)
    assert kernels.sum_neighbours(pattern, weight, x, eps, backend=backend).view(-1).tolist() == [11.5, 15.5, 18]
    # one feature e: −2 on 0–1 and 1 on 1–2, W = 1: messages max(5−2, 0), max(1−2, 0), max(2+1, 0), max(5+1, 0)
    attr = torch.zeros(pattern.col.numel(), 1).index_copy(0, slot, torch.tensor([[-2.0], [1], [-2], [1]]))
    y = kernels.sum_messages(pattern, weight, x, eps, attr, torch.ones(1, 1), backend=backend)
    assert y.view(-1).tolist() == [1.5 + 2 * 3, 7.5 + 2 * 0 + 3 * 3, 3 + 3 * 6]


@pytest.mark.parametrize("options", [{}, {"train_eps": True}, {"batch_norm": True, "train_eps": True, "relu": True}])
def test_both_are_their_formula(options, backend):
    x, edges, weight, _ = random_batch(1, directed=True, loops=True)
    attr = edge_features(edges, 3)
    gin = with_random_parameters(GIN(5, 4, backend=backend, **options).double())
    torch.testing.assert_close(gin(x, edges, weight), dense_gin(gin, x, edges, weight))
    gine = with_random_parameters(GINE(5, 4, 3, backend=backend, **options).double())
    torch.testing.assert_close(gine(x, edges, weight, edge_attr=attr), dense_gin(gine, x, edges, weight, attr))


def test_the_default_gin_keeps_its_parameters():
    """Checkpoints of conv="gin" were written without ε and normalisation."""
    assert list(GIN(3, 4).state_dict()) == ["first.weight", "first.bias", "second.weight", "second.bias"]


def test_the_default_gin_keeps_its_numbers_to_the_last_bit():
    x, edges, weight, _ = random_batch(1, graphs=20, most=20, F=16, dtype=torch.float32)
    pattern, slot = kernels.pack(edges, torch.tensor([0, len(x)]), len(x))
    weight = torch.zeros(pattern.col.numel()).index_add(0, slot, weight).requires_grad_()
    both = []
    for run in (
        lambda x: kernels.sum_neighbours(pattern, weight, x),
        lambda x: x + kernels.propagate(pattern, weight, x),
    ):
        x = x.detach().clone().requires_grad_()
        y = run(x)
        both.append([y, *torch.autograd.grad(y.square().sum(), [x, weight])])
    assert all(torch.equal(ours, before) for ours, before in zip(*both, strict=True))


def test_both_equal_torch_geometric():
    from torch_geometric.nn import GINConv, GINEConv

    x, edges, _, _ = random_batch(3, weighted=False)
    attr = edge_features(edges, 3)
    gin = GIN(5, 4, train_eps=True, batch_norm=True).double()
    theirs = GINConv(torch.nn.Sequential(gin.first, gin.norm, torch.nn.ReLU(), gin.second), eps=0.3, train_eps=True)
    with torch.no_grad():
        gin.eps.fill_(0.3)
    torch.testing.assert_close(gin(x, edges), theirs.double()(x, edges))
    gine = GINE(5, 4, 3).double()
    theirs = GINEConv(torch.nn.Sequential(gine.first, torch.nn.ReLU(), gine.second), edge_dim=3).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(gine.edge.weight)
        theirs.lin.bias.zero_()
    torch.testing.assert_close(gine(x, edges, edge_attr=attr), theirs(x, edges, attr))


@pytest.mark.parametrize("conv", [GIN(2, 3, train_eps=True), GINE(2, 3, 2, train_eps=True, batch_norm=True)], ids=repr)
def test_gradients(conv, backend):
    """With respect to features, edge weights, edge features and every parameter, ε included."""
    x, edges, weight, _ = random_batch(**DATA)
    conv = with_random_parameters(conv.double())
    conv.backend = backend
    attr = {"edge_attr": edge_features(edges, 2).requires_grad_()} if isinstance(conv, GINE) else {}
    inputs = [x.requires_grad_(), weight.requires_grad_(), *attr.values(), *conv.parameters()]
    assert torch.autograd.gradcheck(lambda *_: conv(x, edges, weight, **attr), inputs)


def test_a_batch_is_its_graphs_one_by_one(backend):
    x, edges, weight, batch = random_batch(5, directed=True)
    attr, conv = edge_features(edges, 2), GINE(5, 3, 2, train_eps=True, backend=backend).double()
    together = conv(x, edges, weight, edge_attr=attr)
    for b in range(int(batch.max()) + 1):
        lo, hi = int((batch < b).sum()), int((batch <= b).sum())
        mine = (edges[0] >= lo) & (edges[0] < hi)
        alone = conv(x[lo:hi], edges[:, mine] - lo, weight[mine], edge_attr=attr[mine])
        torch.testing.assert_close(together[lo:hi], alone)


def outcome(backend, threads=1):
    """Results and gradients of both sums on many graphs; some features are 0, as one-hot ones are."""
    torch.set_num_threads(threads)
    try:
        x, edges, weight, _ = random_batch(1, graphs=40, most=30, F=16, directed=True)
        pattern, slot = kernels.pack(edges, torch.tensor([0, len(x)]), len(x), backend=backend)
        weight = torch.zeros(pattern.col.numel(), dtype=x.dtype).index_copy(0, slot, weight)
        attr = edge_features(edges, 5).relu()
        attr = torch.zeros(pattern.col.numel(), 5, dtype=x.dtype).index_copy(0, slot, attr)
        W, eps = torch.linspace(-1, 1, 80, dtype=x.dtype).view(16, 5), torch.tensor(0.2, dtype=x.dtype)
        inputs = [t.requires_grad_() for t in (weight, x, eps, attr, W)]
        y = kernels.sum_messages(pattern, *inputs, backend=backend)
        z = kernels.sum_neighbours(pattern, weight, y, eps, backend=backend)
        return [y, z, *torch.autograd.grad(z.square().sum(), inputs)]
    finally:
        torch.set_num_threads(1)


def test_fused_equals_the_reference():
    for ours, theirs in zip(outcome("fused"), outcome("reference"), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_any_number_of_threads_gives_the_same_bits(loops_shared):
    one, three = outcome("fused", 1), outcome("fused", 3)
    assert all(torch.equal(a, b) for a, b in zip(one, three, strict=True))


def test_repeated_edges_have_the_mean_of_their_features_by_weight(backend):
    """0 → 1 twice, with weights 1 and 3 and features 8 and 4: weight 4, feature (1·8 + 3·4)/4 = 5."""
    conv, edges = GINE(1, 1, 1, backend=backend), torch.tensor([[0, 0], [1, 1]])
    twice = conv(torch.tensor([[1.0], [2.0]]), edges, torch.tensor([1.0, 3]), edge_attr=torch.tensor([[8.0], [4.0]]))
    once = conv(torch.tensor([[1.0], [2.0]]), edges[:, :1], torch.tensor([4.0]), edge_attr=torch.tensor([[5.0]]))
    assert torch.equal(twice, once)


def test_bad_edge_features_are_named(backend):
    conv, x = GINE(1, 1, 2, backend=backend), torch.ones(3, 1)
    with pytest.raises(InputError, match=r"one row of features per edge, shape \(4, features\), got \(3, 2\)"):
        conv(x, PATH3, edge_attr=torch.ones(3, 2))
    with pytest.raises(InputError, match="edge 2 has NaN"):
        conv(x, PATH3, edge_attr=torch.tensor([[0.0, 0], [0, 0], [0, float("nan")], [0, 0]]))
    with pytest.raises(InputError, match=r"floating point tensor, got torch\.int64"):
        conv(x, PATH3, edge_attr=torch.ones(4, 2, dtype=torch.int64))
    with pytest.raises(InputError, match="built for 2 edge features, the graph has none"):
        conv(x, PATH3)
    with pytest.raises(InputError, match="built for 2 edge features, the graph has 1"):
        conv(x, PATH3, edge_attr=torch.ones(4))
    with pytest.raises(ConfigError, match="at least one edge feature"):
        GINE(1, 1, 0)


def test_nan_is_not_hidden(backend):
    pattern, _ = kernels.pack(torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 2]), 2, backend=backend)
    graph = Graph(pattern, torch.tensor([0.0, 1, 1, 0]), torch.ones(4, 1))
    x = torch.tensor([[float("nan")], [1.0]])
    assert GINE(1, 1, 1, backend=backend)(x, graph).isnan().all()
    assert GIN(1, 1, backend=backend)(x, graph).isnan().all()
