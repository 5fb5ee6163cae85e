"""Synthetic sets: seeded, parameterised, and what they say they are."""

import networkx as nx
import numpy as np
import pytest

from asapool.data import load
from asapool.errors import ConfigError


def test_a_motif_is_a_house_or_a_ring_and_its_nodes_are_the_truth():
    graphs = load("synthetic:motifs?graphs=8&nodes=12&seed=3")
    for i, g in enumerate(graphs.iter_networkx()):
        motif = g.subgraph([v for v, data in g.nodes(data=True) if data["truth"]])
        want = nx.house_graph() if g.graph["label"] == "house" else nx.cycle_graph(5)
        assert nx.is_isomorphic(motif, want)
        assert nx.is_connected(g)
        assert len(g) == 17
        assert graphs.y[i] == i % 2
        assert nx.is_forest(g.subgraph([v for v, data in g.nodes(data=True) if not data["truth"]]))
    places = [np.flatnonzero(graphs.truth[a:b]).tolist() for a, b in zip(graphs.ptr, graphs.ptr[1:], strict=False)]
    assert len({tuple(p) for p in places}) > 4  # the motif does not always have the same numbers


def test_cycles_and_paths():
    for g in load("synthetic:cycles?graphs=10&nodes=9").iter_networkx():
        degrees = sorted(d for _, d in g.degree)
        assert 3 <= len(g) <= 9
        assert nx.is_connected(g)
        assert degrees.count(1) == (0 if g.graph["label"] == "cycle" else 2)


def test_blocks_have_the_density_of_uniform_graphs():
    graphs = load("synthetic:blocks?graphs=60&nodes=40&parts=4&inside=0.6&across=0.05")
    counts = np.diff(graphs.rowptr[graphs.ptr])
    blocks, uniform = counts[graphs.y == 0].mean(), counts[graphs.y == 1].mean()
    assert abs(blocks - uniform) < 0.1 * uniform
    clustering = [nx.average_clustering(g) for g in graphs.iter_networkx()]
    assert np.mean(clustering[::2]) > 2 * np.mean(clustering[1::2])


def test_the_trees_and_paths_of_the_theory():
    for g in load("synthetic:trees?graphs=6&nodes=11&height=3").iter_networkx():
        assert nx.is_tree(g)
        if g.graph["label"] == "starlike":  # at most one node of degree above two; legs of 3, and one of 1
            [root] = [v for v, d in g.degree if d > 2]
            height = nx.single_source_shortest_path_length(g, root)
            assert sorted(height[v] for v, d in g.degree if d == 1) == [1, 3, 3, 3]
    paths = load("synthetic:paths?graphs=3&nodes=5")
    assert [len(g) for g in paths.iter_networkx()] == [5, 6, 7]
    assert paths.y.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("name", ["motifs", "cycles", "blocks", "trees", "paths"])
def test_the_same_seed_gives_the_same_graphs(name):
    one = load(f"synthetic:{name}?graphs=5&seed=1")
    assert load(f"synthetic:{name}?graphs=5&seed=1").fingerprint == one.fingerprint
    assert load(f"synthetic:{name}?graphs=5&seed=2").fingerprint != one.fingerprint
    constant = load(f"synthetic:{name}?graphs=9&seed=1", features="constant").subset(range(5))
    assert np.array_equal(constant.col, one.col)  # graph g does not depend on how many follow


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("synthetic:stars", "unknown set 'stars', expected one of 'motifs', 'cycles'"),
        ("synthetic:motifs?size=3", "unknown parameter 'size', expected some of graphs, nodes, seed"),
        ("synthetic:motifs?graphs=many", "graphs must be a whole number, got 'many'"),
        ("synthetic:motifs?graphs=0", "graphs must be at least 1, got 0"),
        ("synthetic:cycles?nodes=2", "nodes must be at least 3, got 2"),
        ("synthetic:chains?distance=0", "distance must be at least 1, got 0"),
        ("synthetic:blocks?inside=2", "inside and across must lie in"),
        ("synthetic:paths?graphs=2&nodes=99999999", "more than 50,000,000 nodes"),
        ("synthetic:motifs?seed=-1", "seed must be at least 0"),
    ],
)
def test_parameters_that_make_no_sense(source, sentence):
    with pytest.raises(ConfigError, match=sentence):
        load(source)


def view(g, v, hops=3):
    """A hash of what lies within some hops of a node, with the distances to it."""
    around = nx.ego_graph(g, v, hops).copy()
    nx.set_node_attributes(around, nx.single_source_shortest_path_length(around, v), "distance")
    return nx.weisfeiler_lehman_graph_hash(around, node_attr="distance")


def test_chains_differ_only_beyond_half_their_distance():
    graphs = load("synthetic:chains?graphs=6&distance=7&seed=2")
    for g in graphs.iter_networkx():
        halves = [g.subgraph(part) for part in nx.connected_components(g)]
        rings = [sorted(len(c) for c in nx.cycle_basis(half)) for half in halves]
        assert sorted(rings) == ([[3, 3], [4, 4]] if g.graph["label"] == "matched" else [[3, 4], [3, 4]])
        for half in halves:
            first, second = nx.cycle_basis(half)
            assert min(nx.shortest_path_length(half, u, v) for u in first for v in second) == 7
        assert sum(data["truth"] for _, data in g.nodes(data=True)) == 14
    by_class = {}
    for g in graphs.iter_networkx():  # what a node sees within three hops, all nodes together
        views = [view(g, v) for v in g]
        by_class.setdefault(g.graph["label"], set()).add(tuple(sorted(views)))
    assert by_class["matched"] == by_class["crossed"]


def test_leaves_make_chains_of_a_class_differ_without_moving_their_ends():
    graphs = load("synthetic:chains?graphs=8&distance=6&leaves=0.5&seed=1")
    assert len(set(np.diff(graphs.ptr).tolist())) > 1
    for g in graphs.iter_networkx():
        for half in (g.subgraph(part) for part in nx.connected_components(g)):
            first, second = nx.cycle_basis(half)
            assert min(nx.shortest_path_length(half, u, v) for u in first for v in second) == 6
            leaves = [v for v in half if half.degree(v) == 1]
            assert len(half) == len(first) + len(second) + 5 + len(leaves)
            assert all(half.degree(next(iter(half[v]))) == 3 for v in leaves)  # one leaf at most, on inner nodes
    with pytest.raises(ConfigError, match="leaves must lie in"):
        load("synthetic:chains?leaves=1.5")


def test_multipartite_graphs_have_as_many_groups_as_their_class_says_and_the_same_density():
    graphs = load("synthetic:multipartite?graphs=90&nodes=24&density=0.4")
    counts = np.diff(graphs.rowptr[graphs.ptr])
    means = [counts[graphs.y == c].mean() for c in range(3)]
    assert max(means) < 1.05 * min(means)
    for g in list(graphs.iter_networkx())[:6]:
        groups = int(g.graph["label"])
        assert max(nx.greedy_color(g, "DSATUR").values()) + 1 <= groups
    with pytest.raises(ConfigError, match="density must lie"):
        load("synthetic:multipartite?density=0.9")
