"""Mapped arrays that act like the arrays of a GraphSet: they know their shape, and decode entries on access.

A `Stored` is the open folder. Its arrays number nodes within their graph, so that any selection of graphs, in any
order, is a set too: a `MappedSelection` has the indices of its graphs, and the virtual arrays find node i by its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from asapool.data.batch import Batch
from asapool.data.csr import Ints, pointer, spans

if TYPE_CHECKING:
    from torch import Tensor


BLOCK = 1 << 20  # entries that are decoded at a time if all are needed


class Virtual(np.lib.mixins.NDArrayOperatorsMixin):
    """An array whose entries are computed on access.

    Indexing and take compute only what they return; anything else (np.asarray, arithmetic, array methods) computes the
    whole array in memory.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, compute: Callable[[Ints], npt.NDArray[Any]]) -> None:
        self.shape, self.dtype, self.compute = shape, np.dtype(dtype), compute
        self.ndim, self.size = len(shape), int(np.prod(shape))
        self.itemsize, self.nbytes = self.dtype.itemsize, self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, indices: npt.ArrayLike, axis: int = 0) -> npt.NDArray[Any]:
        """The entries (or rows) at indices."""
        return self.compute(np.asarray(indices, np.int64))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self.compute(np.arange(*key.indices(len(self))))
        if isinstance(key, (int, np.integer)):
            return self.compute(np.array([key + len(self) if key < 0 else key]))[0]
        if isinstance(key, np.ndarray) and key.dtype.kind == "b":
            return self.compute(np.flatnonzero(key))
        if isinstance(key, tuple):
            return self[key[0]][(slice(None), *key[1:])]
        return self.compute(np.asarray(key, np.int64))

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """The whole array, some rows at a time."""
        step = max(1, BLOCK // max(1, self.size // max(1, len(self))))
        for start in range(0, len(self), step):
            yield self.compute(np.arange(start, min(start + step, len(self))))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        parts = list(self.blocks())
        whole = np.concatenate(parts) if parts else np.zeros(self.shape, self.dtype)
        return whole.astype(self.dtype if dtype is None else dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(np.asarray(i) if isinstance(i, Virtual) else i for i in inputs), **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


class Texts(Sequence[str]):
    """Texts in one block of UTF-8 bytes; `chosen` has the indices of a selection."""

    def __init__(self, content: npt.NDArray[np.uint8], offsets: Ints, chosen: Ints | None = None) -> None:
        self.content, self.offsets, self.chosen = content, offsets, chosen

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.chosen is None else len(self.chosen)

    @overload
    def __getitem__(self, key: int) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[str, ...]: ...
    def __getitem__(self, key: int | slice) -> str | tuple[str, ...]:
        if isinstance(key, slice):
            return tuple(self[k] for k in range(*key.indices(len(self))))
        k = int(key) + (len(self) if key < 0 else 0)
        if not 0 <= k < len(self):
            raise IndexError(f"text {key} was requested, but there are {len(self)}")
        k = k if self.chosen is None else int(self.chosen[k])
        return bytes(self.content[self.offsets[k] : self.offsets[k + 1]]).decode()

    def __iter__(self) -> Iterator[str]:
        return (self[k] for k in range(len(self)))


class MappedSelection:
    """Some of the graphs of a stored set (all by default), as the arrays of a GraphSet."""

    def __init__(self, stored: Any, chosen: Ints | None = None) -> None:
        self.stored, self.chosen = stored, chosen

    def graphs(self, indices: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """First node, number of nodes, first edge and number of edges of some graphs, in the files."""
        at = indices if self.chosen is None else self.chosen[indices]
        first, begin = self.stored.ptr[at], self.stored.eptr[at]
        return first, self.stored.ptr[at + 1] - first, begin, self.stored.eptr[at + 1] - begin

    def select(self, indices: Ints) -> MappedSelection:
        """Some of the graphs of this selection."""
        return MappedSelection(self.stored, indices if self.chosen is None else self.chosen[indices])

    @cached_property
    def ptr(self) -> Ints:
        """(G+1,) first node of each graph of the selection."""
        whole: Ints = self.stored.ptr
        return whole if self.chosen is None else pointer(np.diff(whole)[self.chosen])

    @cached_property
    def eptr(self) -> Ints:
        """(G+1,) first edge of each graph of the selection."""
        whole: Ints = self.stored.eptr
        return whole if self.chosen is None else pointer(np.diff(whole)[self.chosen])

    def fields(self) -> dict[str, Any]:
        """The GraphSet fields that are not in memory."""
        N, E, stored = int(self.ptr[-1]), int(self.eptr[-1]), self.stored
        width = stored.widths

        def rows(name: str, n: int, place: Callable[[Ints], Ints]) -> Virtual | None:
            if name not in width:
                return None
            return Virtual((n, width[name]), np.float32, lambda at: stored.rows(name, place(at)))

        weight = truth = None
        if "weight" in width:
            weight = Virtual((E,), np.float32, lambda at: stored.rows("weight", self.edges(at)).reshape(-1))
        if "truth" in stored.files:
            truth = Virtual((N,), np.int8, lambda at: stored.array("truth").take(self.nodes(at)))
        return {
            "x": rows("x", N, self.nodes),
            "ptr": self.ptr,
            "rowptr": Virtual((N + 1,), np.int64, self._rowptr),
            "col": Virtual((E,), np.int64, self._col),
            "weight": weight,
            "truth": truth,
            "edge_attr": rows("edge_attr", E, self.edges),
            "ids": self._texts("ids"),
            "source_text": self._texts("source_text"),
        }

    def _texts(self, name: str) -> Texts | None:
        if name not in self.stored.files:
            return None
        return Texts(self.stored.array(name), self.stored.array(f"{name}_ptr"), self.chosen)

    def nodes(self, at: Ints) -> Ints:
        """The positions of nodes of the selection in the files."""
        return self._place(at, self.ptr, self.stored.ptr)

    def edges(self, at: Ints) -> Ints:
        """The positions of edges of the selection in the files."""
        return self._place(at, self.eptr, self.stored.eptr)

    def _place(self, at: Ints, pointers: Ints, all_pointers: Ints) -> Ints:
        if self.chosen is None:
            return at
        graph = _owner(pointers, at)
        return at - pointers[graph] + all_pointers[self.chosen[graph]]

    def _rowptr(self, at: Ints) -> Ints:
        result = np.full(len(at), self.eptr[-1])
        inside = at < self.ptr[-1]
        graph = _owner(self.ptr, at[inside])
        result[inside] = self.eptr[graph] + self.stored.array("start").take(self.nodes(at[inside]))
        return result

    def _col(self, at: Ints) -> Ints:
        local: Ints = self.stored.array("local").take(self.edges(at))
        return self.ptr[_owner(self.eptr, at)] + local

    def __reduce__(self) -> tuple[Any, ...]:
        return MappedSelection, (self.stored, self.chosen)


def _owner(ptr: Ints, at: Ints) -> Ints:
    """The graph that nodes or edges belong to."""
    return np.searchsorted(ptr, at, side="right") - 1


class MappedCutter:
    """As asapool.data.batch.Cutter, for a selection of a mapped set with the labels y."""

    def __init__(self, selection: MappedSelection, y: npt.NDArray[np.float64]) -> None:
        self.selection, self.y = selection, y

    def cut(self, indices: Ints, edge_attr: bool = False) -> Batch:
        """The graphs at indices (B,), in that order."""
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
        """y of the graphs at indices."""
        from torch import from_numpy

        y = self.y.take(indices, axis=0)
        return from_numpy(y if y.ndim == 1 else y.astype(np.float32))
