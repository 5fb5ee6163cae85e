"""Every kernel on graphs small enough to draw, with values worked out by hand."""

import math

import pytest
import torch

from asapool import kernels
from asapool.kernels import Graph
from tests.graphs import PATH3, PATH4, TRIANGLE, undirected


def packed(edge_index, N, backend, weight=None, ptr=None):
    pattern, slot = kernels.pack(edge_index, torch.tensor(ptr or [0, N]), N, backend=backend)
    given = torch.ones(slot.numel()) if weight is None else torch.tensor(weight)
    return Graph(pattern, torch.zeros(pattern.col.numel()).index_add(0, slot, given))


def column(*values):
    return torch.tensor(values, dtype=torch.float32).view(-1, 1)


def dense(pattern, value):
    A = torch.zeros(pattern.diag.numel(), pattern.diag.numel())
    A[pattern.row, pattern.col] = value
    return A.tolist()


def test_packing_sorts_joins_and_adds_the_diagonal(backend):
    """Edges 2→0, 1→0, 1→0 (again), 0→2, and a self-loop at 1."""
    graph = packed(torch.tensor([[2, 1, 1, 0, 1], [0, 0, 0, 2, 1]]), 3, backend, [1.0, 2, 3, 4, 5])
    p = graph.pattern
    assert p.rowptr.tolist() == [0, 3, 4, 6]
    assert p.col.tolist() == [0, 1, 2, 1, 0, 2]
    assert graph.weight.tolist() == [0, 5, 1, 5, 4, 0]
    assert p.diag.tolist() == [0, 3, 5]
    assert p.rowptr_t.tolist() == [0, 2, 4, 6]
    assert p.col_t.tolist() == [0, 2, 0, 1, 0, 2]  # column 0 holds rows 0 and 2, column 1 rows 0 and 1, …
    assert p.edge_t.tolist() == [0, 4, 1, 3, 2, 5]
    edge_index, weight = kernels.list_edges(graph, backend=backend)
    assert edge_index.tolist() == [[1, 2, 1, 0], [0, 0, 1, 2]]
    assert weight.tolist() == [5, 1, 5, 4]


def test_edges_are_valid_within_the_nodes_of_a_graph(backend):
    two = torch.tensor([0, 0, 1])  # nodes 0 and 1 in one graph, node 2 in another

    def valid(edges, batch):
        return kernels.edges_valid(torch.tensor(edges).view(2, -1), batch, 3, backend=backend)

    assert valid([[0, 1], [1, 0]], two)
    assert valid([[0, 1], [1, 2]], None)
    assert not valid([[0, 1], [1, 2]], two)
    assert not valid([[0, 3], [1, 0]], None)
    assert not valid([[0, 0], [1, -1]], two)
    assert kernels.edges_valid(torch.empty(2, 0, dtype=torch.int64), two, 3, backend=backend)


def test_listed_edges_are_renumbered_and_pass_gradients(backend):
    """Edges 1→0 (2) and 0→2 (4), a self-loop at 1 (5): nodes 0, 1, 2 are called 7, 8, 9."""
    graph = packed(torch.tensor([[1, 1, 0], [0, 1, 2]]), 3, backend, [2.0, 5, 4])
    weight = graph.weight.clone().requires_grad_()  # entries (0,0) (0,1) (1,1) (2,0) (2,2), of which two are absent
    named = kernels.list_edges(kernels.Graph(graph.pattern, weight), torch.tensor([7, 8, 9]), backend=backend)
    assert named[0].tolist() == [[8, 8, 7], [7, 8, 9]]
    assert named[1].tolist() == [2, 5, 4]
    named[1].backward(torch.tensor([10.0, 20, 30]))
    assert weight.grad.tolist() == [0, 10, 20, 30, 0]


