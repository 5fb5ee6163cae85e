"""Hierarchy: the explanation of one prediction, in plain arrays that can be saved, drawn and shared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from asapool.data.networkx_objects import network
from asapool.errors import ConfigError, DataError
from asapool.insight.drawing.pictures import save_picture, to_html, to_svg
from asapool.insight.levels import Connectivity, Floats, Ints, Level, connectivity

if TYPE_CHECKING:
    import networkx as nx


FORMAT, VERSION = "asapool.hierarchy", 1
SHOWN = 5  # descriptors that are named
LATER = ("kind", "unit", "answer", "against", "descriptors")  # fields that older files lack
INTEGERS = ("kept", "medoid", "cluster", "member", "source", "target", "target_node", "truth")  # arrays of integers


@dataclass(frozen=True, eq=False, kw_only=True)
class Hierarchy:
    """A graph of N nodes, the clusters of every pooling level, and how much each node mattered.

    importance, each (N,), for the class or task `target`: "attention" = composed attention × fitness, never negative
    and the same for all classes; "gradient" = gradient × input; "occlusion" = the drop when the node is removed;
    "neighbourhood" = occlusion plus the mean drop when its neighbourhoods are removed; "substitution" = the mean drop
    when its neighbourhoods get typical features, plus the drop per node when they are removed. All but the first are in
    log odds, ln p/(1 − p), and negative if a node opposes the class; for a measured value they are in its unit, and
    negative if a node lowers it.

    descriptors: for a model with descriptors, what each adds to the same quantity, compared with its training mean.
    """

    id: str
    data: str  # name of the data set
    method: str
    classes: tuple[str, ...]  # or the tasks, for other targets
    probability: Floats  # (C,), or the value of every task
    target: int  # the explained class or task; by default the predicted class
    nodes: int
    source: Ints  # (E,) edges source[e] → target_node[e] of the original graph
    target_node: Ints  # (E,)
    weight: Floats  # (E,)
    levels: tuple[Level, ...]
    importance: Mapping[str, Floats]
    names: tuple[str, ...] = ()  # of the nodes, such as atom symbols; empty = none
    label: str | None = None  # the true class, if known
    text: str | None = None  # what the graph was made from, such as its SMILES
    truth: Ints | None = field(default=None)  # (N,), 1 = the node is part of the reason for the label
    note: str = ""  # why there are no levels
    against: int | None = None  # the class that importance compares `target` with; None = all others
    kind: str = "classification"  # of the model's target
    unit: str = ""  # of a measured value
    answer: str = ""  # the most probable class, the value of the explained task with its unit, or its yes or no
    descriptors: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.answer:  # files of 0.2.0 have only classes
            object.__setattr__(self, "answer", self.classes[self.predicted])

    def __repr__(self) -> str:
        sizes = " → ".join(str(row.nodes) for row in self.connectivity)
        confidence = "" if self.confidence is None else f" with p = {self.confidence:.3f}"
        return f"Hierarchy({self.id!r}, {self.method}, nodes {sizes}, {self.answer!r}{confidence})"

    @property
    def predicted(self) -> int:
        """Number of the most probable class; for other targets, the explained task."""
        return int(self.probability.argmax()) if self.kind == "classification" else self.target

    @property
    def confidence(self) -> float | None:
        """The probability of the prediction; None for a measured value."""
        if self.kind == "regression":
            return None
        p = float(self.probability[self.predicted])
        return p if self.kind == "classification" or p >= 0.5 else 1 - p

    @property
    def verdict(self) -> str:
        """The prediction and its probability, if it has one."""
        return self.answer if self.confidence is None else f"{self.answer} (p = {self.confidence:.3f})"

    @property
    def shown_label(self) -> str | None:
        """The true class, or a measured value with as many digits as the prediction."""
        measured = self.kind == "regression" and self.label is not None
        return f"{float(str(self.label)):.4g}" if measured else self.label

    @property
    def about(self) -> str:
        """What importance refers to: a class or task, or one class rather than another."""
        name = self.classes[self.target]
        return name if self.against is None else f"{name} rather than {self.classes[self.against]}"

    @property
    def descriptor_note(self) -> str:
        """What the descriptors add, the strongest first; empty for a model without descriptors."""
        if not self.descriptors:
            return ""
        ordered = sorted(self.descriptors.items(), key=lambda item: -abs(item[1]))
        shown = [f"{name} {value:+.3g}".replace(" -", " −") for name, value in ordered[:SHOWN]]
        more = [f"{len(ordered) - SHOWN} more"] if len(ordered) > SHOWN else []
        measured = self.unit or "in the unit of the target"
        unit = measured if self.kind == "regression" else f"log odds of {self.about}"
        return f"Descriptors, compared with their training means: {', '.join([*shown, *more])} ({unit})"

    @property
    def connectivity(self) -> tuple[Connectivity, ...]:
        """Nodes, edges, components and density of the original graph and of every level."""
        first = connectivity(self.nodes, self.source, self.target_node)
        return (first, *(level.connectivity for level in self.levels))

    def assignment(self, level: int) -> Any:
        """How strongly each original node is in each cluster of a level: Ŝ¹ Ŝ² … Ŝˡ, (N, K), a sparse array.

        Columns sum to 1, like those of every Ŝ; level 0 is the original graph, in which every node is its own cluster.
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
        """The graph of a level; nodes have importance at level 0, and fitness, medoid and members at other levels."""
        return to_networkx(self, level)

    def to_svg(self, level: int = 0, colour: str | None = None, width: int = 480) -> str:
        """A picture of a level, coloured by its clusters, or by a kind of importance given as `colour`."""
        return to_svg(self, level, colour, width)

    def save_picture(
        self, path: str | PathLike[str], level: int = 0, colour: str | None = None, width: int = 960
    ) -> None:
        """Write the same picture to a file: .svg, or, with matplotlib, .png or .pdf.

        Args:
            path: the file to write, atomically.
            level: the level whose clusters are drawn; 0 is the graph itself.
            colour: a kind of importance to colour the nodes by, instead of clusters.
            width: width of the picture in pixels.
        """
        save_picture(self, path, level, colour, width)

    def to_png(self, path: str | PathLike[str], level: int = 0, colour: str | None = None, width: int = 960) -> None:
        """The same picture as a PNG file, whatever its name."""
        save_picture(self, path, level, colour, width, "png")

    def _repr_html_(self) -> str:
        return to_html(self)

    def to_json(self) -> str:
        """All fields of Hierarchy and Level as one JSON object, with numbers at full precision.

        A measured value has no classes: in place of `classes`, `probability`, `target`, `label` and `against` there are
        `target` (its name), `prediction` and `measured` (numbers in `unit`) and `predictions` (of all tasks, by name).
        """
        plain: dict[str, Any] = {"format": FORMAT, "version": VERSION}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "levels":
                plain["levels"] = [{g.name: getattr(level, g.name).tolist() for g in fields(Level)} for level in value]
            elif f.name == "importance":
                plain["importance"] = {kind: scores.tolist() for kind, scores in value.items()}
            else:
                plain[f.name] = value.tolist() if isinstance(value, np.ndarray) else value
        return json.dumps(_with_value_keys(plain) if self.kind == "regression" else plain, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Hierarchy:
        """Read the output of to_json; anything else is a DataError."""
        try:
            plain = json.loads(text)
        except ValueError as error:
            raise DataError(f"a hierarchy is JSON, but this is not: {error}") from None
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise DataError(f'a hierarchy has "format": "{FORMAT}". Give the output of Hierarchy.to_json')
        if plain.get("version") != VERSION:
            raise DataError(
                f"the hierarchy has version {plain.get('version')!r}, but this asapool reads {VERSION}. Update asapool"
            )
        try:
            return cls._from_plain(plain)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"the hierarchy is damaged ({type(error).__name__}: {error}). Write it again with to_json"
            ) from None

    @classmethod
    def _from_plain(cls, plain: dict[str, Any]) -> Hierarchy:
        plain = _with_class_keys(plain) if "predictions" in plain else plain
        names = [f.name for f in fields(cls) if f.name in plain or f.name not in LATER]
        values = {name: plain[name] for name in names}
        levels = tuple(
            Level(**{f.name: _array(f.name, level[f.name]) for f in fields(Level)}) for level in plain["levels"]
        )
        for name in ("probability", "source", "target_node", "weight"):
            values[name] = _array(name, plain[name])
        importance = {str(kind): _array("importance", scores) for kind, scores in plain["importance"].items()}
        truth = None if plain["truth"] is None else _array("truth", plain["truth"])
        values |= {"classes": tuple(plain["classes"]), "names": tuple(plain["names"]), "target": int(plain["target"])}
        hierarchy = cls(**values | {"levels": levels, "importance": importance, "truth": truth})
        lengths = {len(scores) for scores in importance.values()}
        if lengths - {hierarchy.nodes} or len(hierarchy.classes) != len(hierarchy.probability):
            raise ValueError("the lists have different lengths")
        return hierarchy


