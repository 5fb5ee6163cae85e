"""The operator as compiled loops for float32 and float64 on the CPU, each as its namesake in `reference`."""

from asapool.kernels.fused.attend import attend, cluster_max, project
from asapool.kernels.fused.chance import drop
from asapool.kernels.fused.coarsen import coarsen, induce, strongest
from asapool.kernels.fused.layers import Clustering, convolve, form
from asapool.kernels.fused.pattern import pack, pack_rows, reach
from asapool.kernels.fused.propagate import activate, normalise, propagate
from asapool.kernels.fused.readout import readout
from asapool.kernels.fused.score import score
from asapool.kernels.fused.select import gate, gather, select

__all__ = [
    "Clustering",
    "activate",
    "attend",
    "cluster_max",
    "coarsen",
    "convolve",
    "drop",
    "form",
    "gate",
    "gather",
    "induce",
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
]
