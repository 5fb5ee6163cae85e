"""Every kernel in a chain, on graphs of several kinds."""

import torch

from asapool import kernels
from tests.graphs import random_batch


def many_graphs():
    """Many graphs of all sizes."""
    x, edge_index, edge_weight, batch = random_batch(1, graphs=60, most=40, F=16, dtype=torch.float32)
    return x, edge_index, edge_weight, torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(batch).cumsum(0)])


def one_ring(N=3000):
    """A long ring with chords, so that it stays sparse."""
    i = torch.arange(N).repeat(2)
    j = torch.cat([(i[:N] + 1) % N, (i[:N] + 7) % N])
    g = torch.Generator().manual_seed(0)
    edges = torch.stack([torch.cat([i, j]), torch.cat([j, i])])
    return torch.randn(N, 16, generator=g), edges, torch.rand(4 * N, generator=g), torch.tensor([0, N])


def directed_graphs():
    x, edge_index, edge_weight, batch = random_batch(3, graphs=20, most=20, F=16, directed=True, loops=True)
    return x, edge_index, edge_weight, torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(batch).cumsum(0)])


def mixed_graphs():
    """Small graphs, a long directed ring (its rows are sparse, not dense) and small graphs again."""
    small, ring = directed_graphs(), one_ring(1500)
    parts = (small, (ring[0], ring[1][:, ::2], ring[2][::2], ring[3]), small)
    first = [0, len(small[0]), len(small[0]) + 1500]
    edges = torch.cat([edges + f for (_, edges, _, _), f in zip(parts, first, strict=True)], 1)
    ptr = torch.cat([ptr[:-1] + f for (_, _, _, ptr), f in zip(parts, first, strict=True)])
    total = torch.tensor([first[-1] + len(small[0])])
    return (
        torch.cat([p[0].float() for p in parts]),
        edges,
        torch.cat([p[2].float() for p in parts]),
        torch.cat([ptr, total]),
    )


GRAPHS = {"many": many_graphs, "one": one_ring, "directed": directed_graphs, "mixed": mixed_graphs}


def kernel_outcome(x, edge_index, edge_weight, ptr, hops=1, backend="fused"):
    """Results and gradients of every kernel in a chain."""
    on = {"backend": backend}
    x, edge_weight = x.clone().requires_grad_(), edge_weight.clone().requires_grad_()
    pattern, slot = kernels.pack(edge_index, ptr, len(x), **on)
    weight = torch.zeros(pattern.col.numel(), dtype=x.dtype).index_add(0, slot, edge_weight)
    hat = kernels.Graph(pattern, weight).hat("add")
    line = torch.linspace(-1, 1, x.size(1), dtype=x.dtype)
    y = kernels.propagate(pattern, kernels.normalise(pattern, hat, **on), x, line, True, **on)
    y = kernels.activate(y, -0.1 * line, **on)
    clusters = kernels.reach(pattern, hops, **on)
    m = kernels.cluster_max(clusters, y, **on)
    alpha = kernels.attend(clusters, kernels.project(m, -line, **on), kernels.project(y, line, 0.2, **on), 0.2, **on)
    u = kernels.propagate(clusters, alpha, y[:, :3].contiguous(), **on)
    phi = kernels.score(pattern, weight, u, **on).view(-1).sigmoid()
    count = (ptr.diff() + 1) // 2
    perm, kept_ptr = kernels.select(torch.arange(len(x)) % 7 / 7, ptr, count, **on)
    x_p = kernels.gather(clusters, alpha, y, phi, perm, **on) + kernels.gate(x, phi, perm, **on)
    pooled, A = kernels.coarsen(clusters, alpha, pattern, hat, perm, kept_ptr, **on)
    induced, B = kernels.induce(pattern, weight, perm, kept_ptr, **on)
    E = pattern.col.numel()
    e = torch.linspace(-1, 1, 3 * E, dtype=x.dtype).view(E, 3).requires_grad_()
    attr = kernels.coarsen_features(clusters, alpha, pattern, weight, e, perm, pooled, **on)
    members, source = kernels.join(clusters, pattern, phi, perm, kept_ptr, **on)
    M = kernels.share(members, source, alpha, phi, **on)
    dynamic = kernels.attend_dynamic(clusters, m, y, line, 0.2, **on)
    lifted = kernels.propagate(clusters, alpha, y, transpose=True, **on)
    r = kernels.readout(x_p, kept_ptr, **on)
    listed, C = kernels.list_edges(kernels.Graph(pattern, weight), torch.arange(len(x)).flip(0), **on)
    squares = sum(t.square().sum() for t in (A, B, C, r, lifted, attr, dynamic))
    (squares + (M * line[source.clamp(max=15)]).sum()).backward()
    structures = [t for p in (pattern, clusters, pooled, induced, members) for t in (*p.tensors, p.diag)]
    results = [source, attr, M, dynamic, listed, C, y, m, alpha, phi, perm, x_p, A, B, lifted, r]
    return [*structures, *results, e.grad, x.grad, edge_weight.grad]


def compile_loops(dtype):
    """Compile the loops for one type of numbers, unless the cache has them: dense rows, sparse rows, directed edges."""
    for name in ("many", "one", "mixed"):
        x, edge_index, edge_weight, ptr = GRAPHS[name]()
        kernel_outcome(x.to(dtype), edge_index, edge_weight.to(dtype), ptr)
