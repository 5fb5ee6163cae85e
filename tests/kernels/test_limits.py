"""A pooled graph beyond the limit is refused before it is formed, or thinned while it is formed."""

import pickle
import textwrap

import pytest
import torch

from asapool import kernels
from asapool.errors import ConfigError, GraphTooLargeError, InputError
from asapool.kernels.limits import limit_of_graph, limit_pooled_edges, max_pooled_edges, set_max_pooled_edges
from asapool.kernels.reference import hubs, pairs
from asapool.kernels.reference.coarsen import _PairWeights
from asapool.nn import ASAPooling
from tests.children import run_python
from tests.graphs import random_batch

SLOW_REFERENCE = pytest.mark.parametrize("backend", ["fused", pytest.param("reference", marks=pytest.mark.slow)])


def star(n):
    """Node 0 in the middle of n − 1 others."""
    leaves = torch.arange(1, n)
    return torch.stack([torch.cat([leaves, torch.zeros_like(leaves)]), torch.cat([torch.zeros_like(leaves), leaves])])


def path_and_star():
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    edges, batch = torch.cat([path, star(40) + 3], 1), torch.tensor([0] * 3 + [1] * 40)
    return torch.randn(43, 4), edges, None, batch


def test_the_graph_with_a_hub_is_named(backend):
    """20 clusters of a star all share its middle: 400 entries, and 4 of the path, in the batch."""
    layer, graphs = ASAPooling(4, backend=backend), path_and_star()
    with limit_pooled_edges(404):
        assert layer(*graphs).edge_index.size(1) >= 400
    with (
        limit_pooled_edges(403),
        pytest.raises(GraphTooLargeError, match=r"graph 1 .*400 .*\(404 with the other graphs"),
    ):
        layer(*graphs)
    with (
        limit_pooled_edges(399),
        pytest.raises(GraphTooLargeError, match=r"graph 1 of the batch \(40 nodes\)") as error,
    ):
        layer(*graphs)
    assert error.value.graph == 1
    assert "up to 400 pooled edges, more than the limit of 399" in str(error.value)
    assert isinstance(error.value, InputError)
    again = pickle.loads(pickle.dumps(error.value))  # as between worker processes
    assert (again.graph, str(again)) == (1, str(error.value))


def test_sparse_graphs_are_not_refused_for_their_size(backend):
    """A path of 100 nodes keeps 50 clusters: 2500 pairs, but at most 27 walks from each cluster to others."""
    i = torch.arange(99)
    path = torch.stack([torch.cat([i, i + 1]), torch.cat([i + 1, i])])
    with limit_pooled_edges(1400):
        assert ASAPooling(4, backend=backend)(torch.randn(100, 4), path).edge_index.size(1) < 400


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("semantics", ["paper", "authors", "pyg"])
def test_thinning_while_forming_equals_thinning_afterwards(directed, semantics, backend):
    """Not with seed 1: its complete directed graph has an asymmetric A, and equal clusters, hence a symmetric A^p."""
    for seed in (0, 2, 3, 4, 5, 6):
        x, edge_index, weight, batch = random_batch(seed, weighted=True, directed=directed, dtype=torch.float64)
        torch.manual_seed(seed)
        layer = ASAPooling(x.size(1), 0.8, max_neighbours=2, semantics=semantics, backend=backend).double()
        results = []
        for limit in (10**9, 4):
            z, w = x.clone().requires_grad_(), weight.clone().requires_grad_()
            with limit_pooled_edges(limit):
                out = layer(z, edge_index, w, batch)
            (out.x.square().sum() + out.edge_weight.square().sum()).backward()
            results.append((*out, z.grad, w.grad))
        for whole, thinned in zip(*results, strict=True):
            torch.testing.assert_close(thinned, whole)


@SLOW_REFERENCE
def test_a_compiled_layer_refuses_and_thins_too(backend):
    graphs = path_and_star()
    with limit_pooled_edges(399):
        torch._dynamo.reset()
        with pytest.raises(GraphTooLargeError, match="graph 1"):
            torch.compile(ASAPooling(4, backend=backend), fullgraph=True, backend="aot_eager")(*graphs)
        layer = ASAPooling(4, max_neighbours=3, backend=backend)
        results = []
        for run in (layer, torch.compile(layer, fullgraph=True, backend="aot_eager")):
            x = graphs[0].clone().requires_grad_()
            out = run(x, *graphs[1:])
            (out.x.sum() + out.edge_weight.square().sum()).backward()
            results.append((*out, x.grad))
        for eager, compiled in zip(*results, strict=True):
            torch.testing.assert_close(compiled, eager)


