"""Edge features through the pooling: values by hand, the dense formula, gradients, symmetries, every pooling layer."""

import pytest
import torch

from asapool import kernels
from asapool.errors import InputError
from asapool.kernels.limits import limit_pooled_edges
from asapool.nn import GINE, ASAPooling, Pooled, SAGPooling, TopKPooling
from tests import oracle
from tests.graphs import PATH4, random_batch, with_random_parameters

DATA = {"seed": 11, "graphs": 2, "most": 6, "F": 2, "directed": True, "loops": True}


def batch_with_features(D=3, **options):
    x, edges, weight, batch = random_batch(**options)
    g = torch.Generator().manual_seed(1)
    return x, edges, weight, batch, torch.randn(edges.size(1), D, generator=g, dtype=torch.float64)


def test_a_path_of_four_by_hand(backend):
    """Edges 0–1, 1–2, 2–3 with weights 1, 3, 1 and features 1, 2, 4; even memberships.

    Clusters of 1 and 2 are {0, 1, 2} and {1, 2, 3}. Inside the first are 0–1 and 1–2, both ways: (1·1 + 3·2)/4 = 7/4;
    inside the second (3·2 + 1·4)/4 = 10/4. From the first to the second lead 0→1, 1→2, 2→1, 2→3: (1 + 6 + 6 + 4)/8.
    """
    pattern, slot = kernels.pack(PATH4, torch.tensor([0, 4]), 4, backend=backend)
    weight = torch.zeros(10).index_copy(0, slot, torch.tensor([1.0, 3, 1] * 2))
    attr = torch.zeros(10, 1).index_copy(0, slot, torch.tensor([1.0, 2, 4] * 2).view(-1, 1))
    alpha = kernels.attend(pattern, None, torch.zeros(4), backend=backend)
    perm, ptr = torch.tensor([1, 2]), torch.tensor([0, 2])
    pooled, _ = kernels.coarsen(pattern, alpha, pattern, weight, perm, ptr, backend=backend)
    e = kernels.coarsen_features(pattern, alpha, pattern, weight, attr, perm, pooled, backend=backend)
    torch.testing.assert_close(e.view(-1), torch.tensor([7 / 4, 17 / 8, 17 / 8, 10 / 4]))


def test_self_loops_that_were_added_carry_no_feature(backend):
    """Two nodes without an edge: A + I connects each cluster with itself, and no edge has a feature to average."""
    pool = ASAPooling(1, 1.0, backend=backend)
    none = torch.empty(2, 0, dtype=torch.int64)
    out = pool(torch.ones(2, 1), none, batch=torch.tensor([0, 1]), edge_attr=torch.empty(0, 3))
    assert out.edge_index.tolist() == [[0, 1], [0, 1]]
    assert out.edge_attr.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("options", [{}, {"hops": 2}, {"assign": "members"}, {"semantics": "authors"}])
def test_equals_the_dense_formula(options, backend):
    x, edges, weight, batch, attr = batch_with_features(seed=7, graphs=3, directed=True, loops=True)
    pool = with_random_parameters(ASAPooling(5, backend=backend, **options).double())
    step = pool.explain(x, edges, weight, batch, edge_attr=attr)
    E = torch.zeros(len(x), len(x), 3, dtype=x.dtype)
    E[edges[1], edges[0]] = attr
    expected = oracle.edge_features(step.S.to_dense().t(), oracle.dense(edges, weight, len(x)), E)
    after = step.after
    torch.testing.assert_close(after.edge_attr, expected[after.pattern.row, after.pattern.col])
    out = pool(x, edges, weight, batch, edge_attr=attr)
    assert out[:5] == Pooled(*out[:5])
    torch.testing.assert_close(out.edge_attr, expected[out.edge_index[1], out.edge_index[0]])


