"""Hierarchy: all that a model decided about one graph, in plain arrays that can be kept, drawn and shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

from asapool.errors import ConfigError
from asapool.insight.level import Connectivity, Floats, Ints, Level, connectivity

if TYPE_CHECKING:
    import networkx as nx

KINDS = ("attention", "gradient", "occlusion")


@dataclass(frozen=True, eq=False, kw_only=True)
class Hierarchy:
    """A graph of N nodes, the clusters it was pooled to level by level, and how much each node mattered.

    importance, each (N,), for the class `target`: "attention" = composed attention × fitness, never negative and the
    same for all classes; "gradient" = gradient × input; "occlusion" = what the answer loses without the node. The last
    two are in units of log odds, ln p/(1 − p), and negative where a node speaks against the class.
    """

    id: str
    data: str  # name of the set the graph is from
    method: str
    classes: tuple[str, ...]
    probability: Floats  # (C,)
    target: int  # the class that importance is about; the predicted one unless another was asked for
    nodes: int
    source: Ints  # (E,) edges source[e] → target_node[e] of the original graph
    target_node: Ints  # (E,)
    weight: Floats  # (E,)
    levels: tuple[Level, ...]
    importance: Mapping[str, Floats]
    names: tuple[str, ...] = ()  # of the nodes, such as atom symbols; empty = none
    label: str | None = None  # the true class, where it is known
    text: str | None = None  # what the graph was made from, such as its SMILES
    truth: Ints | None = field(default=None)  # (N,), 1 = the node is part of the reason for the label
    note: str = ""  # why there are no levels

    def __repr__(self) -> str:
        sizes = " → ".join(str(row.nodes) for row in self.connectivity)
        return f"Hierarchy({self.id!r}, {self.method}, nodes {sizes}, {self.answer!r} with p = {self.confidence:.3f})"

    @property
    def predicted(self) -> int:
        """Number of the most probable class."""
        return int(self.probability.argmax())

    @property
    def answer(self) -> str:
        """Name of the most probable class."""
        return self.classes[self.predicted]

    @property
    def confidence(self) -> float:
        """Its probability."""
        return float(self.probability[self.predicted])

    @property
    def connectivity(self) -> tuple[Connectivity, ...]:
        """Nodes, edges, components and density of the original graph and of every level."""
        first = connectivity(self.nodes, self.source, self.target_node)
        return (first, *(level.connectivity for level in self.levels))

    def assignment(self, level: int) -> Any:
        """How strongly each original node is in each cluster of a level: Ŝ¹ Ŝ² … Ŝˡ, (N, K), a sparse array.

        Columns sum to 1, as those of every Ŝ do; level 0 is the original graph, in which every node is its own cluster.
        """
        from scipy.sparse import csr_array, eye_array

        if not 0 <= level <= len(self.levels):
            more = f" {self.note}" if self.note else ""
            raise ConfigError(f"level must be 0 to {len(self.levels)} for graph {self.id!r}, got {level}.{more}")
        composed = csr_array(eye_array(self.nodes))
        for step in self.levels[:level]:
            composed = composed @ step.S
        return composed

    def to_networkx(self, level: int = 0) -> nx.Graph[int]:
        """The graph of a level; level 0 carries importance, the others fitness, medoid and members of every cluster."""
        from asapool.insight.networkx_view import to_networkx

        return to_networkx(self, level)

    def to_json(self) -> str:
        """Everything as one JSON text, which from_json reads."""
        from asapool.insight.json_text import to_json

        return to_json(self)

    @staticmethod
    def from_json(text: str) -> Hierarchy:
        """Read what to_json wrote."""
        from asapool.insight.json_text import from_json

        return from_json(text)

    def to_svg(self, level: int = 0, colour: str | None = None, width: int = 480) -> str:
        """A picture of a level: its clusters in colour, or, with a kind of importance as colour, the nodes by that."""
        from asapool.insight.drawing import to_svg

        return to_svg(self, level, colour, width)

    def to_png(self, path: str | PathLike[str], level: int = 0, colour: str | None = None, width: int = 960) -> None:
        """The same picture as a PNG file."""
        from asapool.insight.drawing import to_png

        to_png(self, path, level, colour, width)

    def _repr_html_(self) -> str:
        from asapool.insight.drawing import to_html

        return to_html(self)
