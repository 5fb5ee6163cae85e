"""Neighbour lists, and the trees of the lemmas."""

import networkx as nx
import numpy as np
import pytest

from asapool.errors import InputError
from asapool.theory.graphs import (
    balanced_starlike_tree,
    balls,
    components,
    distances,
    neighbours,
    path_graph,
    starlike_tree,
)


def test_networkx_graphs_keep_their_node_order_and_lose_their_loops():
    G = nx.Graph([("c", "a"), ("a", "a"), ("a", "b")])
    assert neighbours(G) == [[1], [0, 2], [1]]  # c, a, b


def test_one_direction_is_enough():
    assert neighbours([[1], [], [1]]) == [[1], [0, 2], [1]]


def test_a_neighbour_that_is_not_a_node_is_named():
    with pytest.raises(InputError, match="node 1 names neighbour 7, but nodes are 0 to 1"):
        neighbours([[1], [7]])


@pytest.mark.parametrize(
    ("N", "h", "legs"),
    [(1, 4, []), (2, 4, [1]), (5, 4, [2, 2]), (6, 4, [2, 2, 1]), (6, 3, [2, 2, 1]), (4, 2, [1, 1, 1])],
)
def test_balanced_starlike_trees(N, h, legs):
    tree = balanced_starlike_tree(N, h)
    assert tree == starlike_tree(legs)
    assert len(tree) == N
    assert len(components(tree)) == 1


def test_a_starlike_tree_has_one_branching_node():
    degrees = sorted(map(len, starlike_tree([3, 1, 2])))
    assert degrees == [1, 1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize("make", [path_graph, lambda N: balanced_starlike_tree(N, 2), lambda N: starlike_tree([N])])
def test_sizes_below_one_are_refused(make):
    with pytest.raises(InputError, match="must be at least 1, got 0"):
        make(0)


def test_distances_and_balls_agree_with_networkx():
    for seed in range(20):
        G = nx.gnp_random_graph(8, 0.25, seed=seed)
        D = distances(G)
        for i, far in nx.all_pairs_shortest_path_length(G):
            assert [D[i, j] for j in range(8)] == [far.get(j, 8) for j in range(8)]
        for radius in range(4):
            assert balls(G, radius) == [sum(1 << j for j in np.flatnonzero(D[i] <= radius)) for i in range(8)]