def test_rows_of_a_data_set_pack_to_the_same(backend):
    rowptr, col = torch.tensor([0, 2, 3, 4]), torch.tensor([1, 2, 1, 0])
    pattern, slot = kernels.pack_rows(rowptr, col, torch.tensor([0, 3]), backend=backend)
    assert pattern.col.tolist() == [0, 1, 2, 1, 0, 2]
    assert slot.tolist() == [1, 2, 3, 4]


def test_hats(backend):
    graph = packed(torch.tensor([[0, 0], [0, 1]]), 2, backend, [3.0, 1.0])  # a self-loop of weight 3 at node 0
    assert dense(graph.pattern, graph.hat("add")) == [[4, 0], [1, 1]]
    assert dense(graph.pattern, graph.hat("fill")) == [[3, 0], [1, 1]]


def test_gcn_weights_of_a_path(backend):
    """Degrees with self-loops are 2, 3, 2: n = 1/√(d_i d_j)."""
    graph = packed(PATH3, 3, backend)
    n = torch.tensor(dense(graph.pattern, kernels.gcn_weights(graph, backend=backend)))
    side = 1 / math.sqrt(6)
    torch.testing.assert_close(n, torch.tensor([[1 / 2, side, 0], [side, 1 / 3, side], [0, side, 1 / 2]]))


def test_propagation_along_a_path(backend):
    p = packed(PATH3, 3, backend).pattern
    weight = torch.tensor([1.0, 2, 3, 4, 5, 6, 7])  # rows: (0: 0,1) (1: 0,1,2) (2: 1,2)
    x = column(1, 10, 100)
    assert kernels.propagate(p, weight, x, backend=backend).view(-1).tolist() == [21, 543, 760]
    assert kernels.propagate(p, weight, x, transpose=True, backend=backend).view(-1).tolist() == [31, 642, 750]
    biased = kernels.propagate(p, weight, x, torch.tensor([-100.0]), relu=True, backend=backend)
    assert biased.view(-1).tolist() == [0, 443, 660]


def test_activation(backend):
    h = torch.tensor([[1.0, -5], [-1, 5]])
    assert kernels.activate(h, torch.tensor([1.0, 2]), backend=backend).tolist() == [[2, 0], [0, 7]]


def test_clusters_of_two_and_three_hops(backend):
    p = packed(PATH4, 4, backend).pattern
    two, three = (kernels.reach(p, h, backend=backend) for h in (2, 3))
    assert [two.col[two.rowptr[i] : two.rowptr[i + 1]].tolist() for i in range(4)] == [
        [0, 1, 2],
        [0, 1, 2, 3],
        [0, 1, 2, 3],
        [1, 2, 3],
    ]
    assert three.col.tolist() == [0, 1, 2, 3] * 4


def test_clusters_follow_the_arrows(backend):
    """0 → 1 → 2: node 2 is reached from 1 in one hop and from 0 in two; nothing reaches 0."""
    p = packed(torch.tensor([[0, 1], [1, 2]]), 3, backend).pattern
    two = kernels.reach(p, 2, backend=backend)
    assert [two.col[two.rowptr[i] : two.rowptr[i + 1]].tolist() for i in range(3)] == [[0], [0, 1], [0, 1, 2]]


def test_the_largest_of_each_cluster(backend):
    p = packed(PATH4, 4, backend).pattern
    x = torch.tensor([[1.0, -1], [0, -2], [5, -3], [2, -4]])
    assert kernels.cluster_max(p, x, backend=backend).tolist() == [[1, -1], [5, -1], [5, -2], [5, -3]]


def test_attention_in_a_triangle_and_on_a_path(backend):
    token = torch.tensor([0.0, math.log(2), math.log(5)])
    alpha = kernels.attend(packed(TRIANGLE, 3, backend).pattern, None, token, backend=backend)
    torch.testing.assert_close(alpha, torch.tensor([1, 2, 5] * 3) / 8)
    p = packed(PATH3, 3, backend).pattern
    torch.testing.assert_close(
        kernels.attend(p, None, token, backend=backend),
        torch.tensor([1 / 3, 2 / 3, 1 / 8, 2 / 8, 5 / 8, 2 / 7, 5 / 7]),
    )
    query = torch.tensor([10.0, -3.0, 0.5])  # without a bend it cancels
    torch.testing.assert_close(
        kernels.attend(p, query, token, backend=backend), kernels.attend(p, None, token, backend=backend)
    )


