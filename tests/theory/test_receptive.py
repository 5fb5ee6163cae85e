"""Receptive fields: our probes, and the same probes on the layer and on torch_geometric's own operators."""

import pytest
import torch
from torch_geometric.nn import SAGPooling, TopKPooling, dense_diff_pool

from asapool.errors import ConfigError
from asapool.nn import ASAPooling
from asapool.theory import receptive_field
from asapool.theory.graphs import path_graph
from asapool.theory.operators import undirected_edges
from asapool.theory.receptive import influence, probe

PATH = path_graph(13)
ONE_WAY = undirected_edges(PATH)
EDGES = torch.cat([ONE_WAY, ONE_WAY.flip(0)], dim=1)
ALL = torch.arange(13)


def keeping_all(layer):
    """A layer that keeps all 13 nodes as an operator whose row i is node i."""

    def operate(x, w):
        out = layer(x, EDGES, torch.cat([w, w]))
        if isinstance(layer, ASAPooling):
            X, edge_index, weight, perm = out.x, out.edge_index, out.edge_weight, out.perm
        else:
            X, edge_index, weight, _, perm, _ = out
        back = torch.argsort(perm)
        A = weight.new_zeros(13, 13).index_put((perm[edge_index[1]], perm[edge_index[0]]), weight)
        return X[back], A

    return operate


@pytest.mark.parametrize("h", [1, 2, 3])
def test_asap_spans_2h_plus_1_and_covers_h_with_its_assignment_alone(h):
    field = receptive_field("asap", h, frozen=True)
    assert (field.node, field.span, field.edge) == (h, 2 * h + 1, h + 1)


@pytest.mark.parametrize("attention", ["paper", "authors"])
@pytest.mark.parametrize("h", [1, 2])
def test_asap_sees_two_hops_more_through_gcn_and_leconv(h, attention):
    field = receptive_field("asap", h, attention)
    assert (field.node, field.span, field.edge) == (h + 2, 2 * h + 1, h + 2)


def test_topk_sagpool_diffpool():
    assert [getattr(receptive_field("topk"), name) for name in ("node", "span", "edge")] == [0, 1, 1]
    assert [getattr(receptive_field("sagpool"), name) for name in ("node", "span", "edge")] == [1, 1, 1]
    field = receptive_field("diffpool")
    assert field.whole
    assert field.span is None


@pytest.mark.parametrize(
    ("semantics", "node", "edge"),
    [
        ("paper", 3, 3),
        ("authors", 3, 2),  # no gradient through S, and none of the weights reaches the fitness
        ("pyg", 2, 2),  # no inner GCN, so one hop less
    ],
)
def test_the_layer_has_the_field_of_its_formulas(semantics, node, edge):
    torch.manual_seed(0)
    layer = ASAPooling(2, ratio=1.0, semantics=semantics).double()
    field = probe(keeping_all(layer), PATH, ALL, 2)
    assert (field.node, field.span, field.edge) == (node, 3, edge)


def test_torch_geometrics_topk_and_sagpool():
    torch.manual_seed(0)
    topk = probe(keeping_all(TopKPooling(2, ratio=13).double()), PATH, ALL, 2)
    sag = probe(keeping_all(SAGPooling(2, ratio=13).double()), PATH, ALL, 2)
    assert (topk.node, topk.span, topk.edge) == (0, 1, 1)
    assert (sag.node, sag.span, sag.edge) == (1, 1, 1)


def test_torch_geometrics_diffpool_sees_the_whole_graph():
    W = torch.randn(2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def operate(x, w):
        A = w.new_zeros(13, 13).index_put((EDGES[0], EDGES[1]), torch.cat([w, w]))
        X, P, _, _ = dense_diff_pool(x[None], A[None], (A @ x @ W)[None])
        return X[0], P[0]

    assert probe(operate, PATH, None, 2).whole


def test_influence_by_hand():
    """X^p_0 = x_0 + x_1, A^p_00 = w_0²: two nodes and one edge matter."""

    def operate(x, w):
        return (x[0] + x[1])[None], (w[0] ** 2).view(1, 1)

    result = influence(operate, torch.ones(3, 1), torch.ones(2))
    assert result.node.tolist() == [[True, True, False]]
    assert result.edge.tolist() == [[[True, False]]]


def test_unknown_methods_are_named():
    with pytest.raises(ConfigError, match="method must be one of 'topk', 'sagpool', 'asap', 'diffpool', got 'mean'"):
        receptive_field("mean")
