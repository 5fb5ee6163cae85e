"""The validation part of a training: cut into batches once, answered after every epoch by all processes together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asapool.data import GraphSet
from asapool.data.batch import Batch
from asapool.kernels.shards import Shard, all_rows
from asapool.models import GraphModel
from asapool.models.batches import cut
from asapool.training.predictions import logits_of, pieces

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Validation:
    """The validation part in pieces; processes take turns with them.

    Batches are cut once and used in every epoch, those of a set that is not in memory anew in every epoch.
    """

    pieces: list[Ints]
    targets: list[Tensor]
    batches: Callable[[], Iterable[Batch]]
    shard: Shard | None

    @classmethod
    def prepare(cls, model: GraphModel, graphs: GraphSet, val: Ints, shard: Shard | None) -> Validation:
        """Cut the graphs named by val; with several processes only the pieces of this one."""
        all_pieces = pieces(graphs, val)
        first, step = (0, 1) if shard is None else shard
        own = all_pieces[first::step]
        held = None if graphs.mapped is not None else [cut(model, graphs, piece) for piece in own]

        def batches() -> Iterable[Batch]:
            return (cut(model, graphs, piece) for piece in own) if held is None else held

        return cls(all_pieces, [graphs.targets(piece) for piece in all_pieces], batches, shard)

    def logits(self, model: GraphModel) -> list[Tensor]:
        """The model's answers, piece by piece."""
        answers = [logits_of(model, batch) for batch in self.batches()]
        if self.shard is None or not self.pieces:
            return answers
        size = self.shard.size
        rows = [[len(piece) for piece in self.pieces[r::size]] for r in range(size)]
        own = torch.cat(answers) if answers else torch.zeros(0, model.num_classes)
        everything = all_rows(own, [sum(counts) for counts in rows], self.shard)
        parts: list[Any] = [None] * len(self.pieces)
        for r, held in enumerate(torch.split(everything, [sum(counts) for counts in rows])):
            parts[r::size] = torch.split(held, rows[r])
        return parts
