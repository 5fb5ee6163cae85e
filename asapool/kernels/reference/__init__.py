"""The operator in plain torch: reads like the paper, runs on any device and dtype."""

from asapool.kernels.reference.attend import attend, cluster_max, project
from asapool.kernels.reference.coarsen import coarsen, induce, strongest
from asapool.kernels.reference.dropout import drop
from asapool.kernels.reference.messages import sum_messages, sum_neighbours
from asapool.kernels.reference.norms import graph_norm
from asapool.kernels.reference.pattern import list_edges, pack, pack_rows, reach
from asapool.kernels.reference.propagate import activate, normalise, propagate
from asapool.kernels.reference.readout import readout
from asapool.kernels.reference.score import score
from asapool.kernels.reference.select import gate, gather, select

__all__ = [
    "activate",
    "attend",
    "cluster_max",
    "coarsen",
    "drop",
    "gate",
    "gather",
    "graph_norm",
    "induce",
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
    "strongest",
    "sum_messages",
    "sum_neighbours",
]
