"""The forecast: by hand on graphs small enough to draw, against the operators, and on a real data set."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch

from asapool import kernels
from asapool.errors import ConfigError, InputError
from asapool.insight import forecast
from asapool.insight.forecasting import advise, cut, guarantee, pool_at_random
from asapool.kernels.ratio import kept_count
from asapool.theory.graphs import path_graph, starlike_tree
from asapool.theory.selections import pool_selections, shapes


def packed(*graphs):
    """CSR of several graphs behind each other."""
    rowptr, col, ptr = [0], [], [0]
    for graph in graphs:
        for around in graph:
            col += [j + ptr[-1] for j in around]
            rowptr.append(len(col))
        ptr.append(ptr[-1] + len(graph))
    return np.array(rowptr), np.array(col), np.array(ptr)


def level(seen, method, number):
    return next(result for result in seen.levels if (result.method, result.level) == (method, number))


def test_the_input_by_hand():
    start = level(forecast(*packed(path_graph(3), [[], [], [], []]), levels=1), "input", 0)
    assert (start.nodes, start.edges, start.pieces) == (3.5, 1.0, 2.5)
    assert start.density == pytest.approx((2 / 3 + 0) / 2)
    assert start.isolated == pytest.approx(4 / 7)


def test_a_complete_graph_stays_complete():
    K6 = [[j for j in range(6) if j != i] for i in range(6)]
    seen = forecast(*packed(K6), ratio=0.5, levels=2)
    for method in ("topk", "asap"):
        assert [level(seen, method, n).nodes for n in (1, 2)] == [3, 2]
        assert [level(seen, method, n).density for n in (1, 2)] == [1, 1]
        assert [level(seen, method, n).pieces for n in (1, 2)] == [1, 1]


def test_a_star_falls_apart_under_topk_and_not_under_asap():
    """Six of eleven nodes are kept: the root stays with probability 6/11, else there are six pieces."""
    seen = forecast(*packed(*[starlike_tree([1] * 10)] * 200), ratio=0.5, levels=1, samples=5, seed=1)
    topk, asap = level(seen, "topk", 1), level(seen, "asap", 1)
    assert topk.pieces == pytest.approx(6 / 11 * 1 + 5 / 11 * 6, rel=0.05)
    assert topk.split == pytest.approx(5 / 11, abs=0.05)
    assert topk.isolated == pytest.approx(5 / 11, abs=0.05)
    assert (asap.pieces, asap.split, asap.density) == (1, 0, 1)


@pytest.mark.parametrize("method", ["topk", "asap"])
def test_pooled_graphs_are_those_of_the_operators(method):
    graph = starlike_tree([3, 2, 1, 4])
    rowptr, col, ptr = packed(graph)
    A, size = cut(rowptr, col, ptr, np.array([0]))
    for seed in range(20):
        now, N, _ = pool_at_random(A, size, kept_count(size, 0.5), method, 1, np.random.default_rng(seed))
        order = np.lexsort((np.random.default_rng(seed).random(11), np.zeros(11)))
        chosen = np.sort(order[:6])
        edges, pieces = shapes(*pool_selections(graph, [chosen.tolist()], method))
        assert N.tolist() == [6]
        assert now.nnz == 2 * int(edges[0])
        from scipy.sparse.csgraph import connected_components

        assert connected_components(now)[0] == int(pieces[0])


def test_each_graph_keeps_its_own_share():
    rowptr, col, ptr = packed(path_graph(5), path_graph(2), path_graph(8))
    A, size = cut(rowptr, col, ptr, np.array([0, 2]))
    assert size.tolist() == [5, 8]
    now, N, _ = pool_at_random(A, size, kept_count(size, 0.5), "asap", 1, np.random.default_rng(0))
    assert N.tolist() == [3, 4]
    assert now.shape == (7, 7)
    assert now[:3][:, 3:].nnz == 0  # no edge between two graphs


def test_wider_clusters_join_more():
    data = packed(*[path_graph(40)] * 10)
    one, two = (level(forecast(*data, ratio=0.25, levels=1, hops=h), "asap", 1) for h in (1, 2))
    assert two.edges > one.edges
    assert two.pieces < one.pieces


def test_memory_is_that_of_the_packed_graph():
    seen = forecast(*packed(path_graph(4)), levels=1, channels=8)
    pattern, _ = kernels.pack(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]), torch.tensor([0, 4]), 4)
    parts = (pattern.col, pattern.col_t, pattern.edge_t, pattern.rowptr[1:], pattern.rowptr_t[1:], pattern.diag)
    room = sum(part.nbytes for part in parts) + 4 * pattern.col.numel() + 4 * 4 * 8
    assert level(seen, "input", 0).bytes == room


@pytest.mark.parametrize("ratio", [0, 0.0, 1.5, -1, True])
def test_a_ratio_out_of_range_is_refused(ratio):
    with pytest.raises(ConfigError, match="ratio"):
        forecast(*packed(path_graph(4)), ratio=ratio)


def test_two_thirds_of_three_nodes_are_two():
    assert level(forecast(*packed(path_graph(3)), ratio=1 - 1 / 3, levels=1), "asap", 1).nodes == 2


def test_the_same_seed_gives_the_same_forecast():
    data = packed(*[path_graph(9)] * 5, starlike_tree([2, 2, 2]))
    assert forecast(*data, seed=3) == forecast(*data, seed=3)
    assert forecast(*data, seed=3).levels != forecast(*data, seed=4).levels


@pytest.mark.parametrize(
    ("rowptr", "col", "ptr", "words"),
    [
        ([0, 1, 2], [1, 0], [0, 1], "ptr must increase from 0 to the number of nodes, 2"),
        ([0, 1, 2], [1, 0], [0, 0, 2], "Leave out empty graphs"),
        ([0, 1, 3], [1, 0], [0, 2], "rowptr must increase from 0 to the number of edges, 2"),
        ([0, 1, 2], [1, 2], [0, 2], "col must contain nodes 0 to 1, got 1 to 2"),
    ],
)
def test_broken_arrays_are_refused(rowptr, col, ptr, words):
    with pytest.raises(InputError, match=words):
        forecast(np.array(rowptr), np.array(col), np.array(ptr))


def test_advice_names_the_level_the_numbers_and_the_way_out():
    seen = forecast(*packed(*[path_graph(40)] * 20), ratio=0.5, levels=2)
    assert any(line.startswith("TopK, level 1: 20.0 nodes in") and "pool with ASAP" in line for line in seen.advice)
    K20 = [[j for j in range(20) if j != i] for i in range(20)]
    dense = forecast(*packed(K20), ratio=0.5, levels=2).advice
    assert any("ASAP, level 1: 100% of all pairs are joined" in line and "max_neighbours" in line for line in dense)
    few = forecast(*packed(path_graph(6)), ratio=0.5, levels=3).advice
    assert any("leaves 2.0 nodes per graph" in line for line in few)


def test_a_better_ratio_is_looked_for():
    seen = forecast(*packed(*[path_graph(40)] * 5), ratio=0.5, levels=1)
    lines = advise(list(seen.levels), 0.5, 1, lambda r: {("topk", 1): 9.0 if r < 0.75 else 1.5, ("asap", 1): 1.0})
    assert any("keep more (ratio 0.8)" in line for line in lines)


def test_quiet_data_gets_the_guarantee_only():
    seen = forecast(*packed(path_graph(12)), levels=1)
    calm = [replace(result, isolated=0.0, split=0.0, density=0.2, nodes=9.0) for result in seen.levels]
    assert advise(calm, 0.5, 1, lambda r: {}) == [guarantee(0.5, 1)]


def test_guarantees():
    assert "Ratio 0.5 guarantees an edge" in guarantee(0.5, 1)
    assert "Ratio 0.4 is below 1/2" in guarantee(0.4, 1)
    assert "Ratio 0.4 guarantees an edge" in guarantee(0.4, 2)
    assert guarantee(1.0, 1).endswith("of a connected graph.")
    assert "(N − 1)/2" in guarantee(10, 1)


def test_it_is_plain_json():
    seen = forecast(*packed(path_graph(5)), levels=1)
    assert json.loads(json.dumps(seen.to_dict()))["levels"][0]["method"] == "input"
    assert [result.level for result in seen.of("asap")] == [0, 1]


def test_proteins(shared_datasets):
    archive = zipfile.ZipFile(shared_datasets / "PROTEINS.zip")
    text = {
        name.rsplit("/", 1)[-1]: archive.read(name).decode() for name in archive.namelist() if name.endswith(".txt")
    }
    edges = np.array(text["PROTEINS_A.txt"].replace(",", " ").split(), dtype=int).reshape(-1, 2) - 1
    graph = np.array(text["PROTEINS_graph_indicator.txt"].split(), dtype=int) - 1
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    rowptr = np.concatenate([[0], np.cumsum(np.bincount(edges[:, 0], minlength=len(graph)))])
    seen = forecast(rowptr, edges[:, 1], np.concatenate([[0], np.cumsum(np.bincount(graph))]), ratio=0.5, levels=3)
    assert seen.graphs == 1113
    assert level(seen, "input", 0).nodes == pytest.approx(39.06, abs=4)  # the paper's mean, over a sample of the graphs
    assert level(seen, "topk", 3).isolated > 0.5
    assert level(seen, "asap", 3).pieces < 1.5
    assert level(seen, "asap", 3).density > 0.8
