"""A pooled graph beyond the limit is refused before it is formed, or thinned while it is formed."""

import pickle
import subprocess
import sys
import textwrap

import pytest
import torch

from asapool import kernels
from asapool.errors import ConfigError, GraphTooLargeError, InputError
from asapool.kernels.limits import limit_pooled_edges, max_pooled_edges, set_max_pooled_edges
from asapool.nn import ASAPooling
from tests.graphs import random_batch


def star(n):
    """Node 0 in the middle of n − 1 others."""
    leaves = torch.arange(1, n)
    return torch.stack([torch.cat([leaves, torch.zeros_like(leaves)]), torch.cat([torch.zeros_like(leaves), leaves])])


def path_and_star():
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    edges, batch = torch.cat([path, star(40) + 3], 1), torch.tensor([0] * 3 + [1] * 40)
    return torch.randn(43, 4), edges, None, batch


def test_the_graph_with_a_hub_is_named(backend):
    """20 clusters of a star all share its middle: 400 entries."""
    layer, graphs = ASAPooling(4, backend=backend), path_and_star()
    with limit_pooled_edges(400):
        assert layer(*graphs).edge_index.size(1) >= 400
    with (
        limit_pooled_edges(399),
        pytest.raises(GraphTooLargeError, match=r"graph 1 of the batch \(40 nodes\)") as error,
    ):
        layer(*graphs)
    assert error.value.graph == 1
    assert "up to 400 pooled edges, more than the limit of 399" in str(error.value)
    assert isinstance(error.value, InputError)
    again = pickle.loads(pickle.dumps(error.value))  # as worker processes hand it on
    assert (again.graph, str(again)) == (1, str(error.value))


def test_sparse_graphs_are_not_refused_for_their_size(backend):
    """A path of 100 nodes keeps 50 clusters: 2500 pairs, but at most 27 walks from each cluster to others."""
    i = torch.arange(99)
    path = torch.stack([torch.cat([i, i + 1]), torch.cat([i + 1, i])])
    with limit_pooled_edges(1400):
        assert ASAPooling(4, backend=backend)(torch.randn(100, 4), path).edge_index.size(1) < 400


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("semantics", ["paper", "authors", "pyg"])
def test_thinned_while_formed_as_after(directed, semantics):
    """Not with seed 1: its complete directed graph has an asymmetric A, and equal clusters, hence a symmetric A^p."""
    for seed in (0, 2, 3, 4, 5, 6):
        x, edge_index, weight, batch = random_batch(seed, weighted=True, directed=directed, dtype=torch.float64)
        torch.manual_seed(seed)
        layer = ASAPooling(x.size(1), 0.8, max_neighbours=2, semantics=semantics, backend="fused").double()
        results = []
        for limit in (10**9, 4):
            z, w = x.clone().requires_grad_(), weight.clone().requires_grad_()
            with limit_pooled_edges(limit):
                out = layer(z, edge_index, w, batch)
            (out.x.square().sum() + out.edge_weight.square().sum()).backward()
            results.append((*out, z.grad, w.grad))
        for whole, thinned in zip(*results, strict=True):
            torch.testing.assert_close(thinned, whole)


def test_a_compiled_layer_refuses_and_thins_too():
    graphs = path_and_star()
    with limit_pooled_edges(399):
        torch._dynamo.reset()
        with pytest.raises(GraphTooLargeError, match="graph 1"):
            torch.compile(ASAPooling(4), fullgraph=True, backend="aot_eager")(*graphs)


def test_a_star_takes_linear_memory_with_max_neighbours():
    """Its A^p has 3000² = 9·10⁶ entries, at least 250 MB; a tenth of that must do, forward and backward."""
    script = """
        import resource, torch
        from asapool.kernels.limits import set_max_pooled_edges
        from asapool.nn import ASAPooling
        from tests.kernels.test_limits import star
        def step(n):
            x = torch.randn(n, 8, requires_grad=True)
            out = layer(x, star(n))
            (out.x.sum() + out.edge_weight.square().sum()).backward()
            return out
        layer = ASAPooling(8, max_neighbours=8)
        step(20)
        set_max_pooled_edges(1000)
        step(100)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        out = step(6000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, out.edge_index.size(1))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    kilobytes, edges = map(int, ran.stdout.split())
    assert edges <= 9 * 3000
    assert kilobytes < 25_000


def test_the_limit_is_a_whole_number_and_comes_back():
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
