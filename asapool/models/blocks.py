"""The two blocks all classifiers are made of: a convolution with its ReLU, and the layers behind the last pooling."""

from __future__ import annotations

from torch import Tensor, nn

from asapool.kernels import Graph
from asapool.models.config import ModelConfig
from asapool.nn.convolutions import convolution
from asapool.nn.dropout import Dropout
from asapool.nn.norms import NodeNorm
from asapool.nn.semantics import semantics_named


class ConvBlock(nn.Module):
    """x' = ReLU(norm(conv(x, graph))), norm only if the config asks for it."""

    def __init__(self, config: ModelConfig, in_channels: int) -> None:
        super().__init__()
        self.conv = convolution(
            config.conv,
            in_channels,
            config.hidden,
            relu=not config.batch_norm,
            loops=semantics_named(config.semantics).loops,
            backend=config.kernels,
        )
        self.norm = NodeNorm(config.hidden) if config.batch_norm else None

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """x (N, in) of a packed graph, or (B, N, in) of a padded one; returns (…, hidden)."""
        x = self.conv(x, graph)
        return x if self.norm is None else self.norm(x, graph.pattern.ptr).relu()


class Head(nn.Module):
    """From the summary of a graph to its logits: W₂ dropout(ReLU(W₁ r))."""

    def __init__(self, config: ModelConfig, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.lin1 = nn.Linear(in_channels, config.hidden)
        self.dropout = Dropout(config.dropout)
        self.lin2 = nn.Linear(config.hidden, num_classes)

    def forward(self, r: Tensor) -> Tensor:
        """r (B, in); returns the logits (B, C)."""
        logits: Tensor = self.lin2(self.dropout(self.lin1(r).relu()))
        return logits
