"""Run: everything that determines one training run and its scores; asapool.experiments.fold carries it out."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from asapool.errors import ConfigError, DataError, choose
from asapool.experiments.protocols import PROTOCOLS, SplitFile
from asapool.models.config import ModelConfig
from asapool.models.content import MEMBERS
from asapool.training.config import TrainConfig

if TYPE_CHECKING:
    from asapool.data import GraphSet, Split

PRUNED = "pruned"  # prefix of the failure message of a pruned Run

# The settings of Runs in 0.1.0, with their defaults. They are part of every key; later settings only if they are
# not at their default, so that old records keep their keys.
FIRST_MODEL: dict[str, Any] = {
    "method": "asap", "hidden": 64, "levels": 3, "ratio": 0.5, "conv": "gcn", "batch_norm": False, "jumping": False,
    "dropout": 0.5, "attention_dropout": 0.0, "semantics": "paper", "hops": 1, "attention": "m2t", "master": "max",
    "fitness": "leconv", "aggregate": "both", "soft_edges": True, "set2set_steps": 5, "attention_transform": False,
    "link_weight": 1.0, "entropy_weight": 1.0, "backend": "auto",
}  # fmt: skip
FIRST_TRAIN: dict[str, Any] = {
    "epochs": 100, "batch_size": 128, "lr": 0.01, "weight_decay": 5e-4, "lr_step": 50, "lr_gamma": 0.5,
    "class_weights": "none",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training run: a data set, a model, training settings, a seed and the number of the test fold.

    The seed and threads of `train` are ignored (the seed is derived from seed and fold, the number of threads is 1).

    Args:
        data: Name of the data set.
        fingerprint: Of its content.
        model: The classifier.
        train: The training settings.
        seed: For shuffling the folds and for training.
        fold: Number of the test fold.
        folds: How many there are.
        protocol: How folds are made, a name of `asapool.experiments.protocols.PROTOCOLS`.
        splits: Digest of the split file, if the protocol needs one.
        ensemble: How many models are trained, with different seeds; their predictions are averaged.
        keep: Whether the record contains the trained model; not part of the key.
        rungs: (epoch, value) pairs: the Run is pruned after that epoch if its best validation value so far is lower.
            Not part of the key, because a finished Run is the same with and without them.
    """

    data: str
    fingerprint: str
    model: ModelConfig
    train: TrainConfig
    seed: int
    fold: int
    folds: int = 10
    protocol: str = "authors"
    splits: str = ""
    ensemble: int = 1
    keep: bool = field(default=False, compare=False)
    rungs: tuple[tuple[int, float], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        choose("protocol", self.protocol, tuple(PROTOCOLS))
        if not 0 <= self.fold < self.folds:
            raise ConfigError(f"fold must lie in 0 to {self.folds - 1}, got {self.fold}")
        if not 1 <= self.ensemble <= MEMBERS:
            raise ConfigError(f"an ensemble has 2 to {MEMBERS} members, got {self.ensemble}. 1 trains a single model")
        if PROTOCOLS[self.protocol].from_file != bool(self.splits):
            needs = "takes no split file" if self.splits else "needs a split file"
            raise ConfigError(f"protocol {self.protocol!r} {needs}, got {self.splits!r}")
        if (self.train.seed, self.train.threads) != (0, None):
            object.__setattr__(self, "train", replace(self.train, seed=0, threads=None))

    @cached_property
    def key(self) -> str:
        """A short name derived from the content alone: 16 hex digits."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def epochs(self) -> int:
        """The planned epochs of all models together."""
        return self.train.epochs * self.ensemble

    def split(self, graphs: GraphSet, splits: SplitFile | None = None) -> Split:
        """The parts of this fold; they do not depend on the model. splits: the file of that digest, if there is one."""
        if self.splits and (splits is None or splits.digest != self.splits):
            raise DataError(f"{self.data}: the run needs the split file with digest {self.splits}. Give that file")
        return PROTOCOLS[self.protocol].split(graphs, self.seed, self.fold, self.folds, {"splits": splits})

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which the key is made."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("keep", "rungs")}
        plain |= {"model": settings_of(self.model), "train": settings_of(self.train)}
        absent = {"splits": "", "ensemble": 1}  # so that records without them keep their keys
        return {name: value for name, value in plain.items() if name not in absent or value != absent[name]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Run:
        """The Run that to_dict was called on; missing settings have the defaults of 0.1.0."""
        model = ModelConfig.from_dict(FIRST_MODEL | values["model"])
        train = TrainConfig.from_dict(FIRST_TRAIN | values["train"])
        return cls(**{**values, "model": model, "train": train})


def settings_of(config: ModelConfig | TrainConfig) -> dict[str, Any]:
    """The settings that identify a Run, as plain data: those of 0.1.0, and later ones that are not at their default.

    >>> "seed" in settings_of(TrainConfig()), settings_of(TrainConfig())["lr"]
    (False, 0.01)
    """
    return dict(_settings_of(config))


# cached, because the runs of a cell share their settings, and tables have thousands of runs
@lru_cache(maxsize=4096)
def _settings_of(config: ModelConfig | TrainConfig) -> dict[str, Any]:
    first, usual = (FIRST_MODEL, ModelConfig()) if isinstance(config, ModelConfig) else (FIRST_TRAIN, TrainConfig())
    default = usual.to_dict()
    return {
        name: value
        for name, value in config.to_dict().items()
        if name in first or (name not in ("seed", "threads") and default.get(name) != value)
    }


def best_value(history: Iterable[Mapping[str, Any]]) -> float:
    """The best validation value so far (greater is better): accuracy, or minus the loss if there is none.

    >>> best_value([{"val_accuracy": 0.5, "val_loss": 1.0}, {"val_accuracy": 0.4, "val_loss": 0.9}])
    0.5
    >>> best_value([{"val_accuracy": None, "val_loss": 1.0}, {"val_accuracy": None, "val_loss": 0.75}])
    -0.75
    """
    values = (
        epoch["val_accuracy"] if epoch.get("val_accuracy") is not None else -float(epoch["val_loss"])
        for epoch in history
        if epoch.get("val_loss") is not None
    )
    return max(values, default=-math.inf)
