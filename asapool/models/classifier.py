"""Graph models: a packed batch of graphs in, one row of logits per graph out, for every method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.data.targets import Target
from asapool.errors import ConfigError, InputError
from asapool.kernels import DenseGraph, Graph
from asapool.kernels.rng import drawing_from
from asapool.models.config import LevelShape, ModelConfig, ModelShape
from asapool.models.encoders import (
    DescriptorScale,
    GlobalEncoder,
    Head,
    HierarchicalEncoder,
    SumEncoder,
    split_graph_attr,
)
from asapool.models.methods import Method, method
from asapool.models.padded import PackedBatch, dense_logits
from asapool.nn.inputs import check_edge_attr
from asapool.nn.step import PoolStep

if TYPE_CHECKING:
    from asapool.data.batch import Batch

Encoder = HierarchicalEncoder | GlobalEncoder | SumEncoder


class GraphModel(nn.Module):
    """The base class of all models: a module that knows its config and its shape, and returns logits.

    Batches are plain tensors, the fields of asapool.data.Batch: x (N, F) float, ptr (B+1,) first node of each graph,
    rowptr (N+1,) and col (E,) the neighbours j of the edges j → i, ascending in each row, weight (E,) or None for ones.

    Models that use further fields of a batch name them in `reads` ("edge_attr" (E, D), "graph_attr" (B, D)) and take
    them as keyword arguments.

    `head_layers` names the layers that turn a graph's vector (`embed`) into logits; the rest is the encoder.

    Args:
        config: the settings.
        shape: the sizes of input and output.
    """

    reads: tuple[str, ...] = ()
    head_layers: tuple[str, ...] = ()
    target: Target | None = None  # what the outputs mean: set by training and by loading; None = classes
    frozen: bool = False  # whether only the head is trained
    origin: str | None = None  # which weights it started from, as a sentence

    def __init__(self, config: ModelConfig, shape: ModelShape) -> None:
        super().__init__()
        self.config, self.shape = config, shape
        self.in_channels, self.num_classes = shape.in_channels, shape.num_classes
        self.typical_nodes = shape.typical_nodes if method(config.method).fixed_size else None
        network = shape.graph_channels > 0 and method(config.method).trainer == "gradient"
        self.descriptors = DescriptorScale(shape.graph_channels) if network else None

    def forward(self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None) -> Tensor:
        """The logits (B, C)."""
        raise NotImplementedError

    def padded(self, x: Tensor, graph: DenseGraph, *, graph_attr: Tensor | None = None) -> Tensor:
        """The logits (B, C) of a padded batch, x (B, N, F): the same up to rounding, with static shapes."""
        raise ConfigError(f"the method {self.config.method!r} works on packed batches only, not on padded ones")

    def packed(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, **more: Any
    ) -> Tensor:
        """The logits (B, C) of a packed batch, computed packed."""
        return self(x, ptr, rowptr, col, weight, **more)  # type: ignore[no-any-return]

    def grouped(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, *,
        edge_attr: Tensor | None = None, graph_attr: Tensor | None = None,
    ) -> Tensor | None:  # fmt: skip
        """The logits (B, C) by the dense backend; None if the model computes this batch packed.

        The dense backend is used if the config says so, or by default on other devices than the CPU.
        """
        if not self.may_pad(x):
            return None
        if self.why_not_padded() is not None:
            return None
        return dense_logits(self, PackedBatch(x, ptr, rowptr, col, weight, edge_attr, graph_attr))

    def may_pad(self, x: Tensor) -> bool:
        """Whether the dense backend may compute a batch on the device of x."""
        return self.config.backend == "dense" or (self.config.backend == "auto" and not x.is_cpu)

    def why_not_padded(self) -> str | None:
        """Why the model cannot read padded batches, as the first half of a sentence; None = it can.

        >>> build(ModelConfig(method="sortpool", hidden=8), in_channels=3, num_classes=2, seed=0).why_not_padded()
        'SortPool ranks the rows of a packed batch'
        """
        entry = method(self.config.method)
        if entry.no_padding is not None:
            return entry.no_padding
        if entry.trainer == "direct":
            return "It is not a neural network"
        if type(self).padded is GraphModel.padded:
            return "Its model has no method `padded`"
        if self.config.assign == "members":
            return 'assign="members" divides nodes among clusters in the rows of a packed batch'
        return None

    def embed(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, **more: Any
    ) -> Tensor:
        """The vector of every graph, (B, W): the input of the head."""
        raise ConfigError(
            f"the method {self.config.method!r} computes no vector of a graph. Use 'asap+' or another network"
        )

    def logits_from(self, vectors: Tensor) -> Tensor:
        """The logits (B, C) of the vectors that `embed` returns."""
        raise ConfigError(f"the method {self.config.method!r} has no head that reads the vector of a graph")

    def freeze_encoder(self) -> None:
        """Train only the head: the encoder keeps its weights and running means, and its dropout is off."""
        if not self.head_layers:
            raise ConfigError(
                f"the method {self.config.method!r} has no head to train alone. Leave --freeze-encoder out"
            )
        self.frozen = True
        for name, weight in self.named_parameters():
            weight.requires_grad_(self.is_head(name))

    def train(self, mode: bool = True) -> GraphModel:
        """Set the mode of all layers; a frozen encoder stays in eval mode."""
        super().train(mode)
        for name, layer in self.named_children() if self.frozen else ():
            if name not in self.head_layers:
                layer.eval()
        return self

    def is_head(self, name: str) -> bool:
        """Whether a weight of that name belongs to the head."""
        return name.split(".", 1)[0] in self.head_layers

    def forward_with_penalty(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, **more: Any
    ) -> tuple[Tensor, Tensor]:
        """The logits (B, C), and the scalar that the method adds to the loss, usually 0."""
        logits = self(x, ptr, rowptr, col, weight, **more)
        return logits, logits.new_zeros(())

    def more(self, batch: Batch) -> dict[str, Any]:
        """The keyword arguments for a batch: the extra fields that the model reads."""
        return {name: getattr(batch, name) for name in self.reads}

    def pack(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None,
        edge_attr: Tensor | None = None,
    ) -> Graph:  # fmt: skip
        """The checked batch as the graph that the layers read."""
        self.check_nodes(x)
        if rowptr.numel() != x.size(0) + 1:
            raise InputError(f"rowptr must have one entry more than x has rows, {x.size(0) + 1}, got {rowptr.numel()}")
        if weight is not None:
            if weight.numel() != col.numel():
                raise InputError(f"weight must hold one number per edge, {col.numel()}, got {weight.numel()}")
            weight = weight.to(x.dtype)
        if edge_attr is not None:
            edge_attr = check_edge_attr(edge_attr, col.numel())
        return kernels.graph_from_rows(
            ptr, rowptr, col, weight, x.dtype, edge_attr=edge_attr, backend=self.config.kernels
        )

    def check_nodes(self, x: Tensor) -> None:
        """Refuse node features of another width."""
        if x.dim() != 2 or x.size(1) != self.in_channels:
            raise InputError(
                f"x must have the shape (nodes, {self.in_channels}) that the model was built for, got {tuple(x.shape)}"
            )


class GraphClassifier(GraphModel):
    """logits = head(r ‖ d), r = encoder(x, A): one vector per graph, with its scaled descriptors, if any.

    Args:
        config: the settings.
        shape: the sizes of input and output.
        encoder: a module with `out_channels` that returns r (B, out_channels) and a penalty or None.
    """

    head_layers = ("head",)

    def __init__(self, config: ModelConfig, shape: ModelShape, encoder: Encoder) -> None:
        super().__init__(config, shape)
        self.reads = ("graph_attr",) * (shape.graph_channels > 0)
        self.encoder = encoder
        self.head = Head(config, encoder.out_channels + shape.graph_channels, shape.num_classes)

    def forward(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, *,
        graph_attr: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """The logits (B, C)."""
        logits = self.grouped(x, ptr, rowptr, col, weight, graph_attr=graph_attr)
        return self.packed(x, ptr, rowptr, col, weight, graph_attr=graph_attr) if logits is None else logits

    def packed(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, **more: Any
    ) -> Tensor:
        """The logits (B, C) of a packed batch, computed packed."""
        return self.logits_from(self.embed(x, ptr, rowptr, col, weight, **more))

    def logits_from(self, vectors: Tensor) -> Tensor:
        """The logits (B, C) of the vectors that `embed` returns."""
        logits: Tensor = self.head(vectors)
        return logits

    def forward_with_penalty(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, **more: Any
    ) -> tuple[Tensor, Tensor]:
        """The logits (B, C), and the scalar that the method adds to the loss: 0 for all but diffpool."""
        grouped = self.grouped(x, ptr, rowptr, col, weight, **more)
        if grouped is not None:  # methods with a penalty are never padded
            return grouped, grouped.new_zeros(())
        r, penalty = self._encode(x, ptr, rowptr, col, weight)
        logits: Tensor = self.head(self._with_descriptors(r, more.get("graph_attr")))
        return logits, logits.new_zeros(()) if penalty is None else penalty

    def padded(self, x: Tensor, graph: DenseGraph, *, graph_attr: Tensor | None = None) -> Tensor:
        """The logits (B, C) of a padded batch, x (B, N, F)."""
        reason = method(self.config.method).no_padding
        if reason is not None:
            raise ConfigError(f"{reason}, so the method {self.config.method!r} works on packed batches only")
        structure = graph.pattern.ptr if isinstance(self.encoder, SumEncoder) else graph
        logits: Tensor = self.head(self._with_descriptors(self.encoder(x, structure)[0], graph_attr))
        return logits

    def embed(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, **more: Any
    ) -> Tensor:
        """The vector of every graph, r ‖ d (B, W)."""
        return self._with_descriptors(self._encode(x, ptr, rowptr, col, weight)[0], more.get("graph_attr"))

    def _with_descriptors(self, r: Tensor, graph_attr: Tensor | None) -> Tensor:
        """r, followed by the scaled descriptors if the model reads them."""
        if self.descriptors is None:
            return r
        _, d = split_graph_attr(graph_attr, r.size(0), 0, self.shape.graph_channels)
        return torch.cat([r, self.descriptors(d).to(r.dtype)], dim=1)

    def hierarchy(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None
    ) -> list[PoolStep]:
        """Every level of a model that forms clusters, finest first: the clusters, which were kept, the pooled graph."""
        steps: list[PoolStep] = []
        if isinstance(self.encoder, HierarchicalEncoder):
            all_steps = self.encoder.steps(x, self.pack(x, ptr, rowptr, col, weight))
            steps = [step for step in all_steps if isinstance(step, PoolStep)]
        if not steps:
            raise ConfigError(
                f"the method {self.config.method!r} forms no clusters around nodes, so it has no hierarchy of them. "
                "Use 'asap'"
            )
        return steps

    def _encode(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        encoded: tuple[Tensor, Tensor | None]
        if isinstance(self.encoder, SumEncoder):
            self.check_nodes(x)
            encoded = self.encoder(x, ptr)
        else:
            encoded = self.encoder(x, self.pack(x, ptr, rowptr, col, weight))
        return encoded


def with_pool(entry: Method, config: ModelConfig, shape: ModelShape) -> GraphClassifier:
    """The classifier around a method's pooling layer: global for the kind "global", hierarchical for the others."""

    def make_pool(level: LevelShape) -> nn.Module:
        return entry.make_pool(config, level)

    encoder: Encoder
    if entry.kind == "global":
        encoder = GlobalEncoder(config, shape.in_channels, make_pool)
    else:
        encoder = HierarchicalEncoder(config, shape.in_channels, make_pool, shape.typical_nodes)
    return GraphClassifier(config, shape, encoder)


