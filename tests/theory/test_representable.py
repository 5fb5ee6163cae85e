"""Theorem 1 by linear algebra: weights that reach f, and functions no weights reach."""

import pytest
import torch

from asapool.errors import InputError
from asapool.nn import GCN, LEConv
from asapool.theory.extremum import (
    circulant,
    difference_matrix,
    gcn,
    gcn_family,
    gcn_must_fail,
    leconv,
    leconv_family,
    leconv_weights,
    nearest,
)
from asapool.theory.graphs import path_graph, starlike_tree
from asapool.theory.operators import dense, packed, undirected_edges
from asapool.theory.report import construction_error, random_graph


def weighted(graph, seed):
    g = torch.Generator().manual_seed(seed)
    edges = undirected_edges(graph)
    w = torch.rand(edges.size(1), generator=g, dtype=torch.float64) + 0.1
    return packed(graph, w), torch.cat([edges, edges.flip(0)], dim=1), torch.cat([w, w])


def test_f_by_hand():
    """Path 1 − 5 − 1 with α = 1, β = A: the ends 1 + (1 − 5), the middle 5 + 2·(5 − 1)."""
    g = packed(path_graph(3), torch.ones(2, dtype=torch.float64))
    A, x = dense(g.pattern, g.weight), torch.tensor([[1.0], [5.0], [1.0]], dtype=torch.float64)
    f = difference_matrix(torch.ones(3, dtype=torch.float64), A) @ x
    assert f.view(-1).tolist() == [-3, 13, -3]
    W1, W2, W3 = leconv_weights(torch.ones(3, dtype=torch.float64), A, A, torch.ones(1, 1, dtype=torch.float64))
    torch.testing.assert_close(leconv(g, x, W1, W2, W3), f)


def test_leconv_reaches_f_on_random_graphs():
    assert construction_error(seed=1) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_layer_reaches_f_with_the_constructed_weights(dtype):
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        graph = random_graph(7, 0.5, generator)
        g, edge_index, w = weighted(graph, seed)
        A = dense(g.pattern, g.weight)
        x = torch.randn(7, 3, generator=generator, dtype=torch.float64)
        W = torch.randn(3, 1, generator=generator, dtype=torch.float64)
        alpha, beta = 0.5 + 0.25 * A.sum(dim=1), 2 * A
        layer = LEConv(3, 1, bias=False).to(dtype)
        with torch.no_grad():
            for own, made in zip((layer.W1, layer.W2, layer.W3), leconv_weights(alpha, beta, A, W), strict=True):
                own.copy_(made)
            phi = layer(x.to(dtype), edge_index, w.to(dtype)).sigmoid()
        f = (difference_matrix(alpha, beta) @ x @ W).sigmoid()
        torch.testing.assert_close(phi.double(), f, atol=1e-6, rtol=0)


def test_gcn_is_the_layer_s_gcn():
    g, edge_index, w = weighted(starlike_tree([2, 1, 1]), 0)
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    layer = GCN(3, 1, bias=False).double()
    with torch.no_grad():
        torch.testing.assert_close(gcn(g, x, layer.lin.weight.t()), layer(x, edge_index, w))


def test_gcn_never_reaches_a_function_with_opposite_signs():
    for seed in range(50):
        generator = torch.Generator().manual_seed(seed)
        graph = random_graph(6, 0.6, generator)
        if not any(graph):
            continue
        A = dense(*(lambda g: (g.pattern, g.weight))(weighted(graph, seed)[0]))
        alpha, beta = torch.rand(6, generator=generator, dtype=torch.float64), A
        assert gcn_must_fail(alpha, beta)
        fit = nearest(difference_matrix(alpha, beta), gcn_family(A))
        assert fit.error > 0.01
        assert fit.r2 < 1


def test_gcn_reaches_the_mean_which_is_a_function_of_differences_too():
    A = dense(*(lambda g: (g.pattern, g.weight))(packed(circulant(5, 4)))).double()  # the complete graph on five nodes
    alpha, beta = torch.ones(5, dtype=torch.float64), -A / 5  # x_i − Σ (x_i − x_j)/5 = mean
    assert not gcn_must_fail(alpha, beta)
    assert nearest(difference_matrix(alpha, beta), gcn_family(A)).error < 1e-12


def test_leconv_reaches_exactly_the_multiples_of_a_with_degree_linear_alpha():
    g, _, _ = weighted(starlike_tree([2, 1, 1]), 3)
    A = dense(g.pattern, g.weight)
    one = torch.ones(5, dtype=torch.float64)
    assert nearest(difference_matrix(3 * one + 2 * A.sum(dim=1), 0.5 * A), leconv_family(A)).error < 1e-12
    crooked = A.clone()
    crooked[0, 1] *= 2
    assert nearest(difference_matrix(one, crooked), leconv_family(A)).error > 0.01
    assert nearest(difference_matrix(torch.arange(5.0).double(), A), leconv_family(A)).error > 0.01
    with pytest.raises(InputError, match="LEConv cannot represent this f"):
        leconv_weights(one, crooked, A, torch.ones(1, 1, dtype=torch.float64))


def test_on_regular_graphs_gcn_explains_nothing_of_pure_differences():
    for r in (2, 4, 6):
        A = dense(*(lambda g: (g.pattern, g.weight))(packed(circulant(9, r)))).double()
        assert abs(nearest(difference_matrix(torch.zeros(9).double(), A), gcn_family(A)).r2) < 1e-12
        with_self = nearest(difference_matrix(torch.ones(9).double(), A), gcn_family(A)).r2
        assert with_self == pytest.approx(1 / ((r + 1) * ((r + 1) ** 2 + r)))  # cov² / (var·var), by hand
