"""The operator on padded batches: plain torch with static shapes, for any device, torch.compile and ONNX.

Every function has the name and the meaning of its counterpart in `reference`; what is (N, F) there is (B, N, F) here,
and what is (E,) there is (B, N, N). N is the padded number of nodes. Nothing synchronises with the device: the number
of kept nodes follows from N and the ratio.
"""

from asapool.kernels.dense.attend import attend, attend_dynamic, cluster_max, project, score
from asapool.kernels.dense.coarsen import coarsen, coarsen_features, gate, gather, induce, select, strongest
from asapool.kernels.dense.graph import DenseGraph, DensePattern, Padding, pad, reach
from asapool.kernels.dense.propagate import activate, normalise, propagate, sum_messages, sum_neighbours
from asapool.kernels.dense.readout import graph_norm, node_statistics, readout
from asapool.kernels.dense.subtrees import subtree_counts

__all__ = [
    "DenseGraph",
    "DensePattern",
    "Padding",
    "activate",
    "attend",
    "attend_dynamic",
    "cluster_max",
    "coarsen",
    "coarsen_features",
    "gate",
    "gather",
    "graph_norm",
    "induce",
    "node_statistics",
    "normalise",
    "pad",
    "project",
    "propagate",
    "reach",
    "readout",
    "score",
    "select",
    "strongest",
    "subtree_counts",
    "sum_messages",
    "sum_neighbours",
]
