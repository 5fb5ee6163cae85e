"""Proposition 1 on the operators of the theory and on the layer in all its semantics."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asapool.nn import ASAPooling
from asapool.theory.equivariance import printed_block, relabel, relabelling_error, tied_spectra
from asapool.theory.extremum import circulant
from asapool.theory.graphs import path_graph
from asapool.theory.report import random_graph
from tests.graphs import random_batch, with_random_parameters

SEMANTICS = ("paper", "authors", "pyg")


def dense(out):
    K = out.x.size(0)
    return out.edge_weight.new_zeros(K, K).index_put((out.edge_index[1], out.edge_index[0]), out.edge_weight)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6), semantics=st.sampled_from(SEMANTICS), hops=st.sampled_from([1, 2]),
    ratio=st.sampled_from([0.3, 0.5, 0.8, 1.0]), weighted=st.booleans(),
)  # fmt: skip
def test_the_layer_is_equivariant_in_all_semantics(seed, semantics, hops, ratio, weighted):
    x, edge_index, weight, batch = random_batch(seed, graphs=1, most=9, F=3, weighted=weighted)
    pool = with_random_parameters(ASAPooling(3, ratio=ratio, hops=hops, semantics=semantics).double(), seed)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    name = torch.argsort(order)
    before = pool(x, edge_index, weight, batch)
    after = pool(x[order], name[edge_index], weight, batch)
    # kept clusters come best first; tied ones (twins: same neighbours, same cluster) are alike in every number
    torch.testing.assert_close(after.x, before.x, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(dense(after), dense(before), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("attention", ["paper", "authors"])
@pytest.mark.parametrize("h", [1, 2])
def test_the_operator_is_equivariant(attention, h):
    for seed in range(20):
        graph = random_graph(7, 0.4, torch.Generator().manual_seed(seed))
        assert relabelling_error(graph, 4, seed, h, attention) < 1e-12


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_ties_break_it_in_all_semantics(semantics):
    """A ring of six equal nodes: three neighbours are kept, or three nodes two hops apart, depending on the labels."""
    ring = circulant(6, 2)
    pool = with_random_parameters(ASAPooling(2, ratio=0.5, semantics=semantics).double())

    def spectrum(graph):
        pairs = torch.tensor([(j, i) for i, around in enumerate(graph) for j in around]).t()
        return torch.linalg.eigvalsh(dense(pool(torch.ones(6, 2, dtype=torch.float64), pairs)).detach())

    renamed = relabel(ring, torch.tensor([0, 2, 4, 1, 3, 5]))
    assert float((spectrum(ring) - spectrum(renamed)).abs().max()) > 0.1


def test_ties_break_the_operator_too():
    for attention in ("paper", "authors"):
        before, after = tied_spectra(attention)
        assert max(abs(a - b) for a, b in zip(before, after, strict=True)) > 0.1


def test_relabelling_by_hand():
    assert relabel(path_graph(3), torch.tensor([2, 0, 1])) == [[2], [2], [0, 1]]  # old 1, the middle, is now 2


def test_the_block_in_the_proof_is_not_a_permutation_matrix():
    P = torch.eye(4)[[1, 2, 3, 0]]
    assert printed_block(P, torch.tensor([0, 2])).abs().sum() == 0
