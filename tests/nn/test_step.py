"""The whole step as an object, lifting, thinning, and the parts separately."""

import itertools

import pytest
import torch

from asapool.errors import InputError
from asapool.nn import ASAPooling, BasicLEConv, LEConv, Master2Token, Readout, Source2Token, Token2Token
from tests.graphs import PATH4, random_batch, undirected, with_random_parameters


def even_attention(pool):
    """Uniform memberships: α_ij = 1 / |c(i)|."""
    with torch.no_grad():
        pool.attention.w.zero_()
    return pool


def shuffled_batch():
    """A batch whose nodes are in any order, so that it is not sorted by graph."""
    x, edge_index, edge_weight, batch = random_batch(8)
    shuffle = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    new = torch.empty_like(shuffle)
    new[shuffle] = torch.arange(len(x))
    return x[shuffle], new[edge_index], edge_weight, batch[shuffle]


def test_a_path_of_four_by_hand(backend):
    """Even α, x = 1, 2, 3, 6: x^c = 1½, 2, 11⁄3, 4½. With W1 = 1, W2 = W3 = 0, φ = sigmoid(x^c): 3 and 2 stay."""
    pool = even_attention(ASAPooling(1, backend=backend))
    with torch.no_grad():
        pool.fitness.W1.fill_(1)
        pool.fitness.W2.zero_()
        pool.fitness.W3.zero_()
    step = pool.explain(torch.tensor([[1.0], [2.0], [3.0], [6.0]]), PATH4)
    x_c = torch.tensor([1.5, 2, 11 / 3, 4.5])
    torch.testing.assert_close(step.cluster_x.view(-1), x_c)
    torch.testing.assert_close(step.fitness, x_c.sigmoid())
    assert step.centres.tolist() == [3, 2]
    torch.testing.assert_close(step.x.view(-1), (x_c * x_c.sigmoid())[[3, 2]])
    third = 1 / 3
    torch.testing.assert_close(step.S.to_dense(), torch.tensor([[0, 0], [0, third], [0.5, third], [0.5, third]]))
    # A + I is 1 within distance 1; clusters {2, 3} and {1, 2, 3}: 4 and 7 such pairs inside, 5 between them
    torch.testing.assert_close(step.adjacency.to_dense(), torch.tensor([[1, 5 / 6], [5 / 6, 7 / 9]]))
    torch.testing.assert_close(step.lift(torch.tensor([[6.0], [12.0]])).view(-1), torch.tensor([0, 4.0, 7.0, 7.0]))


def test_the_repr_has_sizes_and_no_tensors():
    step = ASAPooling(5).double().explain(*random_batch(8))
    N, K, E = len(step.x_before), len(step.x), len(step.pooled().edge_weight)
    assert repr(step) == f"PoolStep(graphs=4, nodes={N}, kept={K}, features=5, pooled_edges={E})"
    plain = ASAPooling(5).double().step(step.x_before, step.before, edges=False)
    assert repr(plain) == f"PoolStep(graphs=4, nodes={N}, kept={K}, features=5)"


def test_networkx_graphs_before_and_after_pooling_by_hand():
    """The path of four from above: clusters {2, 3} and {1, 2, 3} around 3 and 2 stay."""
    pool = even_attention(ASAPooling(1))
    with torch.no_grad():
        pool.fitness.W1.fill_(1)
        pool.fitness.W2.zero_()
        pool.fitness.W3.zero_()
    step = pool.explain(torch.tensor([[1.0], [2.0], [3.0], [6.0]]), PATH4)
    before, after = step.to_networkx(), step.to_networkx(pooled=True)
    assert sorted(before.edges) == [(0, 1), (1, 2), (2, 3)]
    assert before.edges[1, 2] == {"weight": 1.0}
    assert before.nodes[0] == {"fitness": step.fitness[0].item(), "kept": False, "clusters": {}}
    assert before.nodes[2]["kept"]
    assert before.nodes[2]["clusters"] == pytest.approx({0: 1 / 2, 1: 1 / 3})
    assert after.nodes[0] == {"medoid": 3, "fitness": step.fitness[3].item(), "members": {2: 0.5, 3: 0.5}}
    assert after.nodes[1]["members"] == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3})
    weights = {(a, b): w for a, b, w in after.edges(data="weight")}
    assert weights == pytest.approx({(0, 0): 1, (0, 1): 5 / 6, (1, 1): 7 / 9})


