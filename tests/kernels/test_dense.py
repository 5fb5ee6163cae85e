"""The padded kernels give the numbers and gradients of the reference, graph by graph."""

import pytest
import torch

from asapool.kernels import Graph, dense, reference
from asapool.kernels.ratio import kept_count
from tests.graphs import random_batch

F = 5
KINDS = [{"directed": d, "loops": s} for d in (False, True) for s in (False, True)]


class Both:
    """One batch twice: packed for the reference, padded for the dense kernels."""

    def __init__(self, seed, **options):
        x, edge_index, weight, batch = random_batch(seed, graphs=5, most=9, F=F, **options)
        self.sizes = torch.bincount(batch, minlength=int(batch.max()) + 1)
        self.ptr = torch.cat([self.sizes.new_zeros(1), self.sizes.cumsum(0)])
        N = x.size(0)
        self.pattern, slot = reference.pack(edge_index, self.ptr, N)
        values = torch.zeros(self.pattern.col.numel(), dtype=x.dtype).index_add(0, slot, weight)
        self.graph = Graph(self.pattern, values)
        order = torch.argsort(edge_index[1] * N + edge_index[0])
        col, row = edge_index[:, order]
        rowptr = torch.cat([row.new_zeros(1), torch.bincount(row, minlength=N).cumsum(0)])
        self.x = x
        self.padded_x, self.padded = dense.pad(x, self.ptr, rowptr, col, weight[order])
        self.nodes = self.padded_x.size(1)
        self.batch, self.local = batch, torch.arange(N) - self.ptr[batch]

    def pad_nodes(self, values):
        """(ΣN, …) to (B, N, …)."""
        out = values.new_zeros(len(self.sizes), self.nodes, *values.shape[1:])
        return out.index_put((self.batch, self.local), values)

    def pad_entries(self, values, pattern=None):
        """(E,) to (B, N, N)."""
        pattern = pattern or self.pattern
        where = (self.batch[pattern.row], self.local[pattern.row], self.local[pattern.col])
        return values.new_zeros(len(self.sizes), self.nodes, self.nodes).index_put(where, values)

    def real(self, values):
        """(B, N, …) to (ΣN, …)."""
        return values[self.batch, self.local]


@pytest.fixture(params=range(len(KINDS)), ids=lambda k: "-".join(n for n, on in KINDS[k].items() if on) or "plain")
def both(request):
    return Both(request.param, **KINDS[request.param])


def test_padding_by_hand():
    """An edge 0 – 1 of weight 3 with a self-loop of weight 2 at node 1, and a node alone."""
    x, graph = dense.pad(
        torch.tensor([[1.0], [2.0], [5.0]]), torch.tensor([0, 2, 3]), torch.tensor([0, 1, 3, 3]),
        torch.tensor([1, 0, 1]), torch.tensor([3.0, 3.0, 2.0]), nodes=3,
    )  # fmt: skip
    assert x.squeeze(2).tolist() == [[1, 2, 0], [5, 0, 0]]
    assert graph.weight.tolist() == [[[0, 3, 0], [3, 2, 0], [0, 0, 0]], [[0, 0, 0]] * 3]
    assert graph.pattern.entries.int().tolist() == [
        [[1, 1, 0], [1, 1, 0], [0, 0, 0]],
        [[1, 0, 0], [0, 0, 0], [0, 0, 0]],
    ]
    assert graph.hat("add")[0].tolist() == [[1, 3, 0], [3, 3, 0], [0, 0, 0]]
    assert graph.hat("fill")[0].tolist() == [[1, 3, 0], [3, 2, 0], [0, 0, 0]]


