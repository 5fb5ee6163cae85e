"""How a model is trained: TrainConfig, whose defaults are the authors' schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from asapool.errors import ConfigError, choose

WEIGHTINGS = ("none", "balanced")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of one training.

    >>> TrainConfig(epochs=20).lr_at(50), TrainConfig().lr_at(51)
    (0.01, 0.005)
    """

    epochs: int = 100
    batch_size: int = 128
    lr: float = 0.01  # Adam's learning rate
    weight_decay: float = 5e-4
    lr_step: int = 50  # the learning rate is multiplied by lr_gamma after every lr_step epochs; 0 = never
    lr_gamma: float = 0.5
    class_weights: Literal["none", "balanced"] = "none"  # balanced: a class counts by the inverse of its share
    early_stopping: int | None = None  # stop after this many epochs without a better validation accuracy
    clip: float | None = None  # largest norm of all gradients together
    seed: int = 0  # of the first weights, the order of the graphs and the dropout
    threads: int | None = None  # of torch; None = as torch finds them

    def __post_init__(self) -> None:
        for name, least in (
            ("epochs", 1),
            ("batch_size", 1),
            ("early_stopping", 1),
            ("threads", 1),
            ("lr_step", 0),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if value is None and name in ("early_stopping", "threads"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
                raise ConfigError(f"train.{name} must be a whole number of at least {least}, got {value!r}")
        for name, low in (("lr", False), ("lr_gamma", False), ("weight_decay", True), ("clip", False)):
            value = getattr(self, name)
            if value is None and name == "clip":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ConfigError(f"train.{name} must be a number, got {value!r}")
            if not (0 < value < float("inf") or (low and value == 0)):
                raise ConfigError(f"train.{name} must be {'at least' if low else 'greater than'} 0, got {value!r}")
        choose("train.class_weights", self.class_weights, WEIGHTINGS)

    def lr_at(self, epoch: int) -> float:
        """The learning rate of an epoch; the first epoch is 1."""
        return self.lr if self.lr_step == 0 else self.lr * self.lr_gamma ** ((epoch - 1) // self.lr_step)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON and TOML; what is None is left out, since TOML has no null."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainConfig:
        """The settings of a file; an unknown name is refused.

        >>> TrainConfig.from_dict({"epochs": 5}).epochs
        5
        """
        known = [f.name for f in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigError(f"train.{name} is not a setting. Known are {', '.join(known)}")
        return cls(**values)