@pytest.mark.parametrize("options", [{}, {"hops": 2, "max_neighbours": 2}, {"soft_edges": False}])
def test_gradients(options, backend):
    """With respect to features, weights, edge features and every parameter (S), through two levels and a GINE."""
    x, edges, weight, batch, attr = batch_with_features(D=2, **DATA)
    pool = with_random_parameters(ASAPooling(2, 0.7, backend=backend, **options).double())
    conv = with_random_parameters(GINE(2, 2, 2, backend=backend).double())
    last = with_random_parameters(ASAPooling(2, 0.7, backend=backend, **options).double(), 1)

    def run(*_):
        one = pool(x, edges, weight, batch, edge_attr=attr)
        y = conv(one.x, one.edge_index, one.edge_weight, edge_attr=one.edge_attr)
        two = last(y, one.edge_index, one.edge_weight, one.batch, edge_attr=one.edge_attr)
        return one.edge_attr, two.x, two.edge_attr

    inputs = [t.requires_grad_() for t in (x, weight, attr)]
    assert torch.autograd.gradcheck(run, [*inputs, *pool.parameters()], atol=1e-6)


@pytest.mark.parametrize("layer", [ASAPooling, TopKPooling, SAGPooling])
def test_a_batch_is_its_graphs_one_by_one(layer, backend):
    x, edges, weight, batch, attr = batch_with_features(seed=5)
    pool = with_random_parameters(layer(5, backend=backend).double())
    together = pool(x, edges, weight, batch, edge_attr=attr)
    for b in range(int(batch.max()) + 1):
        lo, hi = int((batch < b).sum()), int((batch <= b).sum())
        mine = (edges[0] >= lo) & (edges[0] < hi)
        alone = pool(x[lo:hi], edges[:, mine] - lo, weight[mine], edge_attr=attr[mine])
        at = together.batch[together.edge_index[0]] == b
        torch.testing.assert_close(together.edge_attr[at], alone.edge_attr)


@pytest.mark.parametrize("layer", [TopKPooling, SAGPooling, lambda F, **o: ASAPooling(F, soft_edges=False, **o)])
def test_edges_that_stay_keep_their_features(layer, backend):
    x, edges, weight, batch, attr = batch_with_features(seed=5, directed=True)
    pool = with_random_parameters(layer(5, backend=backend).double())
    out = pool(x, edges, weight, batch, edge_attr=attr)
    feature = {(j, i): e for (j, i), e in zip(edges.t().tolist(), attr.tolist(), strict=True)}
    names = out.perm[out.edge_index].t().tolist()
    assert len(names) > 3
    assert [feature[j, i] for j, i in names] == out.edge_attr.tolist()


def test_five_fields_without_edge_features(backend):
    x, edges, weight, batch, attr = batch_with_features(seed=5)
    for pool in (ASAPooling(5, backend=backend), TopKPooling(5, backend=backend)):
        assert len(pool.double()(x, edges, weight, batch)) == 5
        with_features = pool(x, edges, weight, batch, edge_attr=attr)
        assert len(with_features) == 6
        assert all(torch.equal(a, b) for a, b in zip(pool(x, edges, weight, batch), with_features[:5], strict=True))


def test_bad_edge_features_are_named(backend):
    x, edges, weight, batch, attr = batch_with_features(seed=5)
    pool = ASAPooling(5, backend=backend).double()
    with pytest.raises(InputError, match="one row of features per edge"):
        pool(x, edges, weight, batch, edge_attr=attr[1:])
    with pytest.raises(InputError, match="edge 0 has NaN"):
        pool(x, edges, weight, batch, edge_attr=attr / 0 * 0)
    with pytest.raises(InputError, match="without edge features"):
        pool.explain(x, edges, weight, batch).pooled_with_features()


def test_a_graph_that_is_thinned_while_it_is_formed():
    """The kept edges have the features and gradients that they have without a limit."""
    g = torch.Generator().manual_seed(0)
    spokes = torch.stack([torch.zeros(59, dtype=torch.int64), torch.arange(1, 60)])
    edges = torch.cat([spokes, spokes.flip(0)], dim=1)
    x, attr = torch.randn(60, 3, generator=g).double(), torch.randn(118, 2, generator=g).double()
    pool = with_random_parameters(ASAPooling(3, 0.5, max_neighbours=4, backend="fused").double())
    results = []
    for limit in (10**6, 100):
        e = attr.clone().requires_grad_()
        with limit_pooled_edges(limit):
            out = pool(x, edges, edge_attr=e)
        (out.edge_attr * out.edge_weight[:, None]).square().sum().backward()
        results.append([*out, e.grad])
    for whole, thinned in zip(*results, strict=True):
        torch.testing.assert_close(thinned, whole)
