"""TrainConfig, the settings of training, whose defaults are the authors', and presets by method and data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from asapool.errors import ConfigError, choose
from asapool.files import load_toml
from asapool.models.methods import method as find_method
from asapool.training.selection import SELECT_BY

DEVICES = ("auto", "cpu", "cuda", "mps")
WORDS: dict[str, tuple[str, ...]] = {
    "optimizer": ("adam", "adamw"),
    "schedule": ("steps", "onecycle"),
    "select_by": SELECT_BY,
    "device": DEVICES,
    "loss": ("auto", "squared", "huber"),
    "precision": ("float32", "bfloat16", "float16"),
}
WEIGHTINGS = ("none", "balanced")
# settings added after version 0.1.0: at their defaults they are left out of files and of the keys of runs, so that
# these stay the same as in 0.1.0
LATER: dict[str, Any] = {
    "select_by": "auto", "optimizer": "adam", "schedule": "steps", "label_smoothing": 0.0, "average": 0,
    "loss": "auto", "task_weights": {}, "freeze_encoder": False, "device": "cpu",
    "precision": "float32",
}  # fmt: skip
WARM_UP = 0.25  # share of a one-cycle schedule in which the learning rate rises


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of training.

    Args:
        epochs: passes over the training graphs.
        batch_size: graphs per step.
        lr: Adam's learning rate.
        weight_decay: Adam's L2 penalty.
        lr_step: the learning rate is multiplied by lr_gamma after every lr_step epochs; 0 = never.
        lr_gamma: see lr_step.
        class_weights: "none", "balanced" (a class counts by the inverse of its share), or a table of class names and
            positive numbers; a class without a number counts 1. Several yes/no tasks are balanced separately.
        early_stopping: stop after this many epochs without a better score; None = never.
        clip: maximum norm of all gradients together; None = no limit.
        seed: of the initial weights, the order of the graphs and the dropout.
        threads: of torch; None = torch's default.
        select_by: the validation score by which the epoch is chosen: "accuracy", "balanced_accuracy", "roc_auc",
            "pr_auc", "mcc", "f1", "calibration_error" or "loss", ties broken by the loss; for measured values "rmse",
            "mae", "r2", "pearson", "spearman" or "loss"; "paper" = accuracy, ties going to the first epoch; "last" = no
            choice, the last epoch is kept; "auto" = "paper" for roughly balanced, unweighted classes, else "roc_auc";
            "rmse" for one measured value, "loss" for several.
        optimizer: "adam", or "adamw", with weight decay decoupled from the gradient.
        schedule: of the learning rate: "steps", or "onecycle", which leaves lr_step and lr_gamma unused.
        label_smoothing: share of the target that is spread evenly over all classes.
        average: validate and keep the mean of the weights over about this many epochs, at most a sixth of all, since
            the weights of the first epochs would spoil it; 0 = no averaging.
        loss: for measured values: "squared", or "huber", which is less sensitive to large errors; "auto" = "squared".
        task_weights: how much each of several tasks counts, by name; a task without a number counts 1.
        init_from: a model file or run folder whose weights training starts from: its encoder, and its head if the
            shapes match.
        freeze_encoder: train the head only.
        device: "cpu", "cuda", "mps" (Apple), or "auto", the fastest available.
        precision: of the matrix products of a training step: "float32", or "bfloat16" or "float16" by torch.autocast.
            Weights and validation stay in float32.

    >>> TrainConfig(epochs=20).lr_at(50), TrainConfig().lr_at(51)
    (0.01, 0.005)
    """

    epochs: int = 100
    batch_size: int = 128
    lr: float = 0.01
    weight_decay: float = 5e-4
    lr_step: int = 50
    lr_gamma: float = 0.5
    class_weights: str | Mapping[str, float] = field(default="none", hash=False)
    early_stopping: int | None = None
    clip: float | None = None
    seed: int = 0
    threads: int | None = None
    select_by: str = "auto"
    optimizer: str = "adam"
    schedule: str = "steps"
    label_smoothing: float = 0.0
    average: int = 0
    loss: str = "auto"
    task_weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    init_from: str | None = None
    freeze_encoder: bool = False
    device: str = "cpu"
    precision: str = "float32"

    def __post_init__(self) -> None:
        for name, least in (
            ("epochs", 1),
            ("batch_size", 1),
            ("early_stopping", 1),
            ("threads", 1),
            ("lr_step", 0),
            ("seed", 0),
            ("average", 0),
        ):
            value = getattr(self, name)
            if value is None and name in ("early_stopping", "threads"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
                raise ConfigError(f"train.{name} must be an integer of at least {least}, got {value!r}")
        for name, low in (("lr", False), ("lr_gamma", False), ("weight_decay", True), ("clip", False)):
            value = getattr(self, name)
            if value is None and name == "clip":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ConfigError(f"train.{name} must be a number, got {value!r}")
            if not (0 < value < float("inf") or (low and value == 0)):
                raise ConfigError(f"train.{name} must be {'at least' if low else 'greater than'} 0, got {value!r}")
        smoothing: Any = self.label_smoothing
        if isinstance(smoothing, bool) or not isinstance(smoothing, (int, float)) or not 0 <= smoothing < 1:
            raise ConfigError(f"train.label_smoothing must be a number in [0, 1), got {smoothing!r}")
        if not isinstance(self.freeze_encoder, bool):
            raise ConfigError(f"train.freeze_encoder must be true or false, got {self.freeze_encoder!r}")
        if self.init_from is not None and (not isinstance(self.init_from, str) or not self.init_from):
            raise ConfigError(f"train.init_from must be the path of a model in quotes, got {self.init_from!r}")
        if self.early_stopping is not None and self.select_by == "last":
            raise ConfigError(
                'train.early_stopping waits for a better epoch, and select_by = "last" compares none. Set '
                'train.select_by = "loss" (--select-by loss), or leave early_stopping out'
            )
        if self.freeze_encoder and self.init_from is None:
            raise ConfigError("train.freeze_encoder needs a trained encoder. Set train.init_from (--from MODEL) too")
        for name, allowed in WORDS.items():
            choose(f"train.{name}", getattr(self, name), allowed)
        self._check_class_weights()
        self._check_numbers("task_weights", self.task_weights, "tasks")

    def lr_at(self, epoch: int, share: float = 0.0) -> float:
        """The learning rate of an epoch (counted from 1), after a share of its batches.

        "steps": lr · gamma^⌊(epoch − 1)/step⌋. "onecycle": a cosine from lr/25 up to lr in the first quarter of the
        training, then down to lr/250,000.

        >>> config = TrainConfig(schedule="onecycle", epochs=4, lr=1.0)
        >>> [round(config.lr_at(epoch), 3) for epoch in (1, 2, 3, 4)], config.lr_at(4, 1.0) < 1e-5
        ([0.04, 1.0, 0.75, 0.25], True)
        """
        if self.schedule == "steps":
            return self.lr if self.lr_step == 0 else self.lr * self.lr_gamma ** ((epoch - 1) // self.lr_step)
        t = (epoch - 1 + share) / self.epochs
        low, high, t = (self.lr / 25, self.lr, t / WARM_UP) if t < WARM_UP else (
            self.lr / 250_000, self.lr, 1 - (t - WARM_UP) / (1 - WARM_UP))  # fmt: skip
        return low + (high - low) * (1 - math.cos(math.pi * t)) / 2

    @property
    def averaged_epochs(self) -> int:
        """Over how many epochs the weights are averaged.

        >>> [TrainConfig(average=10, epochs=epochs).averaged_epochs for epochs in (120, 30, 3)]
        [10, 5, 1]
        """
        return min(self.average, max(self.epochs // 6, 1))

    @property
    def weighted(self) -> bool:
        """Whether some classes count more than others."""
        return self.class_weights != "none"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON and TOML.

        None is left out, since TOML has no null; so are settings added later, at their defaults, so that files of older
        versions stay the same.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["class_weights"] = (
            self.class_weights if isinstance(self.class_weights, str) else dict(self.class_weights)
        )
        values["task_weights"] = dict(self.task_weights)
        return {name: v for name, v in values.items() if v is not None and (name not in LATER or LATER[name] != v)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainConfig:
        """Settings from plain data; an unknown name is refused.

        >>> TrainConfig.from_dict({"epochs": 5}).epochs
        5
        """
        known = [f.name for f in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigError(f"train.{name} is not a setting. The settings are {', '.join(known)}")
        return cls(**values)

    def _check_class_weights(self) -> None:
        given = self.class_weights
        if not isinstance(given, Mapping):
            choose("train.class_weights", given, WEIGHTINGS)
            return
        self._check_numbers("class_weights", given, "classes")

    def _check_numbers(self, setting: str, given: Any, what: str) -> None:
        if not isinstance(given, Mapping):
            raise ConfigError(f"train.{setting} must be a table of names and numbers, got {given!r}")
        for name, value in given.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not isinstance(name, str) or not number or not 0 < value < float("inf"):
                raise ConfigError(f"train.{setting} must name {what} with numbers above 0, got {name!r}: {value!r}")


AUTHORS_SEEDS = (
    8971, 85688, 9467, 32830, 28689, 94845, 69840, 50883, 74177, 79585,
    1055, 75631, 6825, 93188, 95426, 54514, 31467, 70597, 71149, 81994,
)  # fmt: skip

# batch size, width, dropout of the attention, learning rate
_TABLE = {
    "PROTEINS": (128, 64, 0.1, 0.01),
    "FRANKENSTEIN": (128, 32, 0.0, 0.001),
    "NCI1": (128, 128, 0.0, 0.01),
    "NCI109": (128, 128, 0.0, 0.01),
    "DD": (64, 16, 0.3, 0.01),
}
_TABLE["D&D"] = _TABLE["DD"]
_TABLE["Mutagenicity"] = _TABLE["FRANKENSTEIN"]  # the molecules that FRANKENSTEIN was made from


DEFAULT_METHOD = "asap+"  # of train, cv, compare and the estimator

PRESETS = Path(__file__).with_name("presets.toml")  # of methods with their own schedule, by target and size
BOUND = 5.0  # model.readout_bound: an element that no training molecule has must not decide the answer


def preset(
    name: str, method: str = "asap", graphs: int | None = None, kind: str = "classification",
    given: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """The tables [model] and [train] for a data set of that name, size and kind of target, and a method.

    A method with its own schedule uses it on every data set, with a width, a number of epochs and a choice of counts
    that depend on the number of graphs; the others get the authors' settings on the authors' data sets. `given` are the
    user's tables: early stopping compares epochs, so it needs another rule than "last".

    >>> preset("DD")
    {'model': {'hidden': 16, 'attention_dropout': 0.3}, 'train': {'batch_size': 64, 'lr': 0.01}}
    >>> preset("my molecules")
    {'model': {}, 'train': {}}
    >>> preset("DD", "asap+", graphs=1178)["model"], preset("DD", "asap+", graphs=1178)["train"]["schedule"]
    ({'readout_bound': 5.0, 'hidden': 32, 'counts': 'none'}, 'onecycle')
    >>> [preset("", "asap+", graphs, "regression")["train"]["epochs"] for graphs in (200, 1128, 4200)]
    [150, 120, 60]
    >>> preset("", "asap+", 1128, "regression")["model"]
    {'readout_bound': 5.0, 'hidden': 64, 'first_convs': 3, 'counts': 'none'}
    """
    entry = find_method(method, "model.method")
    if entry.schedule:
        train: dict[str, Any] = dict(entry.schedule)
        model: dict[str, Any] = {"readout_bound": BOUND}
        if graphs is None:
            return {"model": model, "train": train}
        fitting = next(one for one in _presets()[kind] if graphs < one.get("graphs_below", math.inf))
        train |= fitting["train"]
        if train["select_by"] == "last" and (given or {}).get("train", {}).get("early_stopping") is not None:
            train["select_by"] = "loss"
        return {"model": model | fitting["model"], "train": train}
    known = {key.lower(): value for key, value in _TABLE.items()}
    if name.lower() not in known:
        return {"model": {}, "train": {}}
    batch, hidden, dropout, lr = known[name.lower()]
    return {"model": {"hidden": hidden, "attention_dropout": dropout}, "train": {"batch_size": batch, "lr": lr}}


@cache
def _presets() -> dict[str, list[dict[str, Any]]]:
    """The entries of presets.toml, by kind of target."""
    return load_toml(PRESETS)


def seeds(count: int) -> tuple[int, ...]:
    """The first of the authors' seeds; beyond their twenty, fixed further numbers.

    >>> seeds(2), len(set(seeds(30)))
    ((8971, 85688), 30)
    """
    return AUTHORS_SEEDS[:count] + tuple(100_000 + k for k in range(len(AUTHORS_SEEDS), count))
