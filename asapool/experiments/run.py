"""Run: everything that decides one training and its scores; and `run`, which does it."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from asapool.errors import ConfigError, DataError, choose
from asapool.experiments.protocols import PROTOCOLS, SplitFile
from asapool.models.config import ModelConfig
from asapool.training.config import TrainConfig

if TYPE_CHECKING:
    from asapool.data import GraphSet, Split
    from asapool.experiments.record import RunRecord
    from asapool.training.state import Epoch, Progress

PRUNED = "pruned"  # how the failure of a pruned training begins
OnEpoch = Callable[[int, int, float | None], None]  # finished epochs, all epochs, validation accuracy of the last one

# The settings that Runs of 0.1.0 had, with their defaults then. They are part of every key; a later setting only where
# it is not at its default, so that old records keep their keys.
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
    """One training: a data set, a model, a schedule, a seed and the number of the test fold.

    The seed and the threads of `train` play no part (the first follows from seed and fold, the second is always one).

    Args:
        data: Name of the data set.
        fingerprint: Of its content.
        model: The classifier.
        train: The schedule.
        seed: Of the protocol; it shuffles the folds and decides the training.
        fold: Number of the test fold.
        folds: How many there are.
        protocol: How folds are made, a name of `asapool.experiments.protocols.PROTOCOLS`.
        splits: Digest of the split file, where the protocol reads one.
        keep: The record carries the trained model; this changes nothing else, the key least of all.
        rungs: (epoch, value) pairs: the training ends after that epoch, unfinished, where its best validation value
            until then is lower. No part of the key: what is finished is the same with and without them.
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
    keep: bool = field(default=False, compare=False)
    rungs: tuple[tuple[int, float], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        choose("protocol", self.protocol, tuple(PROTOCOLS))
        if not 0 <= self.fold < self.folds:
            raise ConfigError(f"fold must lie in 0 to {self.folds - 1}, got {self.fold}")
        if PROTOCOLS[self.protocol].from_file != bool(self.splits):
            raise ConfigError(f"protocol {self.protocol!r} and a split file do not belong together: {self.splits!r}")
        if (self.train.seed, self.train.threads) != (0, None):
            object.__setattr__(self, "train", replace(self.train, seed=0, threads=None))

    @cached_property
    def key(self) -> str:
        """A short name that follows from the content alone: 16 hex digits."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def split(self, graphs: GraphSet, splits: SplitFile | None = None) -> Split:
        """The parts of this fold; they do not depend on the model. splits: the file of that digest, if there is one."""
        if self.splits and (splits is None or splits.digest != self.splits):
            raise DataError(f"{self.data}: the run needs the split file with digest {self.splits}. Give that file")
        return PROTOCOLS[self.protocol].split(graphs, self.seed, self.fold, self.folds, {"splits": splits})

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which the key is made."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("keep", "rungs")}
        plain |= {"model": settings_of(self.model), "train": settings_of(self.train)}
        return plain if self.splits else {name: value for name, value in plain.items() if name != "splits"}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Run:
        """The Run that to_dict was called on; settings that are missing have the values of 0.1.0."""
        model = ModelConfig.from_dict(FIRST_MODEL | values["model"])
        train = TrainConfig.from_dict(FIRST_TRAIN | values["train"])
        return cls(**{**values, "model": model, "train": train})


def settings_of(config: ModelConfig | TrainConfig) -> dict[str, Any]:
    """What decides a training, as plain data: the settings of 0.1.0, and later ones that are not at their default.

    >>> "seed" in settings_of(TrainConfig()), settings_of(TrainConfig())["lr"]
    (False, 0.01)
    """
    first, usual = (FIRST_MODEL, ModelConfig()) if isinstance(config, ModelConfig) else (FIRST_TRAIN, TrainConfig())
    default = usual.to_dict()
    return {
        name: value
        for name, value in config.to_dict().items()
        if name in first or (name not in ("seed", "threads") and default.get(name) != value)
    }


def run(graphs: GraphSet, run: Run, on_epoch: OnEpoch | None = None, splits: SplitFile | None = None) -> RunRecord:
    """Train and evaluate; nothing but the graphs, the Run and its split file decides the scores.

    on_epoch(finished, all, validation accuracy) is called before the first epoch, with 0 and None, and after every one.
    """
    from asapool.experiments.fold import fold_seed, model_file, train_fold
    from asapool.experiments.record import RunRecord, machine

    if graphs.fingerprint != run.fingerprint:
        raise DataError(
            f"{run.data}: the run is for graphs with fingerprint {run.fingerprint}, but these have "
            f"{graphs.fingerprint}. Give it the graphs it was planned for"
        )
    began, cpu, epochs = time.perf_counter(), time.process_time(), run.train.epochs
    split = run.split(graphs, splits)
    if on_epoch is not None:
        on_epoch(0, epochs, None)

    def after_epoch(epoch: Epoch, progress: Progress) -> None:
        if on_epoch is not None:
            on_epoch(epoch.epoch, epochs, epoch.val_accuracy or epoch.val_score)
        for number, least in run.rungs:
            if epoch.epoch == number and (value := best_value(map(asdict, progress.history))) < least:
                raise Pruned(number, value, least, [asdict(one) for one in progress.history])

    def spent() -> dict[str, Any]:
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
        return {"seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3), "machine": machine()}

    try:
        result = train_fold(graphs, split, run.model, run.train, fold_seed(run.seed, run.fold), after_epoch)
    except Pruned as end:
        return RunRecord(run=run, history=end.history, epochs=end.epoch, failure=str(end), **spent())
    return RunRecord(
        run=run,
        validation=result.validation,
        test=result.test,
        history=[asdict(epoch) for epoch in result.fit.history],
        best_epoch=result.fit.best_epoch,
        epochs=len(result.fit.history),
        stopped=result.fit.stopped,
        probabilities={
            "graphs": split.test.tolist(),
            "proba": [[round(float(p), 5) for p in row] for row in result.probability],
        },
        model=model_file(graphs, split, run, result) if run.keep else None,
        **spent(),
    )


class Pruned(Exception):  # noqa: N818
    """A training that was not worth finishing."""

    def __init__(self, epoch: int, value: float, least: float, history: list[dict[str, Any]]) -> None:
        super().__init__(f"{PRUNED} after epoch {epoch}: {value:.4g} on validation, others had {least:.4g} by then")
        self.epoch, self.history = epoch, history


def best_value(history: Iterable[Mapping[str, Any]]) -> float:
    """The best validation value of some epochs, greater is better: accuracy, or minus the loss where there is none.

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
