"""Layers: the pooling operator, its parts, and what stands around it."""

from asapool.kernels.graph import Graph
from asapool.nn.asap import ASAPooling
from asapool.nn.attention import Assignment, Master2Token, Source2Token, Token2Token
from asapool.nn.gcn import GCN
from asapool.nn.leconv import BasicLEConv, LEConv
from asapool.nn.readout import Readout
from asapool.nn.step import Pooled, PoolStep

__all__ = [
    "GCN",
    "ASAPooling",
    "Assignment",
    "BasicLEConv",
    "Graph",
    "LEConv",
    "Master2Token",
    "PoolStep",
    "Pooled",
    "Readout",
    "Source2Token",
    "Token2Token",
]
