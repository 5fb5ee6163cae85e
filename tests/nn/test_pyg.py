"""Against torch_geometric: the same numbers from the same weights, wherever torch_geometric is right."""

import copy

import pytest
import torch
from torch_geometric.nn import ASAPooling as PyGPooling
from torch_geometric.nn import GCNConv, GraphConv
from torch_geometric.nn import LEConv as PyGLEConv
from torch_geometric.nn import SAGPooling as PyGSAG
from torch_geometric.nn import TopKPooling as PyGTopK

from asapool.errors import ConfigError
from asapool.nn import GCN, ASAPooling, LEConv, SAGPooling, TopKPooling, pyg_state_dict
from tests.graphs import random_batch, with_random_parameters

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # torch_geometric uses torch's sparse tensors


def pair(GNN=None, seed=0, dtype=torch.float64, **options):
    """torch_geometric's layer with a positive selection weight, and ours with its state dict."""
    theirs = with_random_parameters(PyGPooling(5, GNN=GNN, **options).to(dtype), seed)
    theirs.select.weight.data.abs_()
    ours = ASAPooling(5, GNN=GNN, semantics="pyg", **options).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


@pytest.mark.parametrize("GNN", [None, GCNConv, GraphConv])
@pytest.mark.parametrize(
    "options", [{}, {"ratio": 0.3}, {"add_self_loops": True}, {"negative_slope": 0.5}, {"ratio": 2}], ids=str
)
@pytest.mark.parametrize("weighted", [True, False])
def test_the_same_numbers(GNN, options, weighted):
    compared = 0
    # torch_geometric fails on unweighted float64, and float32 itself is not good to 1e-6 for sums of many edges
    dtype, near = (torch.float64, 1e-6) if weighted else (torch.float32, 1e-5)
    for seed in range(12):
        ours, theirs = pair(GNN, seed, dtype, **options)
        x, edge_index, edge_weight, batch = random_batch(seed, weighted=weighted, directed=True, dtype=dtype)
        step, expected = ours.explain(x, edge_index, edge_weight, batch), theirs(x, edge_index, edge_weight, batch)
        got = step.pooled()
        if got.perm.tolist() != expected[4].tolist():  # equal nodes: torch_geometric breaks ties arbitrarily
            torch.testing.assert_close(step.fitness[got.perm], step.fitness[expected[4]], rtol=0, atol=near)
            continue
        compared += 1
        assert got.batch.tolist() == expected[3].tolist()
        torch.testing.assert_close(got.x, expected[0], rtol=0, atol=near)
        K = len(got.perm)
        A, B = torch.zeros(K, K, dtype=dtype), torch.zeros(K, K, dtype=dtype)
        A[tuple(got.edge_index)] = got.edge_weight
        B[tuple(expected[1])] = 1 if expected[2] is None else expected[2]
        torch.testing.assert_close(A if expected[2] is not None else (A != 0).to(dtype), B, rtol=0, atol=near)
    assert compared >= 4


def test_the_same_gradients_of_the_features():
    ours, theirs = pair(GCNConv, dtype=torch.float32)
    x, edge_index, _, batch = random_batch(2, weighted=False, dtype=torch.float32)
    grads = []
    for layer in (ours, theirs):
        z = x.clone().requires_grad_()
        layer(z, edge_index, None, batch)[0].square().sum().backward()
        grads.append(z.grad)
    torch.testing.assert_close(*grads)


def test_code_written_for_torch_geometric_runs_unchanged():
    def user_code(layer):
        x, _edge_index, _edge_weight, _batch, perm = layer(
            torch.randn(6, 5), torch.tensor([[0, 1, 3], [1, 2, 4]]), None, None
        )
        return x.shape, perm.shape

    assert user_code(ASAPooling(5, 0.5, GCNConv, 0.1, 0.2, True)) == user_code(
        PyGPooling(5, 0.5, GCNConv, 0.1, 0.2, True)
    )


def test_gcnconv_is_replaced_by_the_faster_gcn_and_options_go_to_the_gnn():
    assert isinstance(ASAPooling(5, GNN=GCNConv).inner, GCN)
    assert ASAPooling(5, GNN=GraphConv, aggr="mean").inner.aggr == "mean"
    assert isinstance(ASAPooling(5, GNN=GCNConv, improved=True).inner, GCNConv)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_leconv(weighted, bias, backend):
    theirs = with_random_parameters(PyGLEConv(5, 3, bias=bias).double())
    ours = LEConv(5, 3, bias=bias, backend=backend).double()
    state = copy.deepcopy(theirs.state_dict())
    ours.load_state_dict(state)
    assert state.keys() == theirs.state_dict().keys()  # loading leaves the caller's dict alone
    x, edge_index, edge_weight, _ = random_batch(3, weighted=weighted, directed=True, loops=True)
    torch.testing.assert_close(ours(x, edge_index, edge_weight), theirs(x, edge_index, edge_weight))


