"""The reference gradients of pooled edges: by groups of graphs, by sparse products, and by hand."""

import sys

import pytest
import torch

from asapool import kernels
from asapool.kernels.reference import group_gradients
from tests.graphs import random_batch


def gradients(seed, backend):
    """A random batch, every other node kept, and a random gradient of the pooled weights."""
    x, edge_index, _, batch = random_batch(seed, graphs=7, directed=True)
    ptr = torch.nn.functional.pad(batch.bincount().cumsum(0), (1, 0))
    pattern, _ = kernels.pack(edge_index, ptr, x.size(0), backend=backend)
    draw = torch.Generator().manual_seed(seed)
    weight = torch.rand(pattern.col.numel(), generator=draw, dtype=torch.float64)
    alpha, hat = (weight.roll(k).requires_grad_() for k in (0, 3))
    first, sizes = ptr[:-1].tolist(), ptr.diff().tolist()
    perm = torch.tensor([n + k for n, size in zip(first, sizes, strict=True) for k in range(0, size, 2)])
    kept = torch.tensor([0, *((size + 1) // 2 for size in sizes)]).cumsum(0)
    _, values = kernels.coarsen(pattern, alpha, pattern, hat, perm, kept, backend=backend)
    g = torch.rand(values.numel(), generator=draw, dtype=torch.float64)
    return torch.autograd.grad(values, (alpha, hat), g)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("group", "widest"), [(1, 1024), (6, 1024), (1000, 1024), (6, 0), (6, 2)])
def test_any_grouping_gives_the_gradients_of_the_fused_loop(seed, group, widest, monkeypatch):
    monkeypatch.setattr(group_gradients, "GROUP", group)
    # 0: sparse products for all graphs, 2: for some
    monkeypatch.setattr(sys.modules["asapool.kernels.reference.coarsen"], "WIDEST", widest)
    for ours, fused in zip(gradients(seed, "reference"), gradients(seed, "fused"), strict=True):
        torch.testing.assert_close(ours, fused)


def test_two_nodes_in_one_cluster_by_hand():
    """Nodes 0 and 1, an edge each way, cluster 0 = both nodes: A^p = Σ_jl α_j Â_jl α_l, one number."""
    pattern, _ = kernels.pack(torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 2]), 2, backend="reference")
    alpha = torch.tensor([0.25, 0.75, 0.5, 0.5], requires_grad=True)  # rows of the clusters 0 and 1
    hat = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)  # Â = [[1, 2], [3, 4]]
    one = torch.tensor([0])
    _, value = kernels.coarsen(pattern, alpha, pattern, hat, one, torch.tensor([0, 1]), backend="reference")
    assert value.tolist() == [0.0625 * 1 + 0.1875 * (2 + 3) + 0.5625 * 4]
    value.backward()
    assert hat.grad.tolist() == [0.0625, 0.1875, 0.1875, 0.5625]  # α_j α_l
    # ∂α_0 = (Â + Âᵀ) α = 2·0.25 + 5·0.75, ∂α_1 = 5·0.25 + 8·0.75; cluster 1 is not kept
    assert alpha.grad.tolist() == [4.25, 7.25, 0.0, 0.0]