@pytest.mark.parametrize("assign", ["clusters", "members"])
def test_networkx_graphs_of_a_shuffled_batch_have_the_user_s_numbers(assign):
    x, edge_index, edge_weight, batch = shuffled_batch()
    pool = with_random_parameters(ASAPooling(5, assign=assign).double())
    step = pool.explain(x, edge_index, edge_weight, batch)
    pooled, S, A = step.pooled(), step.S.to_dense(), step.adjacency.to_dense()
    for graph in range(4):
        before, after = step.to_networkx(graph), step.to_networkx(graph, pooled=True)
        assert set(before) == set((batch == graph).nonzero().view(-1).tolist())
        assert set(after) == set((pooled.batch == graph).nonzero().view(-1).tolist())
        inside = batch[edge_index[0]] == graph
        assert {frozenset(e) for e in before.edges} == {frozenset(e) for e in edge_index[:, inside].t().tolist()}
        assert all(after.nodes[k]["medoid"] == pooled.perm[k] for k in after)
        assert all(S[v, k] == share for k in after for v, share in after.nodes[k]["members"].items())
        assert all(S[v, k] == share for v in before for k, share in before.nodes[v]["clusters"].items())
        for a, b, w in after.edges(data="weight"):
            assert w == pytest.approx(A[a, b].item())
    with pytest.raises(InputError, match="graph must be 0 to 3, the graphs of this batch, got 4"):
        step.to_networkx(4)


def test_a_networkx_graph_keeps_both_weights_of_two_directions():
    edge_index, weight = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    before = ASAPooling(1).explain(torch.ones(2, 1), edge_index, weight).to_networkx()
    assert {(a, b): w for a, b, w in before.edges(data="weight")} == {(0, 1): 1.0, (1, 0): 2.0}


def test_lifting_is_the_assignment_and_follows_the_user_s_numbers(backend):
    pool = with_random_parameters(ASAPooling(5, backend=backend).double())
    step = pool.explain(*shuffled_batch())
    h = torch.randn(len(step.perm), 3, dtype=torch.float64)
    torch.testing.assert_close(step.lift(h), step.S.to_dense() @ h)
    with pytest.raises(InputError, match="one row per kept cluster"):
        step.lift(h[:-1])


def test_fittest_first_is_another_numbering_of_the_same_clusters(backend):
    pool = ASAPooling(5, backend=backend).double()
    named = pool.explain(*random_batch(8))
    plain = pool.step(named.x_before, named.before)
    for lo, hi in itertools.pairwise(plain.ptr.tolist()):
        fitness = named.fitness[named.perm[lo:hi]]
        assert torch.equal(fitness, fitness.sort(descending=True).values)
        assert torch.equal(plain.perm[lo:hi], named.perm[lo:hi].sort().values)
    where = torch.searchsorted(plain.perm, named.perm)
    assert torch.equal(named.x, plain.x[where])
    assert torch.equal(named.S.to_dense(), plain.S.to_dense()[:, where])
    assert torch.equal(named.adjacency.to_dense(), plain.adjacency.to_dense()[where][:, where])
    pooled = plain.pooled()
    assert torch.equal(pooled.perm, named.perm)
    dense = torch.zeros(len(where), len(where), dtype=torch.float64)
    dense[pooled.edge_index[1], pooled.edge_index[0]] = pooled.edge_weight
    assert torch.equal(dense, named.adjacency.to_dense())


def test_edges_can_be_left_out(backend):
    pool = ASAPooling(5, backend=backend).double()
    step = pool.explain(*random_batch(8))
    bare = pool.step(step.x_before, step.before, edges=False)
    assert torch.equal(step.x, bare.fittest_first().x)
    with pytest.raises(InputError, match="without pooled edges"):
        bare.pooled()
    with pytest.raises(InputError, match="one row per node"):
        pool.step(step.x_before[:-1], step.before)


