"""ModelConfig: all settings of a model, checked on construction."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from asapool.errors import ConfigError, choose
from asapool.kernels import BACKENDS, check_readout
from asapool.kernels.ratio import check_ratio
from asapool.models.methods import WIDEST, method
from asapool.nn.convolutions import CONVOLUTIONS
from asapool.nn.counts import DEEPEST, MOST_BUCKETS
from asapool.nn.norms import NORMS
from asapool.nn.semantics import TABLE

CHOICES: dict[str, tuple[str, ...]] = {
    "conv": tuple(CONVOLUTIONS),
    "semantics": tuple(TABLE),
    "attention": ("m2t", "t2t", "s2t", "dynamic"),
    "assign": ("clusters", "members"),
    "master": ("max", "mean"),
    "fitness": ("leconv", "basic-leconv", "gcn"),
    "aggregate": ("both", "cluster", "none"),
    "backend": (*BACKENDS, "dense"),
    "norm": NORMS,
    "counts": ("none", "wl", "ecfp"),
}
# defaults that a method may override (Method.defaults)
DEFAULTS: dict[str, Any] = {
    "hidden": 64, "levels": 3, "ratio": 0.5, "conv": "gcn", "dropout": 0.5,
    "first_convs": 1, "level_convs": 1, "norm": "none", "residual": False, "readouts": ("mean", "max"),
    "level0": False, "counts": "none", "count_depth": 3, "count_buckets": 2048, "edge_features": False,
    "conv_dropout": 0.0, "count_dropout": 0.0, "readout_dropout": 0.0, "assign": "clusters",
    "readout_bound": 0.0,
}  # fmt: skip
# settings added after version 0.1.0: at their defaults they are left out of files and of the keys of runs, so that both
# are those of 0.1.0
LATER = tuple(DEFAULTS)[5:]
AFTER_PLUS = ("readout_bound",)  # added after the methods with their own defaults, so left out for these as well
# largest values: above them a model does not fit into memory, or takes hours to build
MOST = {
    "hidden": 2**14, "levels": 64, "hops": 64, "set2set_steps": 1000, "first_convs": 64, "level_convs": 64,
    "count_buckets": 2**24,
}  # fmt: skip
FLAGS = ("residual", "level0", "edge_features")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The settings of one graph model. A setting that the method does not use is kept and ignored.

    Some methods have other values than those in DEFAULTS, such as two levels in `asap+`.

    >>> ModelConfig(method="topk", ratio=(0.8, 0.5, 0.5)).ratios
    (0.8, 0.5, 0.5)
    >>> ModelConfig.from_dict({"method": "asap", "hiden": 64})
    Traceback (most recent call last):
    asapool.errors.ConfigError: model.hiden is not a setting; did you mean model.hidden?
    """

    method: str = "asap"  # one of asapool.models.methods
    hidden: int = None  # type: ignore[assignment]  # width of every layer
    levels: int = None  # type: ignore[assignment]  # convolutions, each followed by pooling in the hierarchical methods
    ratio: float | int | tuple[float | int, ...] = None  # type: ignore[assignment]  # fraction of nodes kept, or how many; one, or one per level
    conv: str = None  # type: ignore[assignment]  # one of asapool.nn.convolutions.CONVOLUTIONS
    batch_norm: bool = False  # between a convolution and its ReLU
    jumping: bool = False  # concatenate the readouts of all levels instead of adding them
    dropout: float = None  # type: ignore[assignment]  # before the last layer
    # asap
    attention_dropout: float = 0.0
    semantics: Literal["paper", "authors", "pyg"] = "paper"
    hops: int = 1
    attention: Literal["m2t", "t2t", "s2t", "dynamic"] = "m2t"
    master: Literal["max", "mean"] = "max"
    fitness: Literal["leconv", "basic-leconv", "gcn"] = "leconv"
    aggregate: Literal["both", "cluster", "none"] = "both"
    soft_edges: bool = True
    max_neighbours: int | None = None
    # the other methods
    set2set_steps: int = 5
    attention_transform: bool = False  # global-attention: a linear layer before the weighted sum
    link_weight: float = 1.0  # diffpool: weight of the link prediction loss
    entropy_weight: float = 1.0  # diffpool: weight of the entropy of the assignment
    backend: Literal["auto", "reference", "fused", "dense"] = "auto"  # "dense": padded batches
    assign: Literal["clusters", "members"] = None  # type: ignore[assignment]  # asap: memberships sum to 1 per cluster, or per member
    # asap+ and none+
    first_convs: int = None  # type: ignore[assignment]  # convolutions before the first pooling
    level_convs: int = None  # type: ignore[assignment]  # convolutions after every pooling
    norm: Literal["none", "batch", "graph", "layer"] = None  # type: ignore[assignment]  # after every convolution
    residual: bool = None  # type: ignore[assignment]  # add the input of a convolution to its output
    readouts: tuple[str, ...] = None  # type: ignore[assignment]  # any of mean, max and sum
    level0: bool = None  # type: ignore[assignment]  # also read out the input and the features before the first pooling
    counts: Literal["none", "wl", "ecfp"] = None  # type: ignore[assignment]  # substructure counts besides the readouts
    count_depth: int = None  # type: ignore[assignment]  # depth of the WL subtrees, or radius of ECFP
    count_buckets: int = None  # type: ignore[assignment]  # number of buckets that the counts are hashed into
    edge_features: bool = None  # type: ignore[assignment]  # use edge features if the graphs have any
    conv_dropout: float = None  # type: ignore[assignment]  # after every convolution
    count_dropout: float = None  # type: ignore[assignment]  # of the counts
    readout_dropout: float = None  # type: ignore[assignment]  # of the input of the head
    readout_bound: float = None  # type: ignore[assignment]  # largest normalised readout; 0 = no bound

    @property
    def kernels(self) -> Literal["auto", "reference", "fused"]:
        """The backend of layers on packed batches."""
        return "auto" if self.backend == "dense" else self.backend

    def __post_init__(self) -> None:
        entry = method(self.method, "model.method")
        for name, value in (DEFAULTS | dict(entry.defaults)).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name, allowed in CHOICES.items():
            choose(f"model.{name}", getattr(self, name), allowed)
        for name, most in MOST.items():
            _whole(name, getattr(self, name), most=most)
        _whole("count_depth", self.count_depth, least=0, most=DEEPEST)
        if self.max_neighbours is not None:
            _whole("max_neighbours", self.max_neighbours, most=2**31)
        for name in ("batch_norm", "jumping", "soft_edges", "attention_transform", *FLAGS):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"model.{name} must be true or false, got {getattr(self, name)!r}")
        for name in ("dropout", "attention_dropout", "conv_dropout", "count_dropout", "readout_dropout"):
            self._number(name, below=1.0)
        for name in ("link_weight", "entropy_weight", "readout_bound"):
            self._number(name)
        self._check_ratio()
        try:
            object.__setattr__(self, "readouts", check_readout(self.readouts))
        except ConfigError as error:
            raise ConfigError(f"model.readouts {str(error).removeprefix('readout ')}") from None
        if self.counts == "wl" and self.count_buckets > MOST_BUCKETS:
            raise ConfigError(
                f"model.count_buckets must be at most {MOST_BUCKETS:,} for WL counts, got {self.count_buckets:,}"
            )
        if entry.max_hidden is not None and self.hidden > entry.max_hidden:
            raise ConfigError(
                f"model.hidden must be at most {entry.max_hidden} for {self.method}, whose output may have {WIDEST} "
                f"numbers, got {self.hidden}"
            )

    @property
    def ratios(self) -> tuple[float | int, ...]:
        """The ratio of every level, (levels,)."""
        return self.ratio if isinstance(self.ratio, tuple) else (self.ratio,) * self.levels

    def to_dict(self) -> dict[str, Any]:
        """Plain data for TOML and JSON, all settings in order; None is left out, since TOML has no null."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        left_out = AFTER_PLUS if method(self.method).defaults else LATER
        plain = {name: value for name, value in plain.items() if name not in left_out or value != DEFAULTS[name]}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelConfig:
        """The config from a TOML table; missing settings have their defaults."""
        known = [f.name for f in fields(cls)]
        for name in values:
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)
                raise ConfigError(f"model.{name} is not a setting; did you mean model.{near[0]}?")
        return cls(**values)

    def _check_ratio(self) -> None:
        given: Any = self.ratio
        if isinstance(given, list):  # TOML and JSON have no tuples
            object.__setattr__(self, "ratio", tuple(given))
        if isinstance(self.ratio, tuple) and len(self.ratio) != self.levels:
            raise ConfigError(
                f"model.ratio must be one number, or one per level: {self.levels} levels, got {len(self.ratio)} ratios"
            )
        for ratio in self.ratios:
            try:
                check_ratio(ratio)
            except ConfigError as error:
                raise ConfigError(f"model.{error}") from None

    def _number(self, name: str, below: float | None = None) -> None:
        value = getattr(self, name)
        allowed = "0 or more" if below is None else f"in [0, {below:g})"
        valid = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e30
        if not valid or (below is not None and value >= below):
            raise ConfigError(f"model.{name} must be a number {allowed}, got {value!r}")
        object.__setattr__(self, name, float(value))


def _whole(name: str, value: object, least: int = 1, *, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"model.{name} must be a whole number of at least {least}, got {value!r}")
    if value > most:
        raise ConfigError(f"model.{name} must be at most {most:,}, got {str(value)[:30]}")


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """The sizes of a model's input and output.

    Args:
        in_channels: F, features of a node.
        num_classes: C, outputs of the model.
        typical_nodes: nodes of a typical graph, for methods with a fixed number of clusters.
        edge_channels: D, features of an edge; 0 = none.
        graph_channels: descriptors of a graph that the head reads; 0 = none.
    """

    in_channels: int
    num_classes: int
    typical_nodes: int | None = None
    edge_channels: int = 0
    graph_channels: int = 0

    def __post_init__(self) -> None:
        for name in ("in_channels", "num_classes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r}")
        for name in ("edge_channels", "graph_channels"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigError(f"{name} must be a whole number of at least 0, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class LevelShape:
    """The sizes that one pooling layer is built for.

    Args:
        index: number of the level, from 0; its ratio is config.ratios[index].
        in_channels: input features of the level; after its convolution there are config.hidden.
        typical_nodes: nodes of a typical graph of the data set.
    """

    index: int = 0
    in_channels: int
    typical_nodes: int | None = None