def test_a_path_is_pooled_by_hand():
    """Path 0 – 1 – 2, the middle alone is kept, memberships a third each: A^p = Σ Â_jl / 9 = (3 + 4) / 9."""
    x, graph = dense.pad(
        torch.tensor([[3.0], [6.0], [9.0]]), torch.tensor([0, 3]), torch.tensor([0, 1, 3, 4]),
        torch.tensor([1, 0, 2, 1]), nodes=4,
    )  # fmt: skip
    alpha = dense.attend(graph.pattern, None, torch.zeros(1, 4))
    assert torch.allclose(alpha[0, 1], torch.tensor([1, 1, 1, 0]) / 3)
    perm, kept = dense.select(torch.tensor([[0.1, 0.5, 0.2, 9.0]]), graph.pattern.ptr, graph.pattern.ptr.kept(1 / 3))
    assert perm.tolist() == [[1, 4]]
    x_p = dense.gather(graph.pattern, alpha, x, torch.tensor([[0.1, 0.5, 0.2, 9.0]]), perm)
    assert torch.allclose(x_p[0, :, 0], torch.tensor([3.0, 0.0]))  # 0.5 · (3 + 6 + 9) / 3
    pattern, A = dense.coarsen(graph.pattern, alpha, graph.pattern, graph.hat("add"), perm, kept)
    assert torch.allclose(A[0], torch.tensor([[7 / 9, 0], [0, 0]]))
    assert pattern.entries[0].tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("loops", ["add", "fill"])
def test_convolution_weights_and_sums(both, loops):
    n = reference.normalise(both.pattern, both.graph.hat(loops))
    padded = dense.normalise(both.padded.pattern, both.padded.hat(loops))
    assert torch.allclose(both.pad_entries(n), padded)
    for transpose in (False, True):
        y = reference.propagate(both.pattern, n, both.x, transpose=transpose)
        z = dense.propagate(both.padded.pattern, padded, both.padded_x, transpose=transpose)
        assert torch.allclose(y, both.real(z))


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_clusters_and_memberships(both, hops):
    clusters = both.pattern if hops == 1 else reference.reach(both.pattern, hops)
    wide = dense.reach(both.padded.pattern, hops)
    assert torch.equal(both.pad_entries(torch.ones_like(clusters.col).bool(), clusters), wide.entries)
    token, query = both.x[:, 0], both.x[:, 1]
    for q, slope in ((None, 1.0), (query, 0.2)):
        alpha = reference.attend(clusters, q, token, slope)
        padded_q = None if q is None else both.pad_nodes(q)
        assert torch.allclose(
            both.pad_entries(alpha, clusters), dense.attend(wide, padded_q, both.pad_nodes(token), slope)
        )
    m = reference.cluster_max(clusters, both.x)
    assert torch.equal(m, both.real(dense.cluster_max(wide, both.padded_x)))


def test_scores_and_readout(both):
    u = torch.randn(both.x.size(0), 6, dtype=both.x.dtype)
    for weighted in (True, False):
        for loops in (True, False):
            weight = both.graph.weight if weighted else None
            padded = both.padded.weight if weighted else None
            phi = reference.score(both.pattern, weight, u, loops)
            assert torch.allclose(phi, both.real(dense.score(both.padded.pattern, padded, both.pad_nodes(u), loops)))
    noisy = both.padded_x + (~both.padded.pattern.ptr.mask)[:, :, None] * 1e6  # padding may have any content
    for parts in (("mean", "max"), ("sum",), ("max", "sum", "mean")):
        assert torch.allclose(
            reference.readout(both.x, both.ptr, parts), dense.readout(noisy, both.padded.pattern.ptr, parts)
        )


