"""Several trained models as one, which predicts the mean of their predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from asapool.errors import CheckpointError
from asapool.kernels import DenseGraph
from asapool.models.classifier import GraphModel
from asapool.models.direct import DirectModel

if TYPE_CHECKING:
    from asapool.data.targets import Target

Join = Callable[[list[Tensor], "list[Target | None]"], Tensor]


class EnsembleModel(GraphModel):
    """The mean prediction of its members: p = (1/N) Σ_n p_n, the probabilities of classes or yes, or measured values.

    Its outputs are chosen so that the usual softmax, sigmoid or scaling gives that mean. The vector of a graph is the
    concatenation of the members' vectors.

    Args:
        members: trained models of one method with the same inputs and outputs.
    """

    def __init__(self, members: Sequence[GraphModel]) -> None:
        first = members[0]
        super().__init__(first.config, first.shape)
        for member in members[1:]:
            if member.config != first.config or member.reads != first.reads or _sizes(member) != _sizes(first):
                raise CheckpointError("the models of an ensemble must have the same settings, inputs and outputs")
        self.descriptors = None  # every member has its own scale
        self.members = nn.ModuleList(members)
        self.reads, self.target = first.reads, first.target

    @property
    def models(self) -> list[GraphModel]:
        """The members."""
        return list(self.members)  # type: ignore[arg-type]

    @property
    def direct(self) -> bool:
        """Whether the members predict from sets of graphs and not from batches."""
        return isinstance(self.members[0], DirectModel)

    def forward(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, **more: Any
    ) -> Tensor:
        """Outputs (B, C) that stand for the mean prediction of the members."""
        return self._join([member(x, ptr, rowptr, col, weight, **more) for member in self.models])

    def padded(self, x: Tensor, graph: DenseGraph, *, graph_attr: Tensor | None = None) -> Tensor:
        """The same outputs (B, C) of a padded batch, x (B, N, F)."""
        return self._join([member.padded(x, graph, graph_attr=graph_attr) for member in self.models])

    def _join(self, outputs: list[Tensor]) -> Tensor:
        kind = "classification" if self.target is None else self.target.kind
        return JOINS[kind](outputs, [member.target for member in self.models])

    def embed(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, **more: Any
    ) -> Tensor:
        """The concatenated vectors of all members, (B, N · W)."""
        return torch.cat([member.embed(x, ptr, rowptr, col, weight, **more) for member in self.models], dim=1)


def _sizes(model: GraphModel) -> tuple[int, ...]:
    return model.shape.in_channels, model.shape.num_classes, model.shape.edge_channels, model.shape.graph_channels


def _classes(outputs: list[Tensor], targets: list[Target | None]) -> Tensor:
    """The log of the mean probability, up to a constant."""
    return torch.stack([o.log_softmax(dim=1) for o in outputs]).logsumexp(dim=0)


def _yes_no(outputs: list[Tensor], targets: list[Target | None]) -> Tensor:
    """The logit of the mean probability."""
    return torch.stack([o.sigmoid() for o in outputs]).mean(dim=0).logit(eps=1e-7)


def _values(outputs: list[Tensor], targets: list[Target | None]) -> Tensor:
    """The mean value, on the scale of the first member; members may have different scales."""
    values = [
        o if t is None else o * o.new_tensor(t.scale) + o.new_tensor(t.mean)
        for o, t in zip(outputs, targets, strict=True)
    ]
    mean, first = torch.stack(values).mean(dim=0), targets[0]
    return mean if first is None else (mean - mean.new_tensor(first.mean)) / mean.new_tensor(first.scale)


JOINS: dict[str, Join] = {"classification": _classes, "multilabel": _yes_no, "regression": _values}