def test_attention_with_a_bend(backend):
    """Scores of cluster 0: −1 + 0 and −1 + 3, of which LeakyReLU(½) makes −½ and 2."""
    p = packed(undirected((0, 1)), 2, backend).pattern
    alpha = kernels.attend(p, torch.tensor([-1.0, 0.0]), torch.tensor([0.0, 3.0]), 0.5, backend=backend)
    a, b = math.exp(-0.5), math.exp(2)
    torch.testing.assert_close(alpha[:2], torch.tensor([a / (a + b), b / (a + b)]))


def test_projection(backend):
    x = torch.tensor([[1.0, -1.0], [-2.0, 3.0]])
    w = torch.tensor([2.0, 5.0])
    assert kernels.project(x, w, backend=backend).tolist() == [-3, 11]
    assert kernels.project(x, w, 0.5, backend=backend).tolist() == [-0.5, 13]


def test_a_bright_middle_outscores_the_ends_of_a_path(backend):
    graph = packed(PATH3, 3, backend)
    u = column(1, 5, 1).expand(3, 3).contiguous()
    phi = kernels.score(graph.pattern, graph.weight, u, backend=backend)
    assert phi.view(-1).tolist() == [-3, 13, -3]  # ends 1 + (1 − 5); middle 5 + 2·(5 − 1)


def test_score_with_three_projections_weights_and_loops(backend):
    graph = packed(torch.tensor([[1, 0, 0], [0, 1, 0]]), 2, backend, [2.0, 3.0, 4.0])  # weight 4 on the loop at 0
    u = torch.tensor([[1.0, 10, 100], [2.0, 20, 200]])
    score = lambda weight, loops: kernels.score(graph.pattern, weight, u, loops, backend=backend).view(-1).tolist()  # noqa: E731
    assert score(graph.weight, False) == [1 + 2 * (10 - 200), 2 + 3 * (20 - 100)]
    assert score(graph.weight, True) == [1 + 2 * (10 - 200) + 4 * (10 - 100), 2 + 3 * (20 - 100)]
    assert score(None, False) == [1 + (10 - 200), 2 + (20 - 100)]
    assert score(None, True) == [1 + (10 - 200) + (10 - 100), 2 + (20 - 100) + (20 - 200)]


def test_gate_and_gather(backend):
    x, phi, perm = column(1, 2, 3), torch.tensor([0.5, 0.1, 2.0]), torch.tensor([2, 0])
    assert kernels.gate(x, phi, perm, backend=backend).view(-1).tolist() == [6, 0.5]
    p = packed(PATH3, 3, backend).pattern
    alpha = torch.tensor([0.5, 0.5, 0, 1, 0, 0.25, 0.75])
    gathered = kernels.gather(p, alpha, x, phi, perm, backend=backend)
    assert gathered.view(-1).tolist() == [2 * (0.25 * 2 + 0.75 * 3), 0.5 * (0.5 + 1)]


def test_the_ends_of_a_path_of_four_become_neighbours(backend):
    """c(0) = {0, 1}, c(3) = {2, 3}, all α = ½; the edge 1–2 joins them: ½·1·½ = ¼. Diagonal: ¼·(1 + 1 + 1 + 1) = 1."""
    graph = packed(PATH4, 4, backend)
    p = graph.pattern
    alpha = 1 / p.rowptr.diff().float()[p.row]
    args = (p, alpha, p, graph.hat("add"), torch.tensor([0, 3]), torch.tensor([0, 2]))
    pooled, weight = kernels.coarsen(*args, backend=backend)
    assert dense(pooled, weight) == [[1, 0.25], [0.25, 1]]
    assert pooled.ptr.tolist() == [0, 2]


