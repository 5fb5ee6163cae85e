"""Weights and edges in the forms of other libraries: old checkpoints, sparse adjacencies; and how layers print."""

import json
from pathlib import Path

import pytest
import torch
from torch_geometric.nn import LEConv as PyGLEConv

from asapool.errors import ConfigError, InputError
from asapool.nn import GCN, ASAPooling, LEConv
from tests.graphs import random_batch, with_random_parameters

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "authors.json").read_text())


def test_a_checkpoint_of_the_authors_program_loads():
    """torch_geometric 1.4.3, which they used, kept GCNConv's weight as (in, out) and without `lin`."""
    for case in GOLDEN.values():
        state = {name: torch.tensor(value, dtype=torch.float64) for name, value in case["parameters"].items()}
        state["gnn_intra_cluster.weight"] = state.pop("gnn_intra_cluster.lin.weight").t().contiguous()
        layer = ASAPooling(5, ratio=case["ratio"], semantics="authors").double()
        layer.load_state_dict(state)
        weight = None if case["edge_weight"] is None else torch.tensor(case["edge_weight"], dtype=torch.float64)
        x = torch.tensor(case["x"], dtype=torch.float64)
        out = layer(x, torch.tensor(case["edge_index"]), weight, torch.tensor(case["batch"]))
        expected = torch.tensor(case["pooled_x"], dtype=torch.float64)
        torch.testing.assert_close(out.x, expected, rtol=0, atol=1e-9)


def test_an_old_gcn_weight_is_transposed():
    layer = GCN(2, 3, bias=False)
    layer.load_state_dict({"weight": torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])})
    assert layer.lin.weight.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]


def forms(edge_index, edge_weight, N):
    """adj.t() in the layouts of torch, and of torch_sparse if it is installed."""
    adj_t = torch.sparse_coo_tensor(edge_index.flip(0), edge_weight, (N, N)).coalesce()
    yield adj_t
    yield adj_t.to_sparse_csr()
    yield torch.sparse_coo_tensor(edge_index, edge_weight, (N, N)).t().coalesce()


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_transposed_sparse_adjacency_is_taken_as_torch_geometric_takes_it():
    x, edge_index, edge_weight, batch = random_batch(3, weighted=True, directed=True, dtype=torch.float32)
    theirs = with_random_parameters(PyGLEConv(5, 3))
    ours, pool = LEConv(5, 3), ASAPooling(5)
    ours.load_state_dict(theirs.state_dict())
    expected = pool(x, edge_index, edge_weight, batch)
    for adj_t in forms(edge_index, edge_weight, len(x)):
        torch.testing.assert_close(ours(x, adj_t), theirs(x, adj_t), rtol=1e-5, atol=1e-5)
        got = pool(x, adj_t, None, batch)
        assert torch.equal(got.perm, expected.perm)
        torch.testing.assert_close(got.edge_weight, expected.edge_weight)


def test_a_sparse_adjacency_passes_gradients_to_its_weights():
    value = torch.ones(2, requires_grad=True)
    adj_t = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), value, (2, 2))
    LEConv(1, 1)(torch.tensor([[1.0], [2.0]]), adj_t).sum().backward()
    assert value.grad is not None


def test_a_sparse_adjacency_of_another_size_or_with_weights_beside_it_is_refused():
    eye = torch.eye(3).to_sparse()
    with pytest.raises(InputError, match=r"must have the shape \(2, 2\), one row per node, got \(3, 3\)"):
        LEConv(1, 1)(torch.ones(2, 1), eye)
    with pytest.raises(InputError, match="leave edge_weight out"):
        LEConv(1, 1)(torch.ones(3, 1), eye, torch.ones(3))


def test_bipartite_sizes_are_refused_in_one_sentence():
    with pytest.raises(ConfigError, match=r"got \(16, 8\): bipartite graphs are not supported"):
        LEConv((16, 8), 4)


def test_layers_print_as_torch_geometric_s_do():
    assert str(LEConv(16, 4)) == "LEConv(16, 4)"
    assert str(ASAPooling(16)) == "ASAPooling(16, ratio=0.5)"
    assert str(ASAPooling(16, 0.3, hops=2, semantics="pyg")) == "ASAPooling(16, ratio=0.3, hops=2, semantics='pyg')"


def test_an_edge_of_weight_0_is_a_member_of_the_cluster():
    path = torch.tensor([[0, 1], [1, 0]])
    S = ASAPooling(1, 1.0).explain(torch.tensor([[1.0], [2.0]]), path, torch.zeros(2)).S.to_dense()
    assert bool((S > 0).all())