def mlp(config: ModelConfig, shape: ModelShape) -> GraphClassifier:
    """The classifier that sums the node features."""
    return GraphClassifier(config, shape, SumEncoder(config, shape.in_channels))


def build(
    config: ModelConfig, in_channels: int, num_classes: int, seed: int | None = None, *,
    typical_nodes: int | None = None, edge_channels: int = 0, graph_channels: int = 0,
) -> GraphModel:  # fmt: skip
    """Make the model that a config describes, with fresh weights; the same seed gives the same bytes.

    Args:
        config: the settings, including the method.
        in_channels: F, features of a node.
        num_classes: C, outputs of the model.
        seed: of the weights; None = they come from torch's global generator, which a seed does not touch.
        typical_nodes: the size of a typical graph, such as the mean of the training set; only methods with a fixed
            number of clusters (diffpool) need it.
        edge_channels: D, features of an edge; only methods that use them need it.
        graph_channels: descriptors of a graph, which the head reads; methods without a network ignore them.

    >>> model = build(ModelConfig(hidden=16), in_channels=3, num_classes=2, seed=0)
    >>> x, ptr = torch.ones(3, 3), torch.tensor([0, 2, 3])  # an edge, and a node alone
    >>> model(x, ptr, rowptr=torch.tensor([0, 1, 2, 2]), col=torch.tensor([1, 0])).shape
    torch.Size([2, 2])
    """
    shape = ModelShape(
        in_channels=in_channels, num_classes=num_classes, typical_nodes=typical_nodes, edge_channels=edge_channels,
        graph_channels=graph_channels,
    )  # fmt: skip
    if seed is None:
        return _make(config, shape)
    with drawing_from(torch.Generator().manual_seed(seed), all_functions=True):
        return _make(config, shape)


def _make(config: ModelConfig, shape: ModelShape) -> GraphModel:
    """The model; refused if it cannot use the backend of the config."""
    entry = method(config.method)
    model = with_pool(entry, config, shape) if entry.build is None else entry.make_model(config, shape)
    if config.backend == "dense":
        reason = model.why_not_padded()
        if reason is not None:
            raise ConfigError(f'{reason}, so model.backend = "dense" does not apply. Use "auto"')
    return model