def test_gcn(backend):
    theirs = with_random_parameters(GCNConv(5, 3).double())
    ours = GCN(5, 3, loops="fill", backend=backend).double()
    ours.load_state_dict(theirs.state_dict())
    x, edge_index, edge_weight, _ = random_batch(3, directed=True, loops=True)
    torch.testing.assert_close(ours(x, edge_index, edge_weight), theirs(x, edge_index, edge_weight))


@pytest.mark.parametrize("GNN", [None, GCNConv, GraphConv])
def test_weights_can_be_loaded_by_torch_geometric(GNN):
    ours = with_random_parameters(ASAPooling(5, GNN=GNN, semantics="pyg").double(), 3)
    theirs = PyGPooling(5, GNN=GNN).double()
    theirs.load_state_dict(pyg_state_dict(ours))  # strict: every name and shape
    x, edge_index, edge_weight, batch = random_batch(3, weighted=True, dtype=torch.float64)
    torch.testing.assert_close(ours(x, edge_index, edge_weight, batch)[0], theirs(x, edge_index, edge_weight, batch)[0])


class Network(torch.nn.Module):
    """A model that can be built with the layers of either library."""

    def __init__(self, asap, topk, sag, le, **pyg):
        super().__init__()
        self.first = GCNConv(5, 5)
        self.pools = torch.nn.ModuleList([asap(5, GNN=GCNConv), topk(5), sag(5, **pyg)])
        self.conv, self.norm, self.lin = le(5, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 2)
        self.again = self.pools[0]  # shared weights are in the state dict twice


def test_weights_of_a_whole_model_go_both_ways():
    theirs = with_random_parameters(Network(PyGPooling, PyGTopK, PyGSAG, PyGLEConv, GNN=GCNConv), 1)
    ours = Network(ASAPooling, TopKPooling, SAGPooling, LEConv)
    ours.load_state_dict(theirs.state_dict())
    back = pyg_state_dict(ours)
    expected = theirs.state_dict()
    assert back.keys() == expected.keys()
    for name, value in back.items():
        if name.endswith("select.weight") and "pools.1." not in name:  # a random sign, and always 1 here
            expected[name] = torch.ones_like(expected[name])
        torch.testing.assert_close(value, expected[name])
    assert pyg_state_dict(theirs).keys() == expected.keys()  # layers of torch_geometric keep their names


def test_weights_of_leconv_go_back_and_other_forms_are_refused():
    ours, theirs = with_random_parameters(LEConv(5, 2), 1), PyGLEConv(5, 2)
    theirs.load_state_dict(pyg_state_dict(ours))
    x, edge_index, edge_weight, _ = random_batch(1, weighted=True, dtype=torch.float32)
    torch.testing.assert_close(ours(x, edge_index, edge_weight), theirs(x, edge_index, edge_weight))
    with pytest.raises(ConfigError, match="has a torch_geometric form"):
        pyg_state_dict(ASAPooling(5, attention="dynamic"))


def test_a_state_dict_survives_the_round_trip():
    one, two = (with_random_parameters(ASAPooling(5), seed) for seed in (1, 2))
    two.load_state_dict(one.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


class Named(GCNConv):
    """GCNConv as a subclass, so that it is called as a module."""


@pytest.mark.parametrize("semantics", ["paper", "authors", "pyg"])
def test_gcnconv_gives_the_same_numbers_under_its_own_name_and_another(semantics):
    """Pooled graphs have a diagonal, on which the definitions of Â differ."""
    x, edge_index, edge_weight, batch = random_batch(4, loops=True)
    pools = [with_random_parameters(ASAPooling(5, GNN=g, semantics=semantics).double()) for g in (GCNConv, Named)]
    pools[1].load_state_dict(pools[0].state_dict())
    ours, theirs = [pool.explain(x, edge_index, edge_weight, batch) for pool in pools]
    torch.testing.assert_close(ours.assignment.alpha, theirs.assignment.alpha)
    torch.testing.assert_close(ours.x, theirs.x)


def test_the_attributes_of_torch_geometric_s_layer():
    pool = ASAPooling(5, GNN=GCNConv, dropout=0.9, negative_slope=0.3)
    assert (pool.GNN, pool.dropout, pool.negative_slope, pool.in_channels) == (GCNConv, 0.9, 0.3, 5)
    pool.dropout = 0.0
    pool.negative_slope = 0.1
    assert (pool.explain(*random_batch(8, dtype=torch.float32)).assignment.alpha > 0).all()
    assert pool.attention.negative_slope == 0.1


def test_weights_of_a_layer_without_a_convolution_inside_say_which_option_is_needed():
    weights = PyGPooling(4, 0.5).state_dict()
    with pytest.raises(RuntimeError, match=r'without GNN=, which has no convolution inside; .*semantics="pyg"'):
        ASAPooling(4, 0.5).load_state_dict(dict(weights))
    ASAPooling(4, 0.5, semantics="pyg").load_state_dict(dict(weights))
