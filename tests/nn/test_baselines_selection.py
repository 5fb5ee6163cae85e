"""TopK and SAGPool: which nodes are kept, with which features and edges; and never the lowest scores."""

import math

import pytest
import torch

from asapool.errors import ConfigError, InputError
from asapool.nn import SAGPooling, TopKPooling
from asapool.nn.inputs import pack_batch
from tests.graphs import PATH3, PATH4, random_batch


def topk(p, ratio=0.5, backend="auto"):
    pool = TopKPooling(len(p), ratio, backend=backend).double()
    pool.p.data = torch.tensor(p, dtype=torch.float64)
    return pool


def sagpool(w, ratio=0.5, backend="auto"):
    pool = SAGPooling(len(w), ratio, backend=backend).double()
    pool.gnn.lin.weight.data = torch.tensor([w], dtype=torch.float64)
    return pool


def edges_of(pooled):
    return sorted(map(tuple, pooled.edge_index.t().tolist()))


def test_topk_keeps_the_nodes_furthest_along_p(backend):
    x = torch.tensor([[3.0, 0.0], [0.0, 4.0], [1.0, 0.0], [0.0, -5.0]], dtype=torch.float64)
    out = topk([0.0, 2.0], 0.75, backend)(x, PATH4)
    assert out.perm.tolist() == [1, 0, 2]  # s = 0, 4, 0, −5: the tie of 0 and 2 goes by number, and both stay
    assert torch.equal(out.x, torch.tensor([[0.0, 4 * math.tanh(4)], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64))
    assert edges_of(out) == [(0, 1), (0, 2), (1, 0), (2, 0)]  # 1–0 and 1–2; 2–3 went with node 3
    assert out.batch.tolist() == [0, 0, 0]


def test_topk_breaks_a_tie_by_node_number_and_counts_exactly(backend):
    out = topk([1.0], 0.5, backend)(torch.tensor([[2.0], [7.0], [2.0]], dtype=torch.float64), PATH3)
    assert out.perm.tolist() == [1, 0]  # ⌈1.5⌉ = 2 of 3
    assert len(topk([1.0], 0.55, backend)(torch.randn(100, 1).double(), PATH3).perm) == 55  # in floating point 56


def test_only_the_direction_of_p_counts(backend):
    x, edges, weight, batch = random_batch(3, F=2)
    one, thousand = (topk([k * 0.6, k * -0.8], backend=backend)(x, edges, weight, batch) for k in (1.0, 1000.0))
    assert torch.equal(one.perm, thousand.perm)
    torch.testing.assert_close(one.x, thousand.x)


def test_scores_too_large_for_tanh_are_still_distinguished(backend):
    x = torch.tensor([[50.0], [60.0], [100.0]], dtype=torch.float64)  # tanh is 1 for all three
    assert topk([1.0], 1, backend)(x, PATH3).perm.tolist() == [2]


def test_sagpool_scores_with_the_neighbours(backend):
    x = torch.tensor([[1.0], [0.0], [5.0]], dtype=torch.float64)
    # Â = A + I, d = 2, 3, 2: s_0 = 1/2, s_1 = (1 + 5)/√6 = 2.449, s_2 = 5/2
    out = sagpool([1.0], 2, backend)(x, PATH3)
    assert out.perm.tolist() == [2, 1]
    torch.testing.assert_close(out.x, torch.tensor([[5 * math.tanh(2.5)], [0.0]], dtype=torch.float64))
    assert edges_of(out) == [(0, 1), (1, 0)]
    assert sagpool([-1.0], 1, backend)(x, PATH3).perm.tolist() == [0]


def test_sagpool_can_keep_a_node_for_its_neighbours_alone(backend):
    x = torch.tensor([[1.0], [0.0], [1.0]], dtype=torch.float64)  # s = 0.5, 2/√6 = 0.816, 0.5
    assert sagpool([1.0], 1, backend)(x, PATH3).perm.tolist() == [1]
    assert topk([1.0], 1, backend)(x, PATH3).perm.tolist() == [0]


@pytest.mark.parametrize("make", [TopKPooling, SAGPooling])
def test_the_highest_scores_stay_for_every_seed(make):
    x, edges, weight, batch = random_batch(11, graphs=6, most=12)
    for seed in range(60):
        torch.manual_seed(seed)
        pool = make(5, 0.5).double()
        out = pool(x, edges, weight, batch)
        s = pool.scores(x, pack_batch(x, edges, weight, batch, 5, "auto").graph).detach()
        kept = torch.zeros(len(x), dtype=torch.bool)
        kept[out.perm] = True
        for b in range(6):
            here = batch == b
            if (here & ~kept).any():
                assert s[here & kept].min() >= s[here & ~kept].max()


def test_kept_edges_keep_their_weights(backend):
    x, weight = torch.tensor([[3.0], [2.0], [1.0]], dtype=torch.float64), torch.tensor([0.25, 4.0, 0.25, 4.0]).double()
    out = topk([1.0], 2, backend)(x, PATH3, weight)
    assert edges_of(out) == [(0, 1), (1, 0)]
    assert out.edge_weight.tolist() == [0.25, 0.25]


def test_unsorted_batches_keep_their_node_numbers(backend):
    x = torch.tensor([[1.0], [5.0], [2.0], [4.0]], dtype=torch.float64)
    edges, batch = torch.tensor([[0, 2, 1, 3], [2, 0, 3, 1]]), torch.tensor([1, 0, 1, 0])
    assert topk([1.0], 1, backend)(x, edges, None, batch).perm.tolist() == [1, 2]


@pytest.mark.parametrize("seed", range(8))
def test_topk_equals_torch_geometric(seed, backend):
    from torch_geometric.nn import TopKPooling as Theirs

    x, edges, weight, batch = random_batch(seed, F=3)
    theirs = Theirs(3, ratio=0.5).double()
    ours = TopKPooling(3, 0.5, backend=backend).double()
    ours.load_state_dict(theirs.state_dict())
    x_t, edges_t, weight_t, batch_t, perm_t, _ = theirs(x, edges, weight, batch)
    out = ours(x, edges, weight, batch)
    assert torch.equal(out.perm, perm_t)
    assert torch.equal(out.batch, batch_t)
    torch.testing.assert_close(out.x, x_t)
    same_edges(out, edges_t, weight_t)


def test_sagpool_equals_torch_geometric_wherever_its_random_sign_is_positive():
    from torch_geometric.nn import GCNConv
    from torch_geometric.nn import SAGPooling as Theirs

    compared = 0
    for seed in range(100):
        torch.manual_seed(seed)
        x, edges, _, batch = random_batch(seed, F=3, weighted=False)
        theirs = Theirs(3, ratio=0.5, GNN=GCNConv).double()
        ours = SAGPooling(3, 0.5).double()
        ours.load_state_dict(theirs.state_dict())
        s = theirs.gnn(x, edges).detach().view(-1)
        tied = ((s[:, None] - s).abs() < 1e-9) & (batch[:, None] == batch)  # all nodes of a complete graph, for one
        if theirs.select.weight.item() < 0 or tied.sum() > len(s):
            continue
        x_t, edges_t, _, _, perm_t, _ = theirs(x, edges, None, batch)
        out = ours(x, edges, None, batch)
        assert torch.equal(out.perm, perm_t)
        torch.testing.assert_close(out.x, x_t)
        same_edges(out, edges_t, torch.ones(edges_t.size(1)).double())
        compared += 1
    assert compared >= 5


def same_edges(out, edge_index, edge_weight):
    K = len(out.perm)
    A, B = torch.zeros(K, K).double(), torch.zeros(K, K).double()
    A[out.edge_index[0], out.edge_index[1]] = out.edge_weight
    B[edge_index[0], edge_index[1]] = edge_weight
    torch.testing.assert_close(A, B)


@pytest.mark.parametrize("make", [TopKPooling, SAGPooling])
def test_every_weight_learns(make):
    x, edges, weight, batch = random_batch(2)
    torch.manual_seed(0)
    pool = make(5, 0.5).double()
    out = pool(x, edges, weight, batch)
    out.x.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in pool.parameters())


def test_wrong_settings_and_inputs_get_a_sentence():
    with pytest.raises(ConfigError, match="in_channels must be a whole number"):
        TopKPooling(0)
    with pytest.raises(ConfigError, match="ratio"):
        SAGPooling(3, ratio=1.5)
    with pytest.raises(InputError, match=r"shape \(nodes, 3\)"):
        TopKPooling(3)(torch.ones(3, 2), PATH3)
