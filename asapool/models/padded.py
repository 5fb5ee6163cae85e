"""A model on padded batches: plain dense tensors in, logits out, for ONNX and for devices that want static shapes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asapool.errors import ConfigError
from asapool.kernels import DenseGraph, DensePattern, Padding
from asapool.models.classifier import GraphModel
from asapool.models.direct import DirectModel
from asapool.models.methods import method


class PaddedModel(nn.Module):
    """The logits of a trained model for a padded batch; the same numbers as the model gives, to rounding.

    Entry (b, i, j) of the adjacency is the weight A_ij of the edge j → i of graph b, 0 where there is none. Real nodes
    come first in every graph; what the rows of padding hold does not matter.

    Args:
        model: a trained model, whose weights are shared.

    >>> from asapool.models import ModelConfig, build
    >>> padded = PaddedModel(build(ModelConfig(hidden=8, levels=1), in_channels=3, num_classes=2, seed=0).eval())
    >>> adjacency = torch.tensor([[[0., 1., 0.], [1., 0., 0.], [0., 0., 0.]]])  # one edge, and one row of padding
    >>> padded(torch.ones(1, 3, 3), adjacency, sizes=torch.tensor([2])).shape
    torch.Size([1, 2])
    """

    def __init__(self, model: GraphModel) -> None:
        super().__init__()
        reason = why_not(model)
        if reason is not None:
            raise ConfigError(f"{reason}, so a model of the method {model.config.method!r} cannot read padded batches")
        self.model = model

    def forward(
        self, x: Tensor, adjacency: Tensor, sizes: Tensor, edge_attr: Tensor | None = None,
        graph_attr: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """The logits (B, C).

        Args:
            x: node features (B, N, F).
            adjacency: weights (B, N, N).
            sizes: nodes of each graph (B,), int64.
            edge_attr: edge features (B, N, N, D), for a model that reads them.
            graph_attr: features of each graph (B, D), for a model that reads them.
        """
        padding = Padding(sizes, x.size(1))
        real = padding.mask[:, :, None] & padding.mask[:, None, :]
        weight = torch.where(real, adjacency, 0.0)
        if edge_attr is not None:
            edge_attr = torch.where((weight != 0)[..., None], edge_attr, 0.0)
        x = torch.where(padding.mask[:, :, None], x, 0.0)
        pattern = DensePattern(padding, (weight != 0) | torch.diag_embed(padding.mask))
        return self.model.padded(x, DenseGraph(pattern, weight, edge_attr), graph_attr=graph_attr)


def why_not(model: GraphModel) -> str | None:
    """Why a model cannot read padded batches, as the first half of a sentence; None = it can.

    >>> from asapool.models import ModelConfig, build
    >>> why_not(build(ModelConfig(method="sortpool", hidden=8), in_channels=3, num_classes=2, seed=0))
    'SortPool ranks the rows of a packed batch'
    """
    entry = method(model.config.method)
    if entry.no_padding is not None:
        return entry.no_padding
    if isinstance(model, DirectModel):
        return "It is no network of tensors"
    if type(model).padded is GraphModel.padded:
        return "Its model has no method `padded`"
    if getattr(model.config, "assign", "clusters") == "members":
        return 'assign="members" divides nodes among clusters in the rows of a packed batch'
    return None
