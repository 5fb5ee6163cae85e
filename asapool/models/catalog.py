"""The methods by name, with what each does and where it is from: what `asapool methods` lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from asapool.errors import choose

Kind = Literal["hierarchical", "global", "sanity"]


@dataclass(frozen=True)
class MethodInfo:
    """One row of the list."""

    name: str
    kind: Kind
    sentence: str
    paper: str


_LIST = (
    MethodInfo(
        "asap",
        "hierarchical",
        "Forms a cluster around every node by attention, keeps those that stand out, and joins them by their overlap.",
        "Ranjan, Sanyal, Talukdar: ASAP: Adaptive Structure Aware Pooling, AAAI 2020",
    ),
    MethodInfo(
        "topk",
        "hierarchical",
        "Keeps the nodes that lie furthest along one learned direction.",
        "Gao, Ji: Graph U-Nets, ICML 2019",
    ),
    MethodInfo(
        "sagpool",
        "hierarchical",
        "Keeps the nodes to which a graph convolution gives the highest score.",
        "Lee, Lee, Kang: Self-Attention Graph Pooling, ICML 2019",
    ),
    MethodInfo(
        "diffpool",
        "hierarchical",
        "Assigns every node softly to a fixed number of clusters, with a link prediction and an entropy loss.",
        "Ying et al.: Hierarchical Graph Representation Learning with Differentiable Pooling, NeurIPS 2018",
    ),
    MethodInfo(
        "set2set",
        "global",
        "Reads all nodes several times by an attention that an LSTM steers.",
        "Vinyals, Bengio, Kudlur: Order Matters: Sequence to Sequence for Sets, ICLR 2016",
    ),
    MethodInfo(
        "global-attention",
        "global",
        "Sums all nodes by one learned attention.",
        "Li et al.: Gated Graph Sequence Neural Networks, ICLR 2016",
    ),
    MethodInfo(
        "sortpool",
        "global",
        "Sorts the nodes by their last feature and reads the first few side by side.",
        "Zhang et al.: An End-to-End Deep Learning Architecture for Graph Classification, AAAI 2018",
    ),
    MethodInfo(
        "none",
        "sanity",
        "Convolves without pooling and reads out after every layer: what pooling has to beat.",
        "Lee, Lee, Kang: Self-Attention Graph Pooling, ICML 2019 (the architecture, without its pooling)",
    ),
    MethodInfo(
        "mlp",
        "sanity",
        "Sums the node features and never looks at an edge: what structure has to beat.",
        "Errica et al.: A Fair Comparison of Graph Neural Networks for Graph Classification, ICLR 2020",
    ),
)


def methods() -> list[MethodInfo]:
    """All methods, in the order of the paper's table, then the two sanity rows.

    >>> [method.name for method in methods() if method.kind == "global"]
    ['set2set', 'global-attention', 'sortpool']
    """
    return list(_LIST)


def kind_of(name: str) -> Kind:
    """Hierarchical, global or sanity.

    >>> kind_of("asap")
    'hierarchical'
    """
    table = {method.name: method.kind for method in _LIST}
    return table[choose("method", name, tuple(table))]
