"""The six methods that the paper compares with, on the packed graph."""

from asapool.nn.baselines.coarse import Coarse
from asapool.nn.baselines.diffpool import DiffPooling
from asapool.nn.baselines.selection import SAGPooling, TopKPooling
from asapool.nn.readout import GlobalAttentionPool, Set2SetPool, SortPool

__all__ = [
    "Coarse",
    "DiffPooling",
    "GlobalAttentionPool",
    "SAGPooling",
    "Set2SetPool",
    "SortPool",
    "TopKPooling",
]
