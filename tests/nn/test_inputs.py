"""Unusual graphs work; wrong input gets one sentence."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from asapool.errors import AsapoolError, ConfigError
from asapool.nn import (
    GCN,
    GIN,
    SAGE,
    ASAPooling,
    DiffPooling,
    LEConv,
    Master2Token,
    Readout,
    SAGPooling,
    TopKPooling,
)
from tests import oracle
from tests.graphs import PATH3, PATH4, random_batch, undirected, with_random_parameters


def pool(F=2, backend="auto", dtype=torch.float64, **options):
    return with_random_parameters(ASAPooling(F, backend=backend, **options).to(dtype))


def matches(layer, x, edge_index, edge_weight=None):
    kept, x_p, A_p, _, _ = oracle.asap(layer, x, edge_index, edge_weight)
    out = layer(x, edge_index, edge_weight)
    assert out.perm.tolist() == kept
    torch.testing.assert_close(out.x, x_p)
    torch.testing.assert_close(oracle.dense(out.edge_index, out.edge_weight, len(kept)), A_p)


X4 = torch.tensor([[1.0, 0.3], [-0.5, 2.0], [0.7, -1.0], [0.1, 0.4]], dtype=torch.float64)


@pytest.mark.parametrize("semantics", ["paper", "authors", "pyg"])
@pytest.mark.parametrize(
    ("edges", "weights"),
    [
        (PATH4, None),
        (PATH4, [0.5, 2, 1, 0.5, 2, 1]),
        (torch.tensor([[0, 1, 3], [1, 2, 0]]), [0.5, 2, 1]),  # directed
        (torch.cat([PATH4, torch.tensor([[0, 2], [0, 2]])], 1), [1, 1, 1, 1, 1, 1, 3, 0.5]),  # self-loops
        (torch.cat([PATH4, PATH4[:, :2]], 1), [1, 2, 1, 1, 2, 1, 0.25, 0.75]),  # repeated edges are summed
        (undirected((0, 1)), None),  # nodes 2 and 3 are isolated
        (torch.empty(2, 0, dtype=torch.int64), None),  # no edges at all
        (PATH4, [0.0, 1, 1, 0.0, 1, 1]),  # an edge of weight 0 still makes neighbours
    ],
    ids=["path", "weighted", "directed", "self-loops", "repeated", "isolated", "edgeless", "zero-weight"],
)
def test_odd_graphs(edges, weights, semantics, backend):
    weights = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    matches(pool(backend=backend, semantics=semantics), X4, edges, weights)


def test_a_batch_of_one_node_graphs(backend):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=torch.float64)
    out = pool(backend=backend)(x, torch.empty(2, 0, dtype=torch.int64), batch=torch.tensor([0, 1, 2]))
    assert out.perm.tolist() == out.batch.tolist() == [0, 1, 2]
    assert out.edge_index.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert out.edge_weight.tolist() == [1.0, 1.0, 1.0]  # α = 1, so A^p_pp = 1·(0 + 1)·1


def test_an_empty_batch(backend):
    out = pool(backend=backend)(torch.empty(0, 2, dtype=torch.float64), torch.empty(2, 0, dtype=torch.int64))
    assert out.x.shape == (0, 2)
    assert out.edge_index.shape == (2, 0)
    assert [len(t) for t in (out.edge_weight, out.batch, out.perm)] == [0, 0, 0]


def test_a_graph_without_nodes_inside_a_batch(backend):
    x = torch.randn(3, 2, dtype=torch.float64)
    out = pool(backend=backend)(x, undirected((0, 1)), batch=torch.tensor([0, 0, 2]))  # graph 1 has no node
    assert out.batch.tolist() == [0, 2]
    r = Readout(backend=backend)(x, torch.tensor([0, 0, 2]))
    assert r.shape == (3, 4)
    assert r[1].tolist() == [0.0] * 4


def test_an_unsorted_batch_vector_changes_nothing(backend):
    x, edge_index, edge_weight, batch = random_batch(4)
    layer = pool(5, backend)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    order = order[torch.argsort(torch.rand(len(x), generator=torch.Generator().manual_seed(2)))]
    # keep the nodes of each graph in their order, so that even ties fall the same way
    order = torch.cat([torch.arange(len(x))[batch % 2 == 1], torch.arange(len(x))[batch % 2 == 0]])
    new = torch.empty_like(order)
    new[order] = torch.arange(len(x))
    sorted_, mixed = (
        layer(x, edge_index, edge_weight, batch),
        layer(x[order], new[edge_index], edge_weight, batch[order]),
    )
    assert torch.equal(sorted_.x, mixed.x)
    assert torch.equal(sorted_.edge_index, mixed.edge_index)
    assert torch.equal(sorted_.edge_weight, mixed.edge_weight)
    assert new[sorted_.perm].tolist() == mixed.perm.tolist()
    assert sorted_.batch.tolist() == mixed.batch.tolist()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_dtypes(dtype):
    x, edge_index, edge_weight, batch = random_batch(6)
    exact = pool(5)(x, edge_index, edge_weight, batch)
    x = x.to(dtype).requires_grad_()
    out = pool(5, dtype=dtype)(x, edge_index, edge_weight.to(dtype), batch)
    assert out.x.dtype == out.edge_weight.dtype == dtype
    (out.x.sum() + out.edge_weight.sum()).backward()
    assert x.grad.dtype == dtype
    assert bool(x.grad.isfinite().all())
    near = {torch.float64: 1e-12, torch.float32: 1e-4, torch.bfloat16: 0.3}[dtype]
    same = out.perm == exact.perm
    assert same.float().mean() > 0.5
    torch.testing.assert_close(out.x[same].double(), exact.x[same], rtol=near, atol=near)


def test_one_dimensional_features_are_one_channel(backend):
    out = pool(1, backend)(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), PATH3)
    assert out.x.shape == (2, 1)


@pytest.mark.parametrize("backend_name", ["reference", "fused"])
def test_a_named_backend_is_used_or_refused(backend_name):
    layer = pool(2, backend_name, dtype=torch.bfloat16)
    if backend_name == "reference":
        assert layer(X4.bfloat16(), PATH4).x.dtype == torch.bfloat16
    else:
        with pytest.raises(AsapoolError, match=r"float32 or float64 on the CPU, got torch\.bfloat16"):
            layer(X4.bfloat16(), PATH4)


NAN, INF = float("nan"), float("inf")
BATCH = torch.tensor([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X4.long(), PATH4), "x must be a floating point tensor, got torch.int64"),
        ((X4.tolist(), PATH4), "x must be a floating point tensor, got list"),
        ((X4.numpy(), PATH4), r"x must be a floating point tensor, got ndarray; convert it with torch.as_tensor$"),
        (
            ({"atom": X4}, PATH4),
            r"got dict; heterogeneous and bipartite graphs are not supported; .*to_homogeneous\(\)",
        ),
        (((X4, X4), PATH4), "got tuple; heterogeneous and bipartite graphs are not supported"),
        ((HeteroData(), PATH4), "got HeteroData; heterogeneous and bipartite graphs are not supported"),
        (
            (X4, Data(edge_index=PATH4)),
            "edge_index must be an int64 tensor, got Data; pass data.x and data.edge_index$",
        ),
        (
            (X4.float(), PATH4),
            r"x is torch.float32, but the layer's weights are torch.float64; convert one of them, x.to",
        ),
        ((X4[:, :1], PATH4), r"x must have the shape \(nodes, 2\), got \(4, 1\)"),
        ((X4[None], PATH4), r"x must have the shape \(nodes, 2\), got \(1, 4, 2\)"),
        ((X4 + torch.tensor([0, NAN]), PATH4), "x must be finite, but node 0"),
        ((torch.cat([X4[:3], X4[3:] * INF]), PATH4), "x must be finite, but node 3"),
        ((X4, PATH4.int()), "edge_index must be an int64 tensor, got torch.int32"),
        ((X4, PATH4.t()), r"edge_index must have the shape \(2, edges\), got \(6, 2\)"),
        ((X4, PATH4 + 1), "edge_index must name nodes 0 to 3, got node 4"),
        ((X4, PATH4 - 1), "edge_index must name nodes 0 to 3, got node -1"),
        ((X4, PATH4, torch.ones(3)), r"edge_weight must hold one number per edge, shape \(6,\), got \(3,\)"),
        ((X4, PATH4, torch.ones(6, 3)), r"shape \(6,\), got \(6, 3\); ASAPooling takes edge features as edge_attr=$"),
        ((X4, PATH4, BATCH), "got torch.int64; convert it with edge_weight.float.*takes the batch vector as batch=$"),
        ((X4, PATH4, -torch.ones(6)), "edge_weight must be finite and not negative, got -1.0 at edge 0"),
        ((X4, PATH4, torch.tensor([1, 1, INF, 1, 1, 1])), "finite and not negative, got inf at edge 2"),
        ((X4, PATH4, torch.tensor([1, NAN, 1, 1, 1, 1])), "finite and not negative, got nan at edge 1"),
        ((X4, PATH4, None, BATCH), r"edge 1 \(1 → 2\) leaves its graph: node 1 is in graph 0, node 2 in graph 1"),
        ((X4, PATH4, None, BATCH[:2]), r"batch must name one graph per node, shape \(4,\), got \(2,\)"),
        ((X4, PATH4, None, BATCH.int()), r"batch must be an int64 tensor, got torch.int32; convert it with batch.long"),
        ((X4, PATH4, None, BATCH * 0 - 1), "batch must not be negative, got -1"),
    ],
)
def test_wrong_tensors(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        pool()(*arguments)
    assert isinstance(caught.value, AsapoolError)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.*torch.jit.trace:DeprecationWarning")
def test_torchscript_is_refused(backend):
    """The reference backend was recorded without an error, with the values of the example as constants."""
    with pytest.raises(AsapoolError, match=r"TorchScript cannot record asapool's layers; use torch\.export"):
        torch.jit.trace(pool(backend=backend), (X4, PATH4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ratio": 0.0}, r"ratio must lie in \(0, 1\]"),
        ({"ratio": 1.5}, r"ratio must lie in \(0, 1\].*got 1.5"),
        ({"ratio": 0}, "must keep 1 to .* clusters, got 0"),
        ({"ratio": "half"}, "ratio must be a number, got 'half'"),
        ({"ratio": True}, "ratio must be a number, got True"),
        ({"hops": 0}, "hops must be a whole number of at least 1, got 0"),
        ({"attention": "gat"}, "attention must be one of 'm2t', 't2t', 's2t', 'dynamic', got 'gat'"),
        ({"master": "sum"}, "master must be one of 'max', 'mean', got 'sum'"),
        ({"fitness": "le"}, "fitness must be one of 'leconv', 'basic-leconv', 'gcn', got 'le'"),
        ({"aggregate": "all"}, "aggregate must be one of 'both', 'cluster', 'none', got 'all'"),
        ({"semantics": "tgp"}, "semantics must be one of 'paper', 'authors', 'pyg', got 'tgp'"),
        ({"backend": "cuda"}, "backend must be one of 'auto', 'reference', 'fused', got 'cuda'"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"max_neighbours": 0}, "max_neighbours must be a whole number of at least 1, got 0"),
        ({"max_neighbours": True}, "max_neighbours must be a whole number of at least 1, got True"),
        ({"dropout": "a"}, r"dropout must lie in \[0, 1\), got 'a'"),
        ({"soft_edges": "no"}, "soft_edges must be True or False, got 'no'"),
        ({"add_self_loops": "no"}, "add_self_loops must be True or False, got 'no'"),
        ({"hop": 2}, "does not know the option 'hop'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        ASAPooling(2, **options)
    assert isinstance(caught.value, AsapoolError)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (ASAPooling, "in_channels"),
        (TopKPooling, "in_channels"),
        (SAGPooling, "in_channels"),
        (Master2Token, "channels"),
        (lambda n: GCN(n, 16), "in_channels of GCN"),
        (lambda n: GIN(16, n), "out_channels of GIN"),
        (lambda n: SAGE(n, 16), "in_channels of SAGE"),
        (lambda n: LEConv(16, n), "out_channels of LEConv"),
        (lambda n: DiffPooling(16, n), "clusters"),
    ],
)
@pytest.mark.parametrize("number", [0, 16.0, "16", True])
def test_channels_are_whole_numbers(make, name, number):
    with pytest.raises(ConfigError, match=f"{name} must be a whole number of at least 1, got {number!r}"):
        make(number)


class NoWeights(torch.nn.Linear):
    """A convolution without edge weights."""

    def forward(self, x, edge_index):
        return super().forward(x)


class IgnoresWeights(torch.nn.Linear):
    """A convolution that takes edge weights and ignores them."""

    def forward(self, x, edge_index, edge_weight=None):
        return super().forward(x)


@pytest.mark.parametrize(
    ("GNN", "message"),
    [
        (
            NoWeights,
            r"GNN=NoWeights cannot be called with .* unexpected keyword argument 'edge_weight'; use a convolution with",
        ),
        (
            torch.nn.Linear,
            "GNN=Linear cannot be called with x=, edge_index= and edge_weight=: missing a required argum",
        ),
        ("GCNConv", "GNN must be a class such as torch_geometric.nn.GraphConv, got 'GCNConv'"),
        (IgnoresWeights(2, 2), r"GNN must be a class such as torch_geometric.nn.GraphConv, got IgnoresWeights\("),
        (lambda *channels: torch.ones(channels), "GNN must be a class of modules, but .* makes Tensor"),
    ],
)
def test_a_gnn_that_cannot_be_called_is_refused_when_the_layer_is_made(GNN, message):
    with pytest.raises(AsapoolError, match=message):
        ASAPooling(2, GNN=GNN)


@pytest.mark.parametrize("semantics", ["paper", "authors", "pyg"])
def test_a_gnn_with_another_width_is_refused(semantics, backend):
    """The compiled loops would read beyond the end of the attention's weights."""
    x = X4.repeat(1, 2)
    assert ASAPooling(4, GNN=IgnoresWeights, semantics=semantics, backend=backend).double()(x, PATH4).x.shape == (2, 4)
    for width in (2, 8):
        layer = ASAPooling(
            4, GNN=lambda i, o, width=width: IgnoresWeights(i, width), semantics=semantics, backend=backend
        )
        with pytest.raises(
            AsapoolError, match=rf"GNN=IgnoresWeights must keep the shape of x, \(4, 4\), .* \(4, {width}\)"
        ):
            layer.double()(x, PATH4)


def test_a_gnn_that_returns_a_pair_is_refused():
    class Pair(IgnoresWeights):
        def forward(self, x, edge_index, edge_weight=None):
            return x, edge_weight

    with pytest.raises(AsapoolError, match="GNN=Pair must return a tensor, got tuple"):
        ASAPooling(2, GNN=Pair).double()(X4, PATH4)
