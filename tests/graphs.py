"""Graphs that several tests draw from."""

import torch
from hypothesis import strategies as st


def undirected(*pairs):
    return torch.tensor([[a for a, b in pairs] + [b for a, b in pairs], [b for a, b in pairs] + [a for a, b in pairs]])


PATH3 = undirected((0, 1), (1, 2))
PATH4 = undirected((0, 1), (1, 2), (2, 3))
TRIANGLE = undirected((0, 1), (1, 2), (0, 2))


def random_batch(seed, graphs=4, most=9, F=5, weighted=True, directed=False, loops=False, dtype=torch.float64):
    """A batch with graphs of 1 to `most` nodes, some without edges: x, edge_index, edge_weight, batch."""
    g = torch.Generator().manual_seed(seed)
    xs, edges, weights, batch, first = [], [], [], [], 0
    for b in range(graphs):
        n = int(torch.randint(1, most + 1, (1,), generator=g))
        there = torch.rand(n, n, generator=g) < torch.rand(1, generator=g)
        if not directed:
            there = there.triu(1) | there.triu(1).t()
        there.fill_diagonal_(False)
        if loops:
            there |= torch.diag(torch.rand(n, generator=g) < 0.5)
        i, j = there.nonzero().t()
        W = torch.rand(n, n, generator=g, dtype=torch.float64) + 0.1
        W = W if directed else (W + W.t()) / 2
        xs.append(torch.randn(n, F, generator=g, dtype=torch.float64))
        edges.append(torch.stack([j, i]) + first)
        weights.append(W[i, j])
        batch += [b] * n
        first += n
    weight = torch.cat(weights).to(dtype) if weighted else None
    return torch.cat(xs).to(dtype), torch.cat(edges, 1), weight, torch.tensor(batch)


batches = st.builds(
    random_batch,
    seed=st.integers(0, 10**6),
    graphs=st.integers(1, 4),
    most=st.integers(1, 8),
    F=st.integers(1, 4),
    weighted=st.booleans(),
    directed=st.booleans(),
    loops=st.booleans(),
)
options = st.fixed_dictionaries(
    {},
    optional={
        "ratio": st.sampled_from([0.25, 0.5, 0.8, 1.0, 2]),
        "hops": st.sampled_from([1, 2, 3]),
        "attention": st.sampled_from(["m2t", "t2t", "s2t", "dynamic"]),
        "master": st.sampled_from(["max", "mean"]),
        "fitness": st.sampled_from(["leconv", "basic-leconv", "gcn"]),
        "aggregate": st.sampled_from(["both", "cluster", "none"]),
        "assign": st.sampled_from(["clusters", "members"]),
        "soft_edges": st.booleans(),
        "semantics": st.sampled_from(["paper", "authors", "pyg"]),
        "add_self_loops": st.booleans(),
    },
).filter(lambda chosen: (chosen.get("assign"), chosen.get("aggregate")) != ("members", "none"))


def with_random_parameters(module, seed=0):
    """Biases included, so that none of them can be forgotten unnoticed."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64) * 0.7)
    return module
