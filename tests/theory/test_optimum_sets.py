"""n*_h: hand-made values, brute force on thousands of small graphs, and size."""

import random
from itertools import combinations

import networkx as nx
import pytest

from asapool.errors import InputError
from asapool.theory import optimum_nodes, scatter
from asapool.theory.bounds import largest_independent, path_optimum, starlike_optimum
from asapool.theory.graphs import balls, distances, path_graph, starlike_tree
from tests.theory.dense import brute_optimum, random_graph, random_tree


@pytest.mark.parametrize(
    ("graph", "h", "n"),
    [
        (path_graph(7), 3, 3),  # 0, 3, 6
        (starlike_tree([1] * 5), 2, 5),  # the leaves
        (starlike_tree([1] * 5), 3, 1),  # any two nodes are at most 2 apart
        (starlike_tree([2, 2, 2]), 4, 3),  # the leaves, 4 apart
        (starlike_tree([3, 3, 1]), 4, 3),  # heights 3, 3, 1: 6 and 4 apart
        (nx.cycle_graph(6), 3, 2),  # opposite nodes
        (nx.petersen_graph(), 2, 4),  # the largest independent set of the Petersen graph
        (nx.empty_graph(4), 9, 4),  # no paths at all: infinitely far
    ],
)
def test_values_worked_out_by_hand(graph, h, n):
    assert optimum_nodes(graph, h) == n


@pytest.mark.parametrize("kind", ["tree", "graph"])
def test_equal_to_brute_force_on_a_thousand_graphs(kind):
    rng = random.Random(7)
    for _ in range(1000):
        N = rng.randint(1, 9)
        graph = random_tree(N, rng) if kind == "tree" else random_graph(N, rng.random(), rng)
        h = rng.randint(1, N + 1)
        chosen, D = scatter(graph, h), distances(graph)
        assert all(D[a, b] >= h or D[a, b] == N for a, b in combinations(chosen, 2))
        assert len(chosen) == brute_optimum(graph, h), (graph, h)


def test_tree_and_branch_and_bound_agree_where_brute_force_is_too_slow():
    rng = random.Random(1)
    for _ in range(60):
        tree, h = random_tree(40, rng), rng.randint(2, 9)
        assert optimum_nodes(tree, h) == len(largest_independent(balls(tree, h - 1)))


def test_thousands_of_nodes_are_within_reach():
    rng = random.Random(2)
    for h in (2, 4, 51):
        optimum_nodes(random_tree(5000, rng), h)
    assert optimum_nodes(path_graph(5000), 7) == path_optimum(5000, 7) == 715
    assert optimum_nodes(starlike_tree([500] * 12), 9) == starlike_optimum([500] * 12, 9)


def test_a_distance_below_one_is_refused():
    with pytest.raises(InputError, match="h must be at least 1, got 0"):
        optimum_nodes(path_graph(3), 0)