@pytest.mark.parametrize("hops", [1, 2])
def test_max_neighbours_bounds_the_degree_and_keeps_symmetry(hops, backend):
    g = torch.Generator().manual_seed(0)
    N = 400
    i, j = torch.randint(0, N, (2, 5 * N), generator=g)
    edges = undirected(*[(a, b) for a, b in zip(i.tolist(), j.tolist(), strict=True) if a < b])
    x = torch.randn(N, 4, generator=g)
    full = ASAPooling(4, hops=hops, backend=backend)
    thin = ASAPooling(4, hops=hops, max_neighbours=6, backend=backend)
    thin.load_state_dict(full.state_dict())
    for _ in range(2):  # pooled edges are the next input
        step = thin.explain(x, edges)
        A = step.adjacency.to_dense().detach()
        assert (A.fill_diagonal_(0) != 0).sum(1).max() <= 6
        assert torch.equal(A != 0, (A != 0).t())
        assert len(step.pooled().edge_index[0]) < len(full(x, edges).edge_index[0])
        x, edges = step.x.detach(), step.pooled().edge_index


def test_dropout_acts_on_the_attention_while_training_only():
    x, edge_index, edge_weight, batch = random_batch(8)
    pool = ASAPooling(5, dropout=0.9).double()
    torch.manual_seed(0)
    assert (pool.explain(x, edge_index, edge_weight, batch).assignment.alpha == 0).float().mean() > 0.5
    assert (pool.eval().explain(x, edge_index, edge_weight, batch).assignment.alpha > 0).all()


def test_the_query_matters_only_with_sigma_outside():
    x, edge_index, _, _ = random_batch(8, F=4)
    for kind, sigma, moves in [
        (Master2Token, "inside", False),
        (Token2Token, "inside", False),
        (Master2Token, "outside", True),
        (Token2Token, "outside", True),
    ]:
        layer = with_random_parameters(kind(4, sigma=sigma).double())
        before = layer(x, edge_index).alpha
        with torch.no_grad():
            layer.w[:4] += 1  # w₁, the query's half
        assert (not torch.allclose(before, layer(x, edge_index).alpha)) == moves, (kind, sigma)
    same = with_random_parameters(Source2Token(4).double())(x, edge_index).alpha
    torch.testing.assert_close(same, with_random_parameters(Token2Token(4).double())(x, edge_index).alpha)


def test_convolutions_take_several_channels():
    x, edge_index, edge_weight, _ = random_batch(8, F=4)
    assert LEConv(4, 3).double()(x, edge_index, edge_weight).shape == (len(x), 3)
    assert BasicLEConv(4, 3).double()(x, edge_index, edge_weight).shape == (len(x), 3)
    assert Readout()(x).shape == (1, 8)
    assert "4, 3" in repr(LEConv(4, 3))
    assert "ratio=0.5" in repr(ASAPooling(4))


def test_reset_draws_new_weights():
    pool = ASAPooling(4)
    before = [p.clone() for p in pool.parameters()]
    pool.reset_parameters()
    assert any(not torch.equal(a, b) for a, b in zip(before, pool.parameters(), strict=True))


class Indifferent(Master2Token):
    """All members of a cluster have the same score."""

    def scores(self, x, clusters):
        return None, torch.zeros(len(x), dtype=x.dtype)


def test_a_custom_attention_is_used(backend):
    pool = ASAPooling(5, backend=backend).double()
    pool.attention = Indifferent(5, backend=backend).double()
    assignment = pool.explain(*random_batch(8)).assignment
    sizes = assignment.clusters.rowptr.diff().double()
    torch.testing.assert_close(assignment.alpha, 1 / sizes[assignment.clusters.row])


@pytest.mark.parametrize("part", ["attention", "fitness", "inner", "inner.lin"])
def test_modules_with_hooks_are_called(backend, part):
    """A module with hooks is called as a module."""
    pool = ASAPooling(5, backend=backend).double()
    batch = random_batch(8)
    expected, heard = pool(*batch), []
    pool.get_submodule(part).register_forward_hook(lambda *_: heard.append(part))
    torch.testing.assert_close(pool(*batch).x, expected.x)
    assert heard == [part]


