"""GraphSet: a whole data set of graphs in one packed structure of numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from asapool.data.batch import Batch, Cutter
from asapool.data.check import check
from asapool.data.csr import Bytes, Floats, Ints, pointer, spans
from asapool.data.targets import Target
from asapool.errors import DataError, plural

if TYPE_CHECKING:
    import networkx as nx
    from torch import Tensor
    from torch_geometric.data import Data

    from asapool.data.mapped.arrays import MappedCutter, MappedSelection
    from asapool.data.summary import Summary

IN_MEMORY = 1 << 21  # a subset of a mapped set with up to this many nodes is read into memory; others stay on disk
Indices = Sequence[int] | npt.NDArray[Any] | slice


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphSet:
    """G graphs with N nodes and E edges in total; row i of the CSR lists the neighbours j of the edges j -> i.

    Undirected graphs store both directions; a self-loop is one entry. The arrays are read-only.

    >>> one_edge = GraphSet(x=np.ones((2, 1)), ptr=[0, 2], rowptr=[0, 1, 2], col=[1, 0])
    >>> len(one_edge), one_edge.num_features, one_edge.y.tolist()
    (1, 1, [-1])
    """

    x: Floats  # (N, F)
    ptr: Ints  # (G+1,), first node of each graph
    rowptr: Ints  # (N+1,)
    col: Ints  # (E,), ascending within each row; nodes are numbered through the whole set
    weight: Floats | None = None  # (E,), None = all ones
    # classification: (G,) class number, -1 = no label; else (G, T) float64, NaN = missing; None = all missing
    y: npt.NDArray[Any] = None  # type: ignore[assignment]
    class_names: tuple[str, ...] = ()  # for classification
    target: Target = None  # type: ignore[assignment]  # what y means; None = classification
    feature_names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    named: bool = True  # False = the source has no names for its graphs, and the ids are numbers
    places: Ints = None  # type: ignore[assignment]  # (G,), index in the source, skipped graphs counted; None = 0, 1, …
    truth: Bytes | None = None  # (N,), 1 = the node is part of the reason for the label
    edge_attr: Floats | None = None  # (E, Fe)
    descriptors: Floats | None = None  # (G, D), features of a whole graph for the model's head, NaN = missing
    source_text: tuple[str, ...] | None = None  # what each graph was made from, such as its SMILES
    name: str = "graphs"
    recipe: Mapping[str, Any] = field(default_factory=dict)  # how x was made from the source; plain JSON data
    mapped: MappedSelection | None = None  # where the graphs of a set that is not in memory are (asapool.data.mapped)

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def trusted(cls, **values: Any) -> GraphSet:
        """A set whose arrays come from a checked one and need no second check."""
        graphs = object.__new__(cls)
        for value in values.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        graphs.__dict__.update(values)
        return graphs

    # content

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __repr__(self) -> str:
        return (
            f"GraphSet({self.name!r}, graphs={len(self)}, nodes={len(self.x)}, edges={len(self.col)}, "
            f"features={self.num_features}, "
            + (
                f"classes={self.num_classes})"
                if self.target.kind == "classification"
                else f"{self.target.kind}={self.target.tasks})"
            )
        )

    @property
    def num_features(self) -> int:
        """F, the number of columns of x."""
        return int(self.x.shape[1])

    @property
    def num_classes(self) -> int:
        """Number of classes; 0 if the target is not classification."""
        return len(self.class_names)

    @property
    def labelled(self) -> npt.NDArray[np.bool_]:
        """Which graphs have a label, (G,)."""
        mask: npt.NDArray[np.bool_] = self.y >= 0 if self.y.ndim == 1 else ~np.isnan(self.y).all(axis=1)
        return mask

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content (without name and recipe), the same on every machine and after save and load."""
        from asapool.data.npz import digest

        return digest(self)

    def summary(self) -> Summary:
        """The statistics of the paper's Table 3 for this set, and more."""
        from asapool.data.summary import summarise

        return summarise(self)

    # subsets and batches

    @overload
    def __getitem__(self, index: int) -> Data: ...
    @overload
    def __getitem__(self, index: Indices) -> GraphSet: ...
    def __getitem__(self, index: int | Indices) -> Data | GraphSet:
        """graphs[3] is one graph as PyG's Data; graphs[3:7] and graphs[[5, 1]] are sets."""
        if isinstance(index, (int, np.integer)):
            return self.to_pyg(int(index))
        return self.subset(index)

    def subset(self, indices: Indices) -> GraphSet:
        """The graphs at indices, in that order, as a new set."""
        chosen = self._resolve(indices)
        if self.mapped is not None and int((self.ptr[chosen + 1] - self.ptr[chosen]).sum()) > IN_MEMORY:
            return self._view(chosen)
        first, sizes = self.ptr[chosen], self.ptr[chosen + 1] - self.ptr[chosen]
        begin = self.rowptr[first]
        counts = self.rowptr[first + sizes] - begin
        ptr, eptr = pointer(sizes), pointer(counts)
        nodes, entries = spans(first, sizes), spans(begin, counts)
        rowptr = np.append(self.rowptr[nodes] + np.repeat(eptr[:-1] - begin, sizes), eptr[-1])
        numbers = chosen.tolist()
        return GraphSet.trusted(
            x=self.x.take(nodes, axis=0),
            ptr=ptr,
            rowptr=rowptr,
            col=self.col.take(entries) + np.repeat(ptr[:-1] - first, counts),
            weight=None if self.weight is None else self.weight.take(entries),
            y=self.y.take(chosen, axis=0),
            target=self.target,
            class_names=self.class_names,
            feature_names=self.feature_names,
            ids=tuple([self.ids[i] for i in numbers]),
            named=self.named,
            places=self.places.take(chosen),
            truth=None if self.truth is None else self.truth.take(nodes),
            edge_attr=None if self.edge_attr is None else self.edge_attr.take(entries, axis=0),
            descriptors=None if self.descriptors is None else self.descriptors.take(chosen, axis=0),
            source_text=None if self.source_text is None else tuple([self.source_text[i] for i in numbers]),
            name=self.name,
            recipe=self.recipe,
        )

    def _view(self, chosen: Ints) -> GraphSet:
        """A subset of a mapped set, whose graphs stay on disk."""
        assert self.mapped is not None
        selection = self.mapped.select(chosen)
        return self.with_fields(
            **selection.fields(), mapped=selection, y=self.y.take(chosen, axis=0), places=self.places.take(chosen),
            descriptors=None if self.descriptors is None else self.descriptors.take(chosen, axis=0),
        )  # fmt: skip

    def batch(self, indices: Indices, *, edge_attr: bool = False) -> Batch:
        """The graphs at indices, in that order, as torch tensors; with edge features if requested and present."""
        return self._cutter.cut(self._resolve(indices), edge_attr)

    def targets(self, indices: Indices) -> Tensor:
        """The targets of the graphs at indices, as in their batch: y (B,) int64, or (B, T) float32."""
        return self._cutter.targets(self._resolve(indices))

    @cached_property
    def _cutter(self) -> Cutter | MappedCutter:
        if self.mapped is None:
            return Cutter(self)
        from asapool.data.mapped.arrays import MappedCutter

        return MappedCutter(self.mapped, self.y)

    def entries(self, indices: Ints) -> Ints:
        """Nodes plus edges of each graph, (B,): the entries of A + I, to which the cost of a batch is proportional."""
        if self.mapped is not None:
            _, sizes, _, counts = self.mapped.graphs(indices)
            return sizes + counts
        first, last = self.ptr[indices], self.ptr[indices + 1]
        return self.rowptr[last] - self.rowptr[first] + last - first

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: for a mapped set its folder instead of its graphs."""
        state = {name: value for name, value in self.__dict__.items() if name != "_cutter"}
        if self.mapped is not None:
            for name in ("x", "ptr", "rowptr", "col", "weight", "truth", "edge_attr", "ids", "source_text"):
                del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.mapped is not None:
            self.__dict__.update(self.mapped.fields())

    @staticmethod
    def empty() -> GraphSet:
        """A set without graphs."""
        return GraphSet(x=np.zeros((0, 1)), ptr=[0], rowptr=[0], col=np.zeros(0, np.int64))  # type: ignore[arg-type]

    def renamed(self, name: str) -> GraphSet:
        """The same graphs under another name."""
        return self.with_fields(name=name)

    def with_fields(self, **values: Any) -> GraphSet:
        """The same set with some fields replaced by values that are known to fit."""
        if "class_names" in values and "target" not in values:
            values["target"] = replace(self.target, classes=tuple(values["class_names"]))
        return GraphSet.trusted(**{f.name: getattr(self, f.name) for f in fields(self)} | values)

    def _resolve(self, indices: Indices) -> Ints:
        """Indices as numbers in [0, G); negative ones count from the end, and a mask of G booleans is allowed."""
        if isinstance(indices, slice):
            return np.arange(*indices.indices(len(self)), dtype=np.int64)
        given = np.asarray(indices)
        if given.dtype.kind == "b" and given.shape == (len(self),):
            return np.flatnonzero(given)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise DataError(f"graphs are chosen by a list of whole numbers, got {given.dtype} of shape {given.shape}")
        chosen: Ints = given.astype(np.int64, copy=False)
        if bool((chosen.view(np.uint64) < len(self)).all()):  # read as unsigned, a negative number is huge
            return chosen
        if chosen.min() < -len(self) or chosen.max() >= len(self):
            worst = chosen.max() if chosen.max() >= len(self) else chosen.min()
            raise DataError(f"graph {worst} was requested, but {self.name} has {plural(len(self), 'graph')}")
        return np.where(chosen < 0, chosen + len(self), chosen)

    # conversion to and from other libraries

    def __iter__(self) -> Iterator[Data]:
        return (self.to_pyg(i) for i in range(len(self)))

    def iter_networkx(self) -> Iterator[nx.Graph[int] | nx.DiGraph[int]]:
        """The graphs one after the other as NetworkX objects."""
        return (self.to_networkx(i) for i in range(len(self)))

    def to_pyg(self, i: int) -> Data:
        """Graph i as PyG's Data."""
        from asapool.data.pyg_objects import to_pyg

        return to_pyg(self, i)

    def to_networkx(self, i: int) -> nx.Graph[int] | nx.DiGraph[int]:
        """Graph i as a NetworkX graph (a DiGraph if an edge has no reverse edge)."""
        from asapool.data.networkx_objects import to_networkx

        return to_networkx(self, i)

    @staticmethod
    def from_pyg(data: Sequence[Any], **options: Any) -> GraphSet:
        """A set from a list or data set of PyG's Data; asapool.data.pyg_objects.fields_from_pyg has the options."""
        from asapool.data.pyg_objects import fields_from_pyg

        return GraphSet(**fields_from_pyg(data, **options))

    @staticmethod
    def from_networkx(graphs: Sequence[Any], labels: Sequence[Any] | None = None, **options: Any) -> GraphSet:
        """A set from NetworkX graphs; see asapool.data.networkx_objects.fields_from_networkx for the options."""
        from asapool.data.networkx_objects import fields_from_networkx

        return GraphSet(**fields_from_networkx(graphs, labels, **options))

    # files

    def save(self, path: str | PathLike[str]) -> None:
        """Write the set as an .npz file, atomically."""
        from asapool.data.npz import save

        save(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> GraphSet:
        """Read a set that save wrote."""
        from asapool.data.npz import read

        return read(path, GraphSet)
