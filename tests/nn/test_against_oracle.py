"""Every option on random graphs against the dense oracle; symmetries."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asapool.nn import ASAPooling
from tests import oracle
from tests.graphs import batches, options, random_batch, with_random_parameters

BACKENDS = st.sampled_from(["reference", "fused"])


def pool_for(x, chosen, backend):
    return with_random_parameters(ASAPooling(x.size(1), backend=backend, **chosen).double())


def dense(step):
    return step.adjacency.to_dense()


@settings(max_examples=300, deadline=None)
@given(batches, options, BACKENDS)
def test_equals_the_oracle_graph_by_graph(data, chosen, backend):
    x, edge_index, edge_weight, batch = data
    pool = pool_for(x, chosen, backend)
    step = pool.explain(x, edge_index, edge_weight, batch)
    S = step.assignment.to_sparse().to_dense().t()
    for b in range(int(batch.max()) + 1):
        lo, hi = int((batch < b).sum()), int((batch <= b).sum())
        mine = (edge_index[0] >= lo) & (edge_index[0] < hi)
        one = oracle.asap(pool, x[lo:hi], edge_index[:, mine] - lo, None if edge_weight is None else edge_weight[mine])
        kept, x_p, A_p, rows, phi = one
        at = slice(int(step.ptr[b]), int(step.ptr[b + 1]))
        torch.testing.assert_close(S[lo:hi, lo:hi], rows)
        torch.testing.assert_close(step.fitness[lo:hi], phi)
        ours = (step.centres[at] - lo).tolist()
        if ours != kept:  # only nodes that are equally fit up to rounding may be exchanged
            torch.testing.assert_close(phi[ours], phi[kept], rtol=0, atol=1e-12)
            continue
        torch.testing.assert_close(step.x[at], x_p)
        torch.testing.assert_close(dense(step)[at, at], A_p)


@settings(max_examples=100, deadline=None)
@given(batches, options, BACKENDS, st.integers(0, 1000))
def test_relabelled_nodes_give_the_same_pooled_graph(data, chosen, backend, seed):
    """Proposition 1."""
    x, edge_index, edge_weight, batch = data
    pool = pool_for(x, chosen, backend)
    shuffle = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    new = torch.empty_like(shuffle)
    new[shuffle] = torch.arange(len(x))  # node i becomes node new[i]; the batch vector is no longer sorted
    one = pool.explain(x, edge_index, edge_weight, batch)
    two = pool.explain(x[shuffle], new[edge_index], edge_weight, batch[shuffle])
    axis = 1 if chosen.get("assign") == "members" else 0  # whose memberships sum to 1: a node's, or a cluster's
    torch.testing.assert_close(two.S.to_dense().sum(axis), torch.ones(two.S.size(1 - axis), dtype=x.dtype))
    if new[one.centres].tolist() != two.centres.tolist():  # ties are broken by node number, which did change
        torch.testing.assert_close(one.fitness[one.centres], two.fitness[two.centres], rtol=0, atol=1e-12)
        return
    torch.testing.assert_close(one.x, two.x)
    torch.testing.assert_close(two.fitness[new], one.fitness)
    torch.testing.assert_close(two.cluster_x[new], one.cluster_x)
    torch.testing.assert_close(dense(one), dense(two))
    assert one.pooled().batch.tolist() == two.pooled().batch.tolist()


@settings(max_examples=60, deadline=None)
@given(batches, options, BACKENDS)
def test_a_batch_is_its_graphs_one_by_one(data, chosen, backend):
    x, edge_index, edge_weight, batch = data
    pool = pool_for(x, chosen, backend)
    together = pool(x, edge_index, edge_weight, batch)
    for b in range(int(batch.max()) + 1):
        lo, hi = int((batch < b).sum()), int((batch <= b).sum())
        mine = (edge_index[0] >= lo) & (edge_index[0] < hi)
        alone = pool(x[lo:hi], edge_index[:, mine] - lo, None if edge_weight is None else edge_weight[mine])
        torch.testing.assert_close(together.x[together.batch == b], alone.x)
        at = together.batch[together.edge_index[0]] == b
        first = int((together.batch < b).sum())
        assert torch.equal(together.edge_index[:, at] - first, alone.edge_index)
        torch.testing.assert_close(together.edge_weight[at], alone.edge_weight)
        assert (together.perm[together.batch == b] - lo).tolist() == alone.perm.tolist()


@pytest.mark.parametrize("semantics", ["paper", "authors", "pyg"])
def test_three_poolings_in_a_row_match_the_oracle(semantics, backend):
    """At levels two and three, graphs are weighted and have a diagonal."""
    x, edge_index, edge_weight, _ = random_batch(3, graphs=1, most=40, F=3)
    edge_index, edge_weight = edge_index[:, edge_index[0] != edge_index[1]], edge_weight
    pools = [
        with_random_parameters(ASAPooling(3, 0.6, semantics=semantics, backend=backend).double(), s) for s in range(3)
    ]
    ours, theirs = (x, edge_index, edge_weight), (x, edge_index, edge_weight)
    for pool in pools:
        ours = tuple(pool(*ours))[:3]
        _, x_p, A_p, _, _ = oracle.asap(pool, *theirs)
        torch.testing.assert_close(ours[0], x_p)
        torch.testing.assert_close(oracle.dense(ours[1], ours[2], len(x_p)), A_p)
        i, j = A_p.nonzero().t()
        theirs = (x_p, torch.stack([j, i]), A_p[i, j])


def test_the_same_seed_gives_the_same_bytes(backend):
    x, edge_index, edge_weight, batch = random_batch(5, dtype=torch.float32)

    def run():
        torch.manual_seed(7)
        pool = ASAPooling(x.size(1), dropout=0.3, backend=backend)
        return pool(x, edge_index, edge_weight, batch)

    one, two = run(), run()
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
