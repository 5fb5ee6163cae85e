"""Method: one entry of the registry of methods (asapool.models.methods)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from asapool.errors import ConfigError, choose

if TYPE_CHECKING:
    from torch import nn

    from asapool.models.classifier import GraphModel
    from asapool.models.config import LevelShape, ModelConfig, ModelShape

    BuildModel = Callable[[ModelConfig, ModelShape], GraphModel]
    BuildPool = Callable[[ModelConfig, LevelShape], nn.Module]

Kind = Literal["hierarchical", "global", "sanity", "baseline"]
Trainer = Literal["gradient", "direct"]


@dataclass(frozen=True, kw_only=True)
class Method:
    """One method: what it is, how its model is built and how it is fitted.

    Exactly one of `pool` and `build` is given, as a function or as the string "module:function".

    Args:
        name: what `--method` takes.
        kind: "hierarchical" (convolve, pool, read out, level by level), "global" (all convolutions, then one pooling),
            "sanity" (a network without pooling or edges) or "baseline" (no network).
        sentence: what it does, in one sentence.
        paper: where it is from.
        pool: `pool(config, level)` returns the pooling layer of one level (hierarchical, sanity) or the only one
            (global); the package adds convolutions, readout and head.
        build: `build(config, shape)` returns the whole model, a `GraphModel`.
        no_levels: why an explanation shows no levels, as the first half of a sentence; None = it shows them.
        no_padding: why the model cannot read padded batches and so cannot be exported to ONNX, as the first half of a
            sentence; None = it can.
        trainer: "gradient" (by Adam) or "direct" (a `DirectModel`, which fits itself).
        max_hidden: largest allowed model.hidden.
        molecules_only: the model reads SMILES, so other graphs are refused.
        fixed_size: the model is made for graphs of a typical size, so build() needs typical_nodes.
        defaults: model settings with another default in this method (see models.config.DEFAULTS).
        schedule: training settings with another default in this method.
        builtin: part of asapool itself.

    >>> from asapool.models.methods import method
    >>> method("topk").kind, method("topk").trainer
    ('hierarchical', 'gradient')
    """

    name: str
    kind: Kind
    sentence: str
    paper: str
    pool: BuildPool | str | None = None
    build: BuildModel | str | None = None
    no_levels: str | None = None
    no_padding: str | None = None
    trainer: Trainer = "gradient"
    max_hidden: int | None = None
    molecules_only: bool = False
    fixed_size: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    schedule: Mapping[str, Any] = field(default_factory=dict)
    builtin: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or "," in self.name:
            raise ConfigError(f"a method needs a name without commas, got {self.name!r}")
        choose(f"kind of the method {self.name}", self.kind, get_args(Kind))
        choose(f"trainer of the method {self.name}", self.trainer, get_args(Trainer))
        if (self.pool is None) == (self.build is None):
            raise ConfigError(f"the method {self.name} needs either pool or build")
        if self.pool is not None and self.kind == "baseline":
            raise ConfigError(f"the method {self.name} is of kind 'baseline', which needs build and not pool")

    def make_model(self, config: ModelConfig, shape: ModelShape) -> GraphModel:
        """The whole model that `build` makes, with fresh weights."""
        if self.build is None:
            raise ConfigError(f"the method {self.name} has pool and not build, so it has no model builder")
        return cast("BuildModel", _resolve(self.build))(config, shape)

    def make_pool(self, config: ModelConfig, level: LevelShape) -> nn.Module:
        """The pooling layer of one level."""
        if self.pool is None:
            raise ConfigError(f"the method {self.name} has no pooling layer")
        return cast("BuildPool", _resolve(self.pool))(config, level)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {name: getattr(self, name) for name in ("name", "kind", "sentence", "paper", "trainer", "builtin")}


def _resolve(builder: Any) -> Any:
    """The function itself, or the one that "module:function" names."""
    if not isinstance(builder, str):
        return builder
    module, _, name = builder.partition(":")
    return getattr(import_module(module), name)
