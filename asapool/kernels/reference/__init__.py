"""The operator in plain torch: reads like the paper, runs on any device and dtype."""

from asapool.kernels.reference.attend import attend, cluster_max
from asapool.kernels.reference.coarsen import coarsen
from asapool.kernels.reference.dropout import dropout_mask
from asapool.kernels.reference.dynamic import attend_dynamic
from asapool.kernels.reference.edge_features import coarsen_features
from asapool.kernels.reference.edges import list_edges
from asapool.kernels.reference.gather import gate, gather
from asapool.kernels.reference.induce import induce
from asapool.kernels.reference.members import join, share
from asapool.kernels.reference.messages import sum_messages, sum_neighbours
from asapool.kernels.reference.normalise import normalise
from asapool.kernels.reference.norms import graph_norm
from asapool.kernels.reference.pattern import pack, pack_rows, reach
from asapool.kernels.reference.project import project
from asapool.kernels.reference.propagate import activate, propagate
from asapool.kernels.reference.readout import readout
from asapool.kernels.reference.score import score
from asapool.kernels.reference.select import select
from asapool.kernels.reference.strongest import strongest

__all__ = [
    "activate",
    "attend",
    "attend_dynamic",
    "cluster_max",
    "coarsen",
    "coarsen_features",
    "dropout_mask",
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
    "sum_messages",
    "sum_neighbours",
]
