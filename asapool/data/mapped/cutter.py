"""Mini-batches from a mapped set: the graphs of a batch are read from disk, nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from asapool.data.batch import Batch
from asapool.data.csr import Ints, pointer, spans

if TYPE_CHECKING:
    from torch import Tensor

    from asapool.data.mapped.arrays import Selection


class MappedCutter:
    """As asapool.data.batch.Cutter, for a selection of a mapped set with the labels y."""

    def __init__(self, selection: Selection, y: npt.NDArray[np.float64]) -> None:
        self.selection, self.y = selection, y

    def cut(self, indices: Ints, edge_attr: bool = False) -> Batch:
        """The graphs named by indices (B,), in that order."""
        from torch import from_numpy

        stored = self.selection.stored
        stored.check_unchanged()
        first, sizes, begin, counts = self.selection.graphs(indices)
        ptr, eptr = pointer(sizes), pointer(counts)
        nodes, entries = spans(first, sizes), spans(begin, counts)
        rowptr = np.append(eptr[:-1].repeat(sizes) + stored.array("start").take(nodes), eptr[-1])
        weight = stored.rows("weight", entries).reshape(-1) if "weight" in stored.widths else None
        wanted = edge_attr and "edge_attr" in stored.widths
        return Batch(
            x=from_numpy(stored.rows("x", nodes)),
            ptr=from_numpy(ptr),
            rowptr=from_numpy(rowptr),
            col=from_numpy(ptr[:-1].repeat(counts) + stored.array("local").take(entries)),
            weight=None if weight is None else from_numpy(weight),
            y=self.targets(indices),
            edge_attr=from_numpy(stored.rows("edge_attr", entries)) if wanted else None,
        )

    def targets(self, indices: Ints) -> Tensor:
        """y of the graphs named by indices."""
        from torch import from_numpy

        y = self.y.take(indices, axis=0)
        return from_numpy(y if y.ndim == 1 else y.astype(np.float32))
