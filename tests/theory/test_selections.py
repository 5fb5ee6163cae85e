"""The real operators on every selection: by hand, against dense matrices, and against the formulas."""

import random
from itertools import combinations

import numpy as np
import pytest
import torch

from asapool.errors import InputError
from asapool.nn import ASAPooling
from asapool.theory.graphs import distances, path_graph, starlike_tree
from asapool.theory.operators import dense, undirected_edges
from asapool.theory.selections import joined, pool_selections, shapes, try_all_selections
from tests.theory.dense import pooled, random_graph, random_tree


def test_edges_of_a_path_by_hand(backend):
    path = path_graph(6)
    kept = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]
    assert shapes(*pool_selections(path, kept, "topk", backend=backend))[0].tolist() == [1, 0, 0, 0, 0]
    assert shapes(*pool_selections(path, kept, "asap", backend=backend))[0].tolist() == [1, 1, 1, 0, 0]  # up to 3 hops
    assert shapes(*pool_selections(path, kept, "topk", h=3, backend=backend))[0].tolist() == [1, 1, 1, 0, 0]


def test_pieces_of_a_star_by_hand(backend):
    star = starlike_tree([1] * 4)
    edges, pieces = shapes(*pool_selections(star, [(1, 2, 3, 4), (0, 1, 2)], "topk", backend=backend))
    assert (edges.tolist(), pieces.tolist()) == ([0, 2], [4, 1])
    edges, pieces = shapes(*pool_selections(star, [(1, 2, 3, 4), (0, 1, 2)], "asap", backend=backend))
    assert (edges.tolist(), pieces.tolist()) == ([6, 3], [1, 1])


@pytest.mark.parametrize("method", ["topk", "asap"])
@pytest.mark.parametrize("h", [1, 2])
def test_the_kernels_give_what_dense_matrices_give(method, h, backend):
    rng = random.Random(3)
    for _ in range(60):
        N = rng.randint(1, 8)
        graph = random_graph(N, rng.random(), rng)
        kept = sorted(rng.sample(range(N), rng.randint(1, N)))
        ours = dense(*pool_selections(graph, [kept], method, h, backend=backend))
        np.testing.assert_allclose(ours.numpy(), pooled(graph, kept, method, h), atol=1e-6)


@pytest.mark.parametrize("semantics", ["paper", "authors", "pyg"])
def test_the_layer_joins_the_same_nodes(semantics):
    rng = random.Random(4)
    for trial in range(30):
        graph = random_tree(rng.randint(3, 9), rng)
        edges = undirected_edges(graph)
        torch.manual_seed(trial)
        pool = ASAPooling(3, ratio=0.5, semantics=semantics)
        out = pool(torch.randn(len(graph), 3), torch.cat([edges, edges.flip(0)], dim=1))
        kept = out.perm.tolist()
        there = {(kept[i], kept[j]) for j, i in out.edge_index.t().tolist() if i != j}
        near = joined(graph, "asap")
        assert there == {(a, b) for a in kept for b in kept if near[a, b]}


@pytest.mark.parametrize(("method", "h"), [("topk", 1), ("topk", 2), ("asap", 1), ("asap", 2)])
@pytest.mark.parametrize(("family", "most"), [("tree", 9), ("path", 10)])
def test_brute_force_equals_the_formulas(method, h, family, most):
    rows = try_all_selections(most, method, h, family)
    for row in rows:
        assert (row.edgeless, row.mismatches) == (row.formula, 0)
        assert row.disconnected == row.disconnected_formula
    if family == "path":
        assert [row.selections for row in rows] == [2**N - 1 for N in range(1, most + 1)]


def test_the_fused_kernels_agree_on_all_trees_of_seven():
    for method in ("topk", "asap"):
        assert try_all_selections(7, method, backend="fused") == try_all_selections(7, method)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("h", [1, 2])
def test_graph_powers_reach_as_far_as_said(k, h):
    rng = random.Random(5)
    for _ in range(20):
        graph = random_graph(9, 0.25, rng)
        D = torch.from_numpy(distances(graph))
        off = (D > 0) & (D < 9)
        assert torch.equal(joined(graph, "topk", 1, k), off & (k >= D))
        assert torch.equal(joined(graph, "asap", h, k), off & (k + 2 * h >= D))
        assert torch.equal(joined(graph, "asap", h, k, "graph"), off & (k * (2 * h + 1) >= D))


def test_every_edge_of_topk_is_one_of_asap():
    rng = random.Random(6)
    for _ in range(30):
        graph = random_graph(8, rng.random(), rng)
        for k in (1, 2, 3):
            assert not (joined(graph, "topk", 1, k) & ~joined(graph, "asap", 1, k)).any()


def test_an_empty_selection_is_refused():
    with pytest.raises(InputError, match="a selection is empty"):
        pool_selections(path_graph(3), [(0,), ()], "topk")


def test_all_selections_means_all():
    assert sum(1 for K in range(1, 5) for _ in combinations(range(4), K)) == 15
    assert try_all_selections(4, "topk")[-1].selections == 30  # two trees of four nodes
