"""Closed forms and sampling ratios, by hand and against counting."""

import random
from fractions import Fraction

import networkx as nx
import pytest

from asapool.errors import ConfigError
from asapool.theory.bounds import (
    edge_reach,
    forced,
    k_star,
    k_star_limit,
    k_star_printed,
    optimum_nodes,
    path_optimum,
    starlike_optimum,
    tree_optimum,
    tree_optimum_printed,
)
from asapool.theory.graphs import balanced_starlike_tree, path_graph, starlike_tree


def test_closed_forms_agree_with_counting():
    for N in range(1, 41):
        for h in range(1, N + 3):
            assert path_optimum(N, h) == optimum_nodes(path_graph(N), h)
            assert tree_optimum(N, h) == optimum_nodes(balanced_starlike_tree(N, h), h)


def test_starlike_trees_with_any_legs():
    rng = random.Random(0)
    for _ in range(2000):
        legs, h = [rng.randint(1, 9) for _ in range(rng.randint(0, 6))], rng.randint(1, 14)
        assert starlike_optimum(legs, h) == optimum_nodes(starlike_tree(legs), h), (legs, h)


def test_no_connected_graph_beats_the_balanced_starlike_tree():
    for seed in range(300):
        G = nx.gnp_random_graph(9, 0.15 + seed / 500, seed=seed)
        G = G.subgraph(max(nx.connected_components(G), key=len))
        for h in range(1, 8):
            assert optimum_nodes(G, h) <= tree_optimum(len(G), h)


def test_the_printed_formula_is_right_for_even_h_and_large_n_only():
    wrong = {(N, h) for N in range(1, 30) for h in range(1, 20) if tree_optimum_printed(N, h) != tree_optimum(N, h)}
    even = {(N, h) for N, h in wrong if h % 2 == 0}
    assert even == {(N, h) for N in range(1, 30) for h in range(2, 20, 2) if h >= 2 * N}
    assert (7, 3) in wrong  # printed 4; true 3


def test_how_far_an_edge_reaches():
    assert [edge_reach(m, h) for m in ("topk", "sagpool", "asap") for h in (1, 2)] == [1, 2, 1, 2, 3, 5]
    with pytest.raises(ConfigError, match="method must be one of"):
        edge_reach("diffpool")


def test_ratios_worked_out_by_hand():
    assert k_star(5, "tree", "topk") == Fraction(4, 5)  # the leaves of a star
    assert k_star(5, "tree", "asap") == Fraction(2, 5)  # the ends of a path
    assert k_star(8, "path", "topk") == Fraction(1, 2)  # every second node
    assert k_star(9, "path", "asap") == Fraction(1, 3)  # nodes 0, 4, 8
    assert k_star(1, "tree", "asap") == 1  # a single node never has an edge
    assert k_star(4, "tree", "asap", h=2) == Fraction(1, 4)


def test_the_limits_are_approached():
    for family in ("tree", "path"):
        for method in ("topk", "asap"):
            for h in (1, 2, 3):
                assert abs(k_star(10**7, family, method, h) - k_star_limit(family, method, h)) < 1e-6
    assert [k_star_limit("tree", "asap", h) for h in (1, 2, 3)] == [Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)]


def test_half_of_the_nodes_force_an_asap_edge_on_every_tree_but_the_smallest():
    assert [N for N in range(2, 2000) if not forced(Fraction(1, 2), N, "tree", "asap")] == [2]


def test_the_printed_tree_bound_admits_one_node_too_few_and_the_path_bound_does_not():
    hair = Fraction(1, 10**9)
    for N in range(5, 200):
        for method in ("topk", "asap"):
            assert not forced(k_star_printed(N, "tree", method) + hair / N, N, "tree", method)
            assert forced(k_star_printed(N, "path", method), N, "path", method)
