"""The six methods that the paper compares with, on the packed graph."""

from asapool.nn.baselines.coarse import Coarse
from asapool.nn.baselines.diffpool import DiffPooling
from asapool.nn.baselines.global_pools import GlobalAttentionPool, Set2SetPool, SortPool
from asapool.nn.baselines.selection import SAGPooling, TopKPooling

__all__ = [
    "Coarse",
    "DiffPooling",
    "GlobalAttentionPool",
    "SAGPooling",
    "Set2SetPool",
    "SortPool",
    "TopKPooling",
]
