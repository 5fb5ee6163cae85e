"""Run: everything that decides one training and its scores; and `run`, which does it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from asapool.data.splits import Split, authors_folds, stratified_folds
from asapool.errors import ConfigError, DataError, choose
from asapool.models.config import ModelConfig
from asapool.training.config import TrainConfig

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.record import RunRecord

PROTOCOLS = ("authors", "stratified")
OnEpoch = Callable[[int, int], None]  # finished epochs, all epochs


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training: a data set, a model, a schedule, a seed and the number of the test fold.

    The seed and the threads of `train` play no part (the first follows from seed and fold, the second is always one).
    """

    data: str  # name of the data set
    fingerprint: str  # of its content
    model: ModelConfig
    train: TrainConfig
    seed: int  # of the protocol: it shuffles the folds
    fold: int  # number of the test fold
    folds: int = 10
    protocol: Literal["authors", "stratified"] = "authors"

    def __post_init__(self) -> None:
        choose("protocol", self.protocol, PROTOCOLS)
        if not 0 <= self.fold < self.folds:
            raise ConfigError(f"fold must lie in 0 to {self.folds - 1}, got {self.fold}")
        if (self.train.seed, self.train.threads) != (0, None):
            object.__setattr__(self, "train", replace(self.train, seed=0, threads=None))

    @cached_property
    def key(self) -> str:
        """A short name that follows from the content alone: 16 hex digits."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def split(self, graphs: GraphSet) -> Split:
        """The parts of this fold; they depend on seed and fold, not on the model."""
        make = authors_folds if self.protocol == "authors" else stratified_folds
        return make(graphs, self.seed, self.fold, self.folds)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        train = {name: value for name, value in self.train.to_dict().items() if name != "seed"}
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return plain | {"model": self.model.to_dict(), "train": train}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Run:
        """The Run that to_dict was called on."""
        model, train = ModelConfig.from_dict(values["model"]), TrainConfig.from_dict(values["train"])
        return cls(**{**values, "model": model, "train": train})


def run(graphs: GraphSet, run: Run, on_epoch: OnEpoch | None = None) -> RunRecord:
    """Train and judge; nothing but the graphs and the Run decides the scores.

    on_epoch(finished, all) is called before the first epoch, with 0, and after every one.
    """
    from asapool.experiments.machine import machine
    from asapool.experiments.record import RunRecord
    from asapool.training.evaluating import fold_seed, train_and_judge

    if graphs.fingerprint != run.fingerprint:
        raise DataError(
            f"{run.data}: the run is for graphs with fingerprint {run.fingerprint}, but these have "
            f"{graphs.fingerprint}. Give it the graphs it was planned for"
        )
    began, cpu, epochs = time.perf_counter(), time.process_time(), run.train.epochs
    split = run.split(graphs)
    if on_epoch is not None:
        on_epoch(0, epochs)
    told = None if on_epoch is None else (lambda epoch, progress: on_epoch(epoch.epoch, epochs))
    judged = train_and_judge(graphs, split, run.model, run.train, fold_seed(run.seed, run.fold), told)
    return RunRecord(
        run=run,
        validation=judged.validation,
        test=judged.test,
        history=[asdict(epoch) for epoch in judged.fit.history],
        best_epoch=judged.fit.best_epoch,
        epochs=len(judged.fit.history),
        stopped=judged.fit.stopped,
        seconds=round(time.perf_counter() - began, 3),
        cpu_seconds=round(time.process_time() - cpu, 3),
        probabilities={
            "graphs": split.test.tolist(),
            "proba": [[round(float(p), 5) for p in row] for row in judged.probability],
        },
        machine=machine(),
    )