def test_edge_features_of_a_thinned_graph(backend):
    """The kept edges have the features that they have in the whole graph."""
    x, edges, _, batch = path_and_star()
    attr, layer = torch.randn(edges.size(1), 2), ASAPooling(4, max_neighbours=3, backend=backend)
    whole = layer(x, edges, None, batch, edge_attr=attr)
    with limit_pooled_edges(300):
        thinned = layer(x, edges, None, batch, edge_attr=attr)
    torch.testing.assert_close(thinned, whole)


def hub_graph(seed, n, hubs, symmetric):
    """Â (n, n) with its diagonal, memberships on the same entries, and the kept clusters."""
    g = torch.Generator().manual_seed(seed)
    there = torch.rand(n, n, generator=g) < 0.1
    there[:hubs] |= torch.rand(hubs, n, generator=g) < 0.9
    there |= torch.eye(n, dtype=torch.bool)
    A = torch.rand(n, n, generator=g, dtype=torch.float64)
    if symmetric:
        there, A = there | there.t(), A + A.t()
    S = torch.rand(n, n, generator=g, dtype=torch.float64) * there
    return there, A * there, S, torch.randperm(n, generator=g)[: n // 2]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("long", [0, 3, 8, 100])  # hubs: all nodes, some, none
def test_the_strongest_pairs_are_those_of_the_dense_product(symmetric, long, monkeypatch):
    monkeypatch.setattr(hubs, "LONG", long)
    for seed in range(12):
        budget, most, n = (2**20, 300)[seed % 2], 1 + seed % 4, 10 + 4 * seed
        monkeypatch.setattr(pairs, "BUDGET", budget)
        monkeypatch.setattr(hubs, "BUDGET", budget)
        there, A, S, perm = hub_graph(seed, n, seed % 3, symmetric)
        (row, col), K = there.nonzero().t(), len(perm)
        rowptr = torch.cat([torch.zeros(1, dtype=torch.int64), there.sum(1).cumsum(0)])
        graph = pairs.OneGraph.cut((rowptr, col), (rowptr, col), perm, 0, n)
        p, q = hubs.strongest_pairs(graph, S[row, col], A[row, col], most)
        whole = S[perm] @ A @ S[perm].t()
        joined = there[perm].double() @ there.double() @ there[perm].double().t() > 0
        off = torch.where(joined & ~torch.eye(K, dtype=torch.bool), whole, -1.0)
        stays = (off >= off.topk(most, dim=1).values[:, -1:]) & (off > 0)
        stays = (stays & stays.t() if symmetric else stays) | torch.eye(K, dtype=torch.bool)
        assert torch.equal(torch.stack([p, q], 1), stays.nonzero())
        torch.testing.assert_close(pairs.pair_weights(graph, S[row, col], A[row, col], p, q), whole[p, q])


def test_gradients_of_pairs():
    there, A, S, perm = hub_graph(3, 12, 1, True)
    (row, col), n = there.nonzero().t(), 12
    rowptr = torch.cat([torch.zeros(1, dtype=torch.int64), there.sum(1).cumsum(0)])
    graph = pairs.OneGraph.cut((rowptr, col), (rowptr, col), perm, 0, n)
    p, q = hubs.strongest_pairs(graph, S[row, col], A[row, col], 2)
    alpha, hat = S[row, col].requires_grad_(), A[row, col].requires_grad_()
    assert torch.autograd.gradcheck(lambda a, h: _PairWeights.apply(a, h, graph, p, q), (alpha, hat))


def test_both_backends_thin_a_hub_of_a_large_batch_equally():
    """1500 clusters of a star of 3000 nodes share its middle: 2.25·10⁶ entries, of which the strongest are formed."""
    path, n = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3000
    edges, batch = torch.cat([path, star(n) + 3], 1), torch.tensor([0] * 3 + [1] * n)
    results = []
    for backend in ("fused", "reference"):
        torch.manual_seed(0)
        x = torch.randn(n + 3, 4, dtype=torch.float64, requires_grad=True)
        out = ASAPooling(4, max_neighbours=2, backend=backend).double()(x, edges, None, batch)
        (out.x.sum() + out.edge_weight.square().sum()).backward()
        results.append((*out, x.grad))
    for fused, reference in zip(*results, strict=True):
        torch.testing.assert_close(fused, reference)
    assert results[0][1].size(1) < 3 * 1502


@SLOW_REFERENCE
def test_a_star_takes_linear_time_and_memory_with_max_neighbours(backend):
    """A^p of the large one has 20,000² = 4·10⁸ entries, at least 10 GB and some seconds."""
    script = f"""
        import resource, time, torch
        from asapool.nn import ASAPooling
        from tests.kernels.test_limits import star
        def step(n):
            x = torch.randn(n, 8, requires_grad=True)
            start = time.process_time()
            out = layer(x, star(n))
            (out.x.sum() + out.edge_weight.square().sum()).backward()
            return out, time.process_time() - start
        layer = ASAPooling(8, max_neighbours=8, backend={backend!r})
        step(20)
        _, small = step(10_000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        out, large = step(40_000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, out.edge_index.size(1), large / small)
    """
    ran = run_python(textwrap.dedent(script))
    assert ran.returncode == 0, ran.stderr
    kilobytes, edges, times = map(float, ran.stdout.split())
    assert edges <= 9 * 20_000
    assert kilobytes < 150_000
    assert times < 12  # 4 if it is linear, 16 if it is quadratic


def test_hops_around_a_hub_are_refused(backend):
    """Within two hops every node of a star reaches every other: 40² memberships."""
    layer, graphs = ASAPooling(4, hops=2, backend=backend), path_and_star()
    with limit_pooled_edges(1700):
        layer(*graphs)
    with limit_pooled_edges(1599), pytest.raises(GraphTooLargeError, match=r"graph 1 of the batch \(40 nodes\)"):
        layer(*graphs)


def test_a_dense_graph_of_many_edges_is_refused_by_default_and_an_explicit_limit_is_used_unchanged(backend):
    """4,000 clusters of a star of 8,000 nodes: 1.6·10⁷ edges fit into memory, but would take minutes."""
    layer, x, edges = ASAPooling(2, backend=backend), torch.randn(8000, 2), star(8000)
    with pytest.raises(GraphTooLargeError, match=r"up to 16,000,000 pooled edges, more than the limit of 10,000,000;"):
        layer(x, edges)
    with limit_pooled_edges(15_000_000), pytest.raises(GraphTooLargeError, match="limit of 15,000,000;"):
        layer(x, edges)
    assert limit_of_graph(50_000, 10**9) == 5 * 10**7  # rows of a large, sparse graph are short


def test_the_limit_can_be_set_in_the_environment(monkeypatch):
    monkeypatch.setenv("ASAPOOL_MAX_POOLED_EDGES", "1234")
    assert max_pooled_edges() == 1234
    monkeypatch.setenv("ASAPOOL_MAX_POOLED_EDGES", "many")
    with pytest.raises(ConfigError, match="ASAPOOL_MAX_POOLED_EDGES must be a whole number"):
        max_pooled_edges()


def test_the_limit_is_a_whole_number_and_is_restored():
    before = max_pooled_edges()
    assert before > 10**6
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ConfigError, match="max_pooled_edges"):
            set_max_pooled_edges(wrong)
    with limit_pooled_edges(7):
        assert max_pooled_edges() == 7
    assert max_pooled_edges() == before


def test_rows_beyond_the_limit_are_short_while_they_are_formed():
    """30 clusters of a star share its middle: 900 entries, or the diagonal and the 4 strongest of each row."""
    edges, ptr = star(60), torch.tensor([0, 60])
    pattern, _ = kernels.pack(edges, ptr, 60, backend="fused")
    alpha = kernels.attend(pattern, None, torch.linspace(0, 1, 60), backend="fused")
    perm, kept = torch.arange(1, 60, 2), torch.tensor([0, 30])
    for limit, entries in ((900, range(900, 901)), (899, range(30, 151))):
        with limit_pooled_edges(limit):
            pooled, _ = kernels.coarsen(pattern, alpha, pattern, torch.ones_like(alpha), perm, kept, 4, backend="fused")
        assert pooled.col.numel() in entries
