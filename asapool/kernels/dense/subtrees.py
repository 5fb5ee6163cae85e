"""Weisfeiler-Lehman counts of padded batches."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.dense.graph import DenseGraph
from asapool.kernels.reference.dropout import logical_shift
from asapool.kernels.reference.subtrees import EDGES, NODES, hash_rows, mix


def subtree_counts(x: Tensor, graph: DenseGraph, depth: int, buckets: int) -> Tensor:
    """As reference.subtree_counts: x (B, N, F); returns (B, buckets)."""
    pattern = graph.pattern
    edges = pattern.entries & ~(pattern.eye & (graph.weight == 0))  # the diagonal is an edge only with a weight
    edge = None if graph.edge_attr is None else hash_rows(graph.edge_attr, salt=EDGES)
    labels = hash_rows(x, salt=NODES)
    counts = x.new_zeros(x.size(0), buckets)
    for d in range(depth + 1):
        if d:
            token = labels[:, None, :] + torch.zeros_like(edges, dtype=torch.int64)
            token = mix(token if edge is None else token ^ edge)
            labels = mix(mix(labels + d) + _wrapped_sum(torch.where(edges, token, 0)))
        counts = counts.scatter_add(1, labels.remainder(buckets), pattern.ptr.mask.to(x.dtype))
    return counts


def _wrapped_sum(z: Tensor) -> Tensor:
    """Σ z over the last dimension, modulo 2⁶⁴; in halves, because onnxruntime saturates sums that overflow."""
    return (z & (2**32 - 1)).sum(-1) + logical_shift(z, 32).sum(-1) * 2**32
