"""Compiled loops do not check bounds, so input that bypasses the layers' checks is validated before they run."""

import pytest
import torch

from asapool import kernels
from asapool.errors import InputError
from asapool.models import ModelConfig, build
from asapool.nn import GCN, ASAPooling, Graph, LEConv, Master2Token, Readout, TopKPooling
from tests.graphs import PATH3, random_batch, with_random_parameters

UNSORTED = torch.tensor([1, 0, 1, 0, 1, 0])
EDGES = torch.tensor([[0, 2, 1, 3, 3, 5, 0, 4], [2, 0, 3, 1, 5, 3, 4, 0]])


def compiled(module):
    torch.compiler.reset()
    return torch.compile(module, fullgraph=True, dynamic=True, backend="aot_eager")


def test_a_compiled_layer_takes_an_unsorted_batch():
    pool = with_random_parameters(ASAPooling(3).double())
    x = torch.randn(6, 3, dtype=torch.float64)
    expected, got = pool(x, EDGES, None, UNSORTED), compiled(pool)(x, EDGES, None, UNSORTED)
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    readout = Readout()
    torch.testing.assert_close(compiled(readout)(x, UNSORTED), readout(x, UNSORTED))


def test_an_exported_layer_takes_an_unsorted_batch():
    pool = with_random_parameters(ASAPooling(3).double()).eval()
    free = torch.export.Dim.DYNAMIC
    data = random_batch(1, graphs=4, most=7, F=3)
    program = torch.export.export(pool, data, dynamic_shapes=({0: free}, {1: free}, {0: free}, {0: free}))
    other = torch.randn(6, 3, dtype=torch.float64), EDGES, torch.rand(8, dtype=torch.float64), UNSORTED
    for ours, theirs in zip(program.module()(*other), pool(*other), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        ([0, 10**8], r"edge_index must name nodes 0 to 5, got 0 → 100000000 at edge 4"),
        ([-1, 0], r"got -1 → 0 at edge 4"),
        ([0, 5], r"node 5 must list nodes of its own graph, ascending, each once; got \[0, 5\]"),
    ],
)
def test_a_compiled_program_refuses_stray_edges(edge, message):
    pack = compiled(lambda edges: kernels.pack(edges, torch.tensor([0, 3, 6]), 6)[0].col)
    with pytest.raises(InputError, match=message):
        pack(torch.cat([PATH3, torch.tensor(edge)[:, None]], dim=1))


PTR, ROWPTR, COL = [0, 2, 3], [0, 1, 2, 2], [1, 0]
UNSOUND = {
    "a neighbour that is not there": ((PTR, ROWPTR, [1, 10**8]), r"node 1 must list nodes of its own graph.*100000000"),
    "a neighbour in another graph": ((PTR, ROWPTR, [2, 0]), r"node 0 must list nodes of its own graph.*got \[2\]"),
    "a neighbour named twice": ((PTR, [0, 2, 3, 3], [1, 1, 0]), r"node 0 must list .* each once; got \[1, 1\]"),
    "graphs beyond the nodes": (([0, 2, 5], ROWPTR, COL), r"ptr must ascend from 0 to 3, got \[0, 2, 5\]"),
    "graphs that overlap": (([0, 3, 2, 3], ROWPTR, COL), r"ptr must ascend from 0 to 3, got \[0, 3, 2, 3\]"),
    "edges beyond the columns": ((PTR, [0, 1, 2, 9], COL), r"rowptr must ascend from 0 to 2, got \[0, 9\]"),
    "rows that overlap": ((PTR, [0, 2, 1, 2], COL), r"node 0|node 1"),
    "too few rows": ((PTR, [0, 1, 2], COL), r"rowptr must have one entry more than x has rows, 4, got 3"),
}


@pytest.mark.parametrize("parts", [case[0] for case in UNSOUND.values()], ids=UNSOUND)
@pytest.mark.parametrize("method", ["asap", "topk", "set2set"])
def test_a_model_refuses_invalid_graphs(parts, method):
    message = next(text for case, text in UNSOUND.values() if case is parts)
    model = build(ModelConfig(method=method, hidden=8), 3, 2)
    with pytest.raises(InputError, match=message):
        model(torch.ones(3, 3), *map(torch.tensor, parts))


def test_a_model_without_edges_refuses_invalid_graphs():
    with pytest.raises(InputError, match=r"ptr must ascend from 0 to 3, got \[0, 2, 5\]"):
        kernels.readout(torch.ones(3, 3), torch.tensor([0, 2, 5]))


def test_one_weight_per_edge():
    model = build(ModelConfig(hidden=8), 3, 2)
    with pytest.raises(InputError, match="weight must hold one number per edge, 2, got 1"):
        model(torch.ones(3, 3), *map(torch.tensor, (PTR, ROWPTR, COL)), torch.ones(1))


@pytest.mark.parametrize("rows", [2, 7])
def test_features_of_another_graph(rows):
    pattern, _ = kernels.pack(PATH3, torch.tensor([0, 3]), 3)
    graph = Graph(pattern, torch.ones(pattern.col.numel()))
    x = torch.ones(rows, 8)
    for call in (GCN(8, 8), LEConv(8, 1), Master2Token(8), TopKPooling(8).step, ASAPooling(8).step):
        with pytest.raises(InputError, match=f"x must have one row per node, 3, got {rows}"):
            call(x, graph)
    with pytest.raises(InputError, match=f"x must have one row per node, 3, got {rows}"):
        Master2Token(8)(x, pattern)


def test_weights_of_another_width_are_refused(backend):
    """The loop would read beyond their end."""
    with pytest.raises((InputError, RuntimeError), match=r"w must have 4 numbers, one per column of x, got 3|size"):
        kernels.project(torch.ones(2, 4), torch.ones(3), backend=backend)