def test_messages_and_norms(both):
    E, D = both.pattern.col.numel(), 3
    eps, e = torch.tensor(0.3), torch.randn(E, D, dtype=both.x.dtype) * (both.graph.weight != 0)[:, None]
    W = torch.randn(F, D, dtype=both.x.dtype)
    padded = torch.stack([both.pad_entries(e[:, d]) for d in range(D)], dim=3)
    A, pattern = both.padded.weight, both.padded.pattern
    y = reference.sum_messages(both.pattern, both.graph.weight, both.x, eps, e, W)
    assert torch.allclose(y, both.real(dense.sum_messages(pattern, A, both.padded_x, eps, padded, W)))
    y = reference.sum_neighbours(both.pattern, both.graph.weight, both.x, eps)
    assert torch.allclose(y, both.real(dense.sum_neighbours(pattern, A, both.padded_x, eps)))
    gamma, beta, share = torch.randn(3, F, dtype=both.x.dtype)
    noisy = both.padded_x + (~pattern.ptr.mask)[:, :, None] * 1e6
    y = reference.graph_norm(both.x, both.ptr, gamma, beta, share, 1e-5)
    assert torch.allclose(y, both.real(dense.graph_norm(noisy, pattern.ptr, gamma, beta, share, 1e-5)))
    mean, variance, count = dense.node_statistics(noisy, pattern.ptr)
    assert torch.allclose(mean, both.x.mean(0))
    assert torch.allclose(variance, both.x.var(0, correction=0))
    assert int(count) == len(both.x)


@pytest.mark.parametrize("ratio", [0.3, 0.5, 1.0, 2])
def test_selection_and_pooled_edges_with_gradients(both, ratio):
    phi, token = both.x[:, 2].sigmoid(), both.x[:, 0]
    count = kept_count(both.sizes, ratio)
    perm, kept_ptr = reference.select(phi, both.ptr, count)
    slots, kept = dense.select(both.pad_nodes(phi), both.padded.pattern.ptr, both.padded.pattern.ptr.kept(ratio))
    assert torch.equal(kept.sizes, count)
    assert torch.equal(slots[kept.mask], both.local[perm])
    inputs = []
    for x, t, p, pattern, graph, module, chosen, ptr in (
        (both.x, token, phi, both.pattern, both.graph, reference, perm, kept_ptr),
        (
            both.padded_x,
            both.pad_nodes(token),
            both.pad_nodes(phi),
            both.padded.pattern,
            both.padded,
            dense,
            slots,
            kept,
        ),
    ):
        given = [v.clone().requires_grad_() for v in (x, t, p, graph.weight)]
        x, t, p, weight = given
        hat = type(graph)(pattern, weight).hat("add")
        alpha = module.attend(pattern, None, t)
        x_p = module.gather(pattern, alpha, x, p, chosen)
        pooled, A = module.coarsen(pattern, alpha, pattern, hat, chosen, ptr)
        induced = module.induce(pattern, weight, chosen, ptr)[1]
        (x_p.square().sum() + A.pow(3).sum() + induced.square().sum()).backward()
        inputs.append((given, x_p, A, pooled))
    (packed, x_p, A, pooled), (padded, z_p, B, structure) = inputs
    K = kept.mask.nonzero()
    assert torch.allclose(x_p, z_p[K[:, 0], K[:, 1]])
    b, k = K[pooled.row].unbind(1)
    assert torch.allclose(A, B[b, k, K[pooled.col, 1]])
    assert int(structure.entries.sum()) == A.numel()
    for a, c in zip(packed[:3], padded[:3], strict=True):
        assert torch.allclose(a.grad, both.real(c.grad))
    assert torch.allclose(both.pad_entries(packed[3].grad), padded[3].grad * both.padded.pattern.entries)


def test_the_strongest_edges(both):
    for most in (1, 2):
        thin = reference.strongest(both.graph, most)
        padded = dense.strongest(both.padded, most)
        assert torch.allclose(both.pad_entries(thin.weight, thin.pattern), padded.weight)
        assert torch.equal(both.pad_entries(torch.ones_like(thin.weight).bool(), thin.pattern), padded.pattern.entries)


def test_a_fitness_that_is_not_a_number_comes_last_and_padding_after_it():
    fitness = torch.tensor([[float("nan"), float("-inf"), 0.3, 7.0]])
    perm, _ = dense.select(fitness, dense.Padding(torch.tensor([3]), 4), dense.Padding(torch.tensor([3]), 4))
    assert perm.tolist() == [[2, 0, 1, 4]]