def test_max_neighbours_does_not_look_at_other_graphs(backend):
    """A graph with edges both ways is thinned the same beside one with edges one way."""
    g = torch.Generator().manual_seed(3)
    x = torch.randn(15, 4, generator=g)
    ring = undirected(*[(i, (i + d) % 12) for i in range(12) for d in (1, 2, 3)])
    both = torch.cat([ring, torch.tensor([[12, 13, 14], [13, 14, 12]])], dim=1)
    pool = ASAPooling(4, ratio=0.8, max_neighbours=2, backend=backend)
    alone, beside = pool(x[:12], ring), pool(x, both, batch=torch.tensor([0] * 12 + [1] * 3))
    kept = len(alone.perm)
    mine = beside.edge_index[0] < kept
    assert beside.perm[:kept].tolist() == alone.perm.tolist()
    assert beside.edge_index[:, mine].tolist() == alone.edge_index.tolist()
    torch.testing.assert_close(beside.edge_weight[mine], alone.edge_weight)


def test_public_fields_use_the_users_node_numbers(backend):
    x, edges = torch.randn(5, 3), undirected((0, 2), (2, 4), (1, 3))
    step = ASAPooling(3, ratio=0.6, backend=backend).explain(x, edges, batch=torch.tensor([1, 0, 1, 0, 1]))
    kept = step.centres
    assert set(kept[:2].tolist()) <= {1, 3}
    torch.testing.assert_close(step.x, step.fitness[kept, None] * step.cluster_x[kept])
    torch.testing.assert_close(step.S.to_dense().t() @ x, step.cluster_x[kept])


class Doubled(torch.nn.Module):
    """Replaces a linear map, as adapters do."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside
        self.weight, self.bias = inside.weight, inside.bias

    def forward(self, x):
        return 2 * self.inside(x)


@pytest.mark.parametrize("part", ["inner.lin", "attention.W"])
def test_a_module_that_replaces_a_linear_map_is_called(backend, part):
    pool = ASAPooling(5, semantics="authors", backend=backend).double()
    where, name = pool.get_submodule(part.split(".")[0]), part.split(".")[1]
    plain = getattr(where, name)
    setattr(where, name, Doubled(plain))
    got = pool.explain(*random_batch(8)).assignment.alpha
    setattr(where, name, plain)
    with torch.no_grad():
        for p in plain.parameters():
            p.mul_(2)
    torch.testing.assert_close(got, pool.explain(*random_batch(8)).assignment.alpha)


class Degree(torch.nn.Module):
    """The fitness is the number of neighbours."""

    def forward(self, x, edge_index, edge_weight):
        return torch.bincount(edge_index[1], minlength=len(x)).to(x.dtype)


def test_a_custom_fitness_is_used(backend):
    pool = ASAPooling(3, ratio=1, backend=backend)
    pool.fitness = Degree()
    assert pool(torch.randn(4, 3), undirected((0, 2), (1, 2), (3, 2))).perm.tolist() == [2]


def test_global_hooks_are_called_for_all_modules(backend):
    heard = []
    pool = ASAPooling(5, backend=backend).double()
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, *_: heard.append(module))
    try:
        pool(*random_batch(8))
    finally:
        handle.remove()
    assert {pool.inner, pool.inner.lin, pool.attention, pool.fitness, pool} <= set(heard)


@pytest.mark.filterwarnings("ignore:Grad strides")  # a column of a product; only a performance warning
def test_distributed_data_parallel_as_the_docs_say(tmp_path):
    """Two steps: the first would leave the parameters that get no gradient waiting."""
    group = torch.distributed
    group.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        pool = torch.nn.parallel.DistributedDataParallel(ASAPooling(5).double(), find_unused_parameters=True)
        for _ in range(2):
            out = pool(*random_batch(8))
            (out.x.sum() + out.edge_weight.sum()).backward()
        assert pool.module.fitness.W1.grad.abs().sum() > 0
        del pool, out  # a model that outlives its process group may hang in torch when it is deleted
    finally:
        group.destroy_process_group()
