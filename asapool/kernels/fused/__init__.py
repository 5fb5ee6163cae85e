"""The operator as compiled loops for float32 and float64 on the CPU; see README.md in this folder."""

from asapool.kernels.fused.attend import attend, attend_dynamic, cluster_max
from asapool.kernels.fused.batch_norm import Extras, RunningStatistics, batch_norm
from asapool.kernels.fused.coarsen import coarsen
from asapool.kernels.fused.dropout import dropout_mask
from asapool.kernels.fused.edge_features import coarsen_features
from asapool.kernels.fused.edges import induce, list_edges
from asapool.kernels.fused.layers import PoolSpec, convolve, form
from asapool.kernels.fused.members import join, share
from asapool.kernels.fused.messages import sum_messages, sum_neighbours
from asapool.kernels.fused.pattern import edges_valid, pack, pack_rows, reach
from asapool.kernels.fused.products import linear
from asapool.kernels.fused.propagate import activate, normalise, propagate
from asapool.kernels.fused.readout import graph_norm, readout
from asapool.kernels.fused.score import project, score
from asapool.kernels.fused.select import gate, gather, select
from asapool.kernels.fused.subtrees import subtree_counts, subtree_labels
from asapool.kernels.reference.edges import strongest

__all__ = [
    "Extras",
    "PoolSpec",
    "RunningStatistics",
    "activate",
    "attend",
    "attend_dynamic",
    "batch_norm",
    "cluster_max",
    "coarsen",
    "coarsen_features",
    "convolve",
    "dropout_mask",
    "edges_valid",
    "form",
    "gate",
    "gather",
    "graph_norm",
    "induce",
    "join",
    "linear",
    "list_edges",
    "normalise",
    "pack",
    "pack_rows",
    "project",
    "propagate",
    "reach",
    "readout",
    "score",
    "select",
    "share",
    "strongest",
    "subtree_counts",
    "subtree_labels",
    "sum_messages",
    "sum_neighbours",
]