def _with_value_keys(plain: dict[str, Any]) -> dict[str, Any]:
    """The JSON object of a measured value, in which nothing is called a class or a probability."""
    k, label = plain["target"], plain["label"]
    replaced = {
        "classes": {"target": plain["classes"][k], "unit": plain["unit"]},
        "probability": {
            "prediction": plain["probability"][k],
            "measured": None if label is None else float(label),
            "predictions": dict(zip(plain["classes"], plain["probability"], strict=True)),
        },
    }
    left = {"classes", "probability", "target", "label", "against", "unit"}
    values: dict[str, Any] = {}
    for key, value in plain.items():
        values |= replaced.get(key, {} if key in left else {key: value})
    return values


def _with_class_keys(plain: dict[str, Any]) -> dict[str, Any]:
    """The fields of Hierarchy from what _with_value_keys returns."""
    names, measured = list(plain["predictions"]), plain["measured"]
    return plain | {
        "classes": names, "probability": list(plain["predictions"].values()), "target": names.index(plain["target"]),
        "label": None if measured is None else repr(float(measured)),
    }  # fmt: skip


def _array(name: str, values: Any) -> Any:
    return np.array(values, dtype=np.int64 if name in INTEGERS else np.float64)


def to_networkx(hierarchy: Hierarchy, level: int) -> nx.Graph[int]:
    """Level 0: nodes with name, truth and importance. Others: clusters with medoid, fitness, members (original nodes).

    A graph with edges in only one direction, or with two different weights, becomes a DiGraph; edges have their weight.
    """
    if not 0 <= level <= len(hierarchy.levels):
        raise ConfigError(f"level must be 0 to {len(hierarchy.levels)} for graph {hierarchy.id!r}, got {level}")
    if level == 0:
        source, target, weight = hierarchy.source, hierarchy.target_node, hierarchy.weight
        nodes = [_node(hierarchy, v) for v in range(hierarchy.nodes)]
    else:
        here = hierarchy.levels[level - 1]
        source, target, weight = here.source, here.target, here.weight
        nodes = _clusters(hierarchy, level)
    edges = list(zip(source.tolist(), target.tolist(), strict=True))
    about = {"id": hierarchy.id, "level": level, "predicted": hierarchy.answer}
    return network(dict(enumerate(nodes)), edges, weight.tolist(), **about)


def _node(hierarchy: Hierarchy, v: int) -> dict[str, Any]:
    values: dict[str, Any] = {kind: float(scores[v]) for kind, scores in hierarchy.importance.items()}
    if hierarchy.names:
        values["name"] = hierarchy.names[v]
    if hierarchy.truth is not None:
        values["truth"] = int(hierarchy.truth[v])
    return values


def _clusters(hierarchy: Hierarchy, level: int) -> list[dict[str, Any]]:
    here, composed = hierarchy.levels[level - 1], hierarchy.assignment(level).tocsc()
    clusters = []
    for k in range(len(here)):
        span = slice(composed.indptr[k], composed.indptr[k + 1])
        members = dict(zip(composed.indices[span].tolist(), composed.data[span].tolist(), strict=True))
        clusters.append({"medoid": int(here.medoid[k]), "fitness": float(here.kept_fitness[k]), "members": members})
    return clusters
