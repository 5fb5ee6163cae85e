"""assign="members" and attention="dynamic" on graphs small enough to draw; the oracle tests try both at random."""

import math

import pytest
import torch

from asapool import kernels
from asapool.errors import ConfigError
from asapool.nn import ASAPooling, DynamicAttention
from tests.graphs import PATH3, random_batch, undirected, with_random_parameters

DATA = {"seed": 11, "graphs": 2, "most": 6, "F": 2, "directed": True, "loops": True}


def test_members_of_a_path_by_hand(backend):
    """A path 0 … 5 and a node 6 alone; the clusters of 0, 1 and 5 are kept, with fitness 1, ½ and ¾.

    Nodes 0 and 1 are held by two kept clusters and are divided by φ α; 3 is two hops from 1 and from 5, and joins the
    fitter; no edge leads from 6 to a kept centre, so it joins the fittest, 0.
    """
    path = undirected((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
    pattern, _ = kernels.pack(path, torch.tensor([0, 7]), 7, backend=backend)
    fitness = torch.tensor([1, 0.5, 0, 0, 0, 0.75, 0])
    perm, ptr = torch.tensor([0, 1, 5]), torch.tensor([0, 3])
    alpha = torch.ones(pattern.col.numel())
    alpha[:5] = torch.tensor([1 / 4, 3 / 4, 1 / 2, 1 / 4, 1 / 4])  # cluster 0 of {0, 1}, cluster 1 of {0, 1, 2}
    members, source = kernels.join(pattern, pattern, fitness, perm, ptr, backend=backend)
    M = torch.zeros(7, 7)
    M[members.row, members.col] = kernels.share(members, source, alpha, fitness, backend=backend)
    expected = torch.zeros(7, 7)
    expected[0, [0, 1, 6]] = torch.tensor([1 / 2, 6 / 7, 1])  # node 1: 1·¾ beside ½·¼
    expected[1, [0, 1, 2]] = torch.tensor([1 / 2, 1 / 7, 1])
    expected[5, [3, 4, 5]] = 1
    torch.testing.assert_close(M, expected)


def test_shares_are_equal_if_all_memberships_vanish(backend):
    pattern, _ = kernels.pack(torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 2]), 2, backend=backend)
    fitness, perm, ptr = torch.ones(2), torch.tensor([0, 1]), torch.tensor([0, 2])
    members, source = kernels.join(pattern, pattern, fitness, perm, ptr, backend=backend)
    alpha = torch.tensor([0.0, 3, 0, 1], requires_grad=True)  # node 0 is dropped everywhere
    M = kernels.share(members, source, alpha, fitness, backend=backend)
    assert M.tolist() == [0.5, 0.75, 0.5, 0.25]
    M[0].backward()
    assert alpha.grad.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("options", [{}, {"attention": "dynamic", "dropout": 0.5}, {"semantics": "pyg", "hops": 2}])
def test_sums_are_kept(options, backend):
    """Σ_p X^p_p = Σ_j x_j in every graph, and memberships sum to 1 for every node."""
    x, edges, weight, batch = random_batch(8, graphs=6)
    pool = ASAPooling(5, 0.3, assign="members", backend=backend, **options).double()
    step = pool.explain(x, edges, weight, batch)
    torch.testing.assert_close(step.S.to_dense().sum(1), torch.ones(len(x)).double())
    before = kernels.readout(x, step.before.pattern.ptr, ("sum",), backend=backend)
    torch.testing.assert_close(kernels.readout(step.x, step.ptr, ("sum",), backend=backend), before)
    torch.testing.assert_close(step.lift(step.x), step.S.to_dense() @ step.x)


@pytest.mark.parametrize("options", [{"assign": "members"}, {"attention": "dynamic"}, {"master": "mean"}])
def test_gradients(options, backend):
    x, edges, weight, batch = random_batch(**DATA)
    options = {"attention": "dynamic", "assign": "members"} | options
    pool = with_random_parameters(ASAPooling(2, backend=backend, **options).double())

    def run(*_):
        out = pool(x, edges, weight, batch)
        return out.x, out.edge_weight

    inputs = [x.requires_grad_(), weight.requires_grad_(), *pool.parameters()]
    assert torch.autograd.gradcheck(run, inputs, atol=1e-6)


def test_members_need_clusters_as_features():
    with pytest.raises(ConfigError, match='aggregate must not be "none"'):
        ASAPooling(2, assign="members", aggregate="none")


def test_dynamic_scores_by_hand(backend):
    """w = 1, slope ½: in cluster {0, 1} with query −1 tokens 0 and 3 score ½·(−1) and 2; with query 1, 1 and 4."""
    pattern, _ = kernels.pack(torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 2]), 2, backend=backend)
    query, token = torch.tensor([[-1.0], [1]]), torch.tensor([[0.0], [3]])
    alpha = kernels.attend_dynamic(pattern, query, token, torch.ones(1), 0.5, backend=backend)
    first, second = 1 / (1 + math.exp(2.5)), 1 / (1 + math.exp(3))
    torch.testing.assert_close(alpha, torch.tensor([first, 1 - first, second, 1 - second]))


def test_the_query_matters(backend):
    """On a path 0–1–2 the middle cluster and the whole of W matter, unlike with Master2Token and σ inside."""
    layer = with_random_parameters(DynamicAttention(2, backend=backend).double())
    x = torch.tensor([[1.0, -1], [-2, 3], [0.5, 0.5]]).double()
    before = layer(x, PATH3).alpha
    with torch.no_grad():
        layer.W.bias += 1
    assert not torch.allclose(before, layer(x, PATH3).alpha)
    layer.reset_parameters()
    assert layer.W.bias.tolist() == [0, 0]
    assert sorted(name for name, _ in layer.named_parameters()) == ["U.weight", "W.bias", "W.weight", "w"]
