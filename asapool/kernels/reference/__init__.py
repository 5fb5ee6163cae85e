"""The operator in plain torch, close to the formulas of the paper, for any device and dtype."""

from asapool.kernels.reference.attend import attend, attend_dynamic, cluster_max
from asapool.kernels.reference.coarsen import coarsen
from asapool.kernels.reference.dropout import dropout_mask
from asapool.kernels.reference.edge_features import coarsen_features
from asapool.kernels.reference.edges import induce, list_edges, strongest
from asapool.kernels.reference.members import join, share
from asapool.kernels.reference.messages import sum_messages, sum_neighbours
from asapool.kernels.reference.pattern import edges_valid, pack, pack_rows, reach
from asapool.kernels.reference.propagate import activate, normalise, propagate
from asapool.kernels.reference.readout import graph_norm, readout
from asapool.kernels.reference.score import project, score
from asapool.kernels.reference.select import gate, gather, select
from asapool.kernels.reference.subtrees import subtree_counts, subtree_labels

__all__ = [
    "activate",
    "attend",
    "attend_dynamic",
    "cluster_max",
    "coarsen",
    "coarsen_features",
    "dropout_mask",
    "edges_valid",
    "gate",
    "gather",
    "graph_norm",
    "induce",
    "join",
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
