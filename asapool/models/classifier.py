"""GraphClassifier: a packed batch of graphs in, one row of logits per graph out, for every method."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError, InputError
from asapool.kernels import Graph
from asapool.models.blocks import Head
from asapool.models.catalog import kind_of
from asapool.models.config import ModelConfig
from asapool.models.global_pooling import GlobalEncoder, SumEncoder
from asapool.models.hierarchical import HierarchicalEncoder
from asapool.nn.step import PoolStep


class GraphClassifier(nn.Module):
    """logits = head(encoder(x, A)): the encoder makes one row of numbers per graph, the head reads it.

    Batches are plain tensors, the fields of asapool.data.Batch: x (N, F) float, ptr (B+1,) first node of each graph,
    rowptr (N+1,) and col (E,) the neighbours j of the edges j → i, ascending in each row, weight (E,) or None for ones.
    """

    def __init__(
        self, config: ModelConfig, in_channels: int, num_classes: int, typical_nodes: int | None = None
    ) -> None:
        super().__init__()
        for name, value in (("in_channels", in_channels), ("num_classes", num_classes)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r}")
        self.config, self.in_channels, self.num_classes = config, in_channels, num_classes
        self.typical_nodes = typical_nodes if config.method == "diffpool" else None
        self.encoder: HierarchicalEncoder | GlobalEncoder | SumEncoder
        if config.method == "mlp":
            self.encoder = SumEncoder(config, in_channels)
        elif kind_of(config.method) == "global":
            self.encoder = GlobalEncoder(config, in_channels)
        else:
            self.encoder = HierarchicalEncoder(config, in_channels, typical_nodes)
        self.head = Head(config, self.encoder.out_channels, num_classes)

    def forward(self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None) -> Tensor:
        """The logits (B, C)."""
        logits: Tensor = self.head(self._encode(x, ptr, rowptr, col, weight)[0])
        return logits

    def forward_with_penalty(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The logits (B, C), and the scalar that the method adds to the loss: 0 for all but diffpool."""
        r, penalty = self._encode(x, ptr, rowptr, col, weight)
        logits: Tensor = self.head(r)
        return logits, logits.new_zeros(()) if penalty is None else penalty

    def hierarchy(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None
    ) -> list[PoolStep]:
        """Every level of an asap model, finest first: the clusters, what was kept, and the graph after it."""
        if self.config.method != "asap" or not isinstance(self.encoder, HierarchicalEncoder):
            raise ConfigError(f"only 'asap' has a hierarchy of clusters, this model's method is {self.config.method!r}")
        steps = self.encoder.steps(x, self._pack(x, ptr, rowptr, col, weight))
        return [step for step in steps if isinstance(step, PoolStep)]

    def _encode(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        if isinstance(self.encoder, SumEncoder):
            self._check(x)
            found: tuple[Tensor, Tensor | None] = self.encoder(x, ptr)
        else:
            found = self.encoder(x, self._pack(x, ptr, rowptr, col, weight))
        return found

    def _pack(self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None) -> Graph:
        self._check(x)
        if rowptr.numel() != x.size(0) + 1:
            raise InputError(f"rowptr must have one entry more than x has rows, {x.size(0) + 1}, got {rowptr.numel()}")
        if weight is not None:
            if weight.numel() != col.numel():
                raise InputError(f"weight must hold one number per edge, {col.numel()}, got {weight.numel()}")
            weight = weight.to(x.dtype)
        return kernels.graph_from_rows(ptr, rowptr, col, weight, x.dtype, backend=self.config.backend)

    def _check(self, x: Tensor) -> None:
        if x.dim() != 2 or x.size(1) != self.in_channels:
            raise InputError(
                f"x must have the shape (nodes, {self.in_channels}) that the model was built for, got {tuple(x.shape)}"
            )


def build(
    config: ModelConfig, in_channels: int, num_classes: int, seed: int | None = None, *,
    typical_nodes: int | None = None,
) -> GraphClassifier:  # fmt: skip
    """Make the classifier that a config describes, with fresh weights; the same seed gives the same bytes.

    typical_nodes: the size of a typical graph, such as the mean of the training set; only diffpool needs it, whose
    number of clusters is fixed. Without a seed the weights come from torch's own generator, which a seed leaves alone.

    >>> model = build(ModelConfig(hidden=16), in_channels=3, num_classes=2, seed=0)
    >>> x, ptr = torch.ones(3, 3), torch.tensor([0, 2, 3])  # an edge, and a node alone
    >>> model(x, ptr, rowptr=torch.tensor([0, 1, 2, 2]), col=torch.tensor([1, 0])).shape
    torch.Size([2, 2])
    """
    if seed is None:
        return GraphClassifier(config, in_channels, num_classes, typical_nodes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GraphClassifier(config, in_channels, num_classes, typical_nodes)