def test_pooled_edges_keep_their_direction(backend):
    """One arrow 0 → 1 of weight 2; both kept, order swapped: cluster of 1 is {0, 1}, of 0 just {0}."""
    graph = packed(torch.tensor([[0], [1]]), 2, backend, [2.0])
    p = graph.pattern  # rows: (0: 0) (1: 0, 1)
    alpha = torch.tensor([1, 0.25, 0.75])
    pooled, weight = kernels.coarsen(
        p, alpha, p, graph.hat("add"), torch.tensor([1, 0]), torch.tensor([0, 2]), backend=backend
    )
    # Â = [[1, 0], [2, 1]]; rows of Ŝᵀ: cluster 0 = (¼, ¾), cluster 1 = (1, 0)
    assert dense(pooled, weight) == [[0.25 * 0.25 + 0.75 * 2 * 0.25 + 0.75 * 0.75, 0.25 + 0.75 * 2], [0.25, 1]]


def test_induced_edges_are_those_of_the_input(backend):
    graph = packed(PATH4, 4, backend, [1.0, 2, 3, 1, 2, 3])
    perm, ptr = torch.tensor([2, 0, 1]), torch.tensor([0, 3])
    pooled, weight = kernels.induce(graph.pattern, graph.weight, perm, ptr, backend=backend)
    assert dense(pooled, weight) == [[0, 0, 2], [0, 0, 1], [2, 1, 0]]
    assert pooled.diag.numel() == 3


@pytest.mark.parametrize(
    ("most", "kept"), [(1, {(0, 1), (2, 3)}), (2, {(0, 1), (0, 2), (2, 3)}), (3, {(0, 1), (0, 2), (0, 3), (2, 3)})]
)
def test_the_strongest_edges_stay_and_stay_symmetric(most, kept, backend):
    """Star 0–1 (9), 0–2 (5), 0–3 (1) and 2–3 (7): with one neighbour each, 0–1 and 2–3 choose each other."""
    graph = packed(undirected((0, 1), (0, 2), (0, 3), (2, 3)), 4, backend, [9.0, 5, 1, 7] * 2)
    thin = kernels.strongest(graph, most, backend=backend)
    edge_index, weight = kernels.list_edges(thin, backend=backend)
    pairs = set(map(tuple, edge_index.t().tolist()))
    assert pairs == kept | {(b, a) for a, b in kept}
    assert thin.pattern.diag.numel() == 4
    assert max(thin.pattern.rowptr.diff().tolist()) <= most + 1
    assert dict(zip(map(tuple, edge_index.t().tolist()), weight.tolist(), strict=True))[(2, 3)] == 7


def test_the_strongest_of_a_directed_graph_are_chosen_row_by_row(backend):
    graph = packed(torch.tensor([[1, 2, 0], [0, 0, 2]]), 3, backend, [1.0, 2.0, 5.0])
    edge_index, _ = kernels.list_edges(kernels.strongest(graph, 1, backend=backend), backend=backend)
    assert edge_index.tolist() == [[2, 0], [0, 2]]


def test_readout(backend):
    x = torch.tensor([[1.0, -4], [3, -2], [7, 7]])
    r = kernels.readout(x, torch.tensor([0, 2, 2, 3]), backend=backend)
    assert r.tolist() == [[2, -3, 3, -2], [0, 0, 0, 0], [7, 7, 7, 7]]


def test_the_gradient_of_a_mean_is_divided_once():
    """g / n to the last bit, as in every version: multiplying by 1 / n would end old trainings in other weights."""
    x = torch.arange(49.0).reshape(7, 7).requires_grad_()
    g = torch.linspace(-1, 1, 14).sin().reshape(1, 14)
    kernels.readout(x, torch.tensor([0, 7]), backend="fused").backward(g)
    assert torch.equal(x.grad[:6], (g[:, :7] / 7).expand(6, 7))
    assert torch.equal(x.grad[6], g[0, :7] / 7 + g[0, 7:])
