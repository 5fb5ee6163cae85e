"""DiffPool: the pooled features and edges, and the two losses."""

import math

import pytest
import torch

from asapool.errors import ConfigError
from asapool.nn import DiffPooling
from asapool.nn.inputs import pack_batch
from tests.graphs import PATH3, random_batch


def packed(x, edges, weight=None, batch=None):
    return pack_batch(x, edges, weight, batch, x.size(1), "auto").graph


def quarter_pool(**options):
    """Every node goes to cluster 0 by a quarter and to cluster 1 by three quarters."""
    pool = DiffPooling(1, 2, **options).double()
    pool.gnn.lin.weight.data.zero_()
    pool.gnn.bias.data = torch.tensor([0.0, math.log(3)]).double()
    return pool


def test_nodes_are_assigned_by_their_shares(backend):
    z = torch.tensor([[1.0], [2.0], [6.0]]).double()
    step = quarter_pool(backend=backend).step(z, packed(z, PATH3))
    torch.testing.assert_close(step.x, torch.tensor([[9 / 4], [27 / 4]]).double())
    # A' = SᵀAS: each of the 4 entries of A adds 1/16, 3/16, 3/16, 9/16
    torch.testing.assert_close(step.after.weight.view(2, 2), torch.tensor([[0.25, 0.75], [0.75, 2.25]]).double())
    assert step.ptr.tolist() == [0, 2]


def test_edges_in_torch_geometric_s_form_give_the_same_by_hand(backend):
    z = torch.tensor([[1.0], [2.0], [6.0]]).double()
    pooled = quarter_pool(backend=backend)(z, PATH3)
    torch.testing.assert_close(pooled.x, torch.tensor([[9 / 4], [27 / 4]]).double())
    assert pooled.edge_index.t().tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]
    torch.testing.assert_close(pooled.edge_weight, torch.tensor([0.25, 0.75, 0.75, 2.25]).double())
    assert pooled.batch.tolist() == [0, 0]
    torch.testing.assert_close(pooled.S, torch.tensor([[0.25, 0.75]] * 3).double())


def test_a_shuffled_batch_of_edges_has_the_user_s_node_numbers():
    x, edges, weight, batch = random_batch(3)
    pool = DiffPooling(5, 2).double()
    step = pool.step(x, packed(x, edges, weight, batch))
    shuffle = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    place = torch.empty_like(shuffle)
    place[shuffle] = torch.arange(len(x))
    pooled = pool(x[shuffle], place[edges], weight, batch[shuffle])
    torch.testing.assert_close(pooled.x, step.x)
    torch.testing.assert_close(pooled.S, step.S[shuffle])
    torch.testing.assert_close(pooled.penalty, step.penalty)
    assert pooled.batch.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    (pooled.x.sum() + pooled.edge_weight.square().sum() + pooled.penalty).backward()
    assert all(p.grad.isfinite().all() for p in pool.parameters())


def test_the_assignment_is_computed_from_x_and_pools_z():
    x, z = torch.zeros(3, 1).double(), torch.tensor([[4.0, 8.0]] * 3).double()
    step = quarter_pool().step(x, packed(x, PATH3), z=z)
    torch.testing.assert_close(step.x, torch.tensor([[3.0, 6.0], [9.0, 18.0]]).double())


def test_both_losses_by_hand(backend):
    x = torch.ones(3, 1).double()
    # SSᵀ is 1/16 + 9/16 = 0.625 everywhere; A is 1 in 4 and 0 in 5 of 9 places
    link = quarter_pool(entropy_weight=0.0, backend=backend).step(x, packed(x, PATH3)).penalty
    assert link.item() == pytest.approx(math.sqrt(4 * 0.375**2 + 5 * 0.625**2) / 9)
    entropy = quarter_pool(link_weight=0.0, backend=backend).step(x, packed(x, PATH3)).penalty
    assert entropy.item() == pytest.approx(-0.25 * math.log(0.25) - 0.75 * math.log(0.75))


@pytest.mark.parametrize("seed", range(6))
def test_one_graph_equals_torch_geometric(seed, backend):
    from torch_geometric.nn import dense_diff_pool

    x, edges, weight, _ = random_batch(seed, graphs=1, directed=seed % 2 == 0, loops=seed % 3 == 0)
    graph = packed(x, edges, weight)
    torch.manual_seed(seed)
    pools = [DiffPooling(5, 3, link_weight=1 - e, entropy_weight=e, backend=backend).double() for e in (0.0, 1.0)]
    pools[1].load_state_dict(pools[0].state_dict())
    steps = [pool.step(x, graph) for pool in pools]
    A = torch.zeros(len(x), len(x)).double()
    A[edges[1], edges[0]] = weight
    X, pooled, link, entropy = dense_diff_pool(x, A, pools[0].gnn(x, graph))
    torch.testing.assert_close(steps[0].x, X[0])
    torch.testing.assert_close(steps[0].after.weight.view(3, 3), pooled[0])
    torch.testing.assert_close(steps[0].penalty, link)
    torch.testing.assert_close(steps[1].penalty, entropy)


def test_the_penalty_of_a_batch_is_the_mean_of_its_graphs():
    x, edges, weight, batch = random_batch(5, graphs=3)
    torch.manual_seed(0)
    pool = DiffPooling(5, 2).double()
    alone = []
    for b in range(3):
        mine, first = batch == b, int((batch < b).sum())
        inside = mine[edges[0]]
        alone.append(pool.step(x[mine], packed(x[mine], edges[:, inside] - first, weight[inside])).penalty)
    torch.testing.assert_close(pool.step(x, packed(x, edges, weight, batch)).penalty, torch.stack(alone).mean())


def test_every_graph_gets_the_same_number_of_clusters_but_an_empty_one_none():
    x, batch = torch.randn(21, 5).double(), torch.tensor([0] + [2] * 20)
    step = DiffPooling(5, 4).double().step(x, packed(x, torch.empty(2, 0, dtype=torch.int64), None, batch))
    assert step.ptr.tolist() == [0, 4, 4, 8]
    assert step.after.pattern.rowptr.diff().tolist() == [4] * 8  # all joined with all of their graph
    assert step.penalty.isfinite()


def test_a_perfect_reconstruction_has_a_gradient():
    x = torch.ones(2, 1).double()  # one cluster: SSᵀ is 1 everywhere, and so is A with its self-loops
    pool = DiffPooling(1, 1).double()
    step = pool.step(x, packed(x, torch.tensor([[0, 1, 0, 1], [0, 1, 1, 0]])))
    assert step.penalty.item() == pytest.approx(0, abs=1e-5)
    step.penalty.backward()
    assert all(p.grad.isfinite().all() for p in pool.parameters())


def test_gradients_are_those_of_the_formula():
    x, edges, weight, batch = random_batch(8, graphs=2, most=4, F=2)
    torch.manual_seed(0)
    pool = DiffPooling(2, 2, backend="reference").double()

    def run(x):
        step = pool.step(x, packed(x, edges, weight, batch))
        return step.x, step.after.weight, step.penalty

    assert torch.autograd.gradcheck(run, (x.requires_grad_(),))


def test_zero_clusters_are_refused():
    with pytest.raises(ConfigError, match="clusters must be a whole number"):
        DiffPooling(3, 0)
