"""Layers: the pooling operator, its parts, convolutions, norms, readouts and other pooling methods."""

from asapool.kernels.graph import Graph
from asapool.nn.asap import ASAPooling
from asapool.nn.attention import Assignment, DynamicAttention, Master2Token, Source2Token, Token2Token
from asapool.nn.baselines import DiffPooled, DiffPooling, SAGPooling, TopKPooling
from asapool.nn.convolutions import GCN, GIN, GINE, SAGE
from asapool.nn.edge_masks import explainable
from asapool.nn.leconv import BasicLEConv, LEConv
from asapool.nn.norms import GraphNorm, LayerNorm, NodeNorm, normalisation
from asapool.nn.readout import GlobalAttentionPool, Readout, Set2SetPool, SortPool
from asapool.nn.semantics import pyg_state_dict
from asapool.nn.step import Pooled, PooledWithFeatures, PoolStep

__all__ = [
    "GCN",
    "GIN",
    "GINE",
    "SAGE",
    "ASAPooling",
    "Assignment",
    "BasicLEConv",
    "DiffPooled",
    "DiffPooling",
    "DynamicAttention",
    "GlobalAttentionPool",
    "Graph",
    "GraphNorm",
    "LEConv",
    "LayerNorm",
    "Master2Token",
    "NodeNorm",
    "PoolStep",
    "Pooled",
    "PooledWithFeatures",
    "Readout",
    "SAGPooling",
    "Set2SetPool",
    "SortPool",
    "Source2Token",
    "Token2Token",
    "TopKPooling",
    "explainable",
    "normalisation",
    "pyg_state_dict",
]
