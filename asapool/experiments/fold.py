"""Carry out a Run: train, choose the epoch on the validation part, score on the test part."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet, Split
from asapool.errors import DataError
from asapool.experiments.protocols import SplitFile
from asapool.experiments.record import RunRecord, machine
from asapool.experiments.run import PRUNED, Run, best_value
from asapool.models import GraphModel, ModelConfig, checkpoint
from asapool.training.config import TrainConfig
from asapool.training.fitting import Fit, fit
from asapool.training.fitting import OnEpoch as AfterEpoch
from asapool.training.new_model import new_model
from asapool.training.predictions import predict
from asapool.training.state import Epoch, Progress
from asapool.training.tasks import task_of
from asapool.training.trust import trust_of

OnEpoch = Callable[[int, int, float | None], None]  # finished epochs, all epochs, validation accuracy of the last one


@dataclass(frozen=True, kw_only=True)
class FoldResult:
    """The result of one fold; of an ensemble, the scores and probabilities are those of the average."""

    fit: Fit  # of the first model
    validation: dict[str, Any] | None  # scores as plain data; None if the part is empty
    test: dict[str, Any] | None
    probability: npt.NDArray[np.floating[Any]]  # (G, C) of the test graphs, in the order of the split
    model: GraphModel  # the first, with the weights of its best epoch


def fold_seed(seed: int, fold: int, member: int = 0) -> int:
    """The seed of one training run, so that the folds of a seed start from different weights.

    >>> len({fold_seed(8971, 0), fold_seed(8971, 1), fold_seed(8971, 0, member=1)})
    3
    """
    parts = [seed, fold, member] if member else [seed, fold]
    return int(np.random.SeedSequence(parts).generate_state(1)[0])


def train_fold(
    graphs: GraphSet,
    split: Split,
    model: ModelConfig,
    train: TrainConfig,
    seeds: Sequence[int],
    on_epoch: AfterEpoch | None = None,
) -> FoldResult:
    """Train a new model with each seed and score their average; the numbers depend on the arguments alone."""
    networks, fits = [], []
    for seed in seeds:
        # one thread, however many run in parallel: the result must not depend on the number of jobs
        config = replace(train, seed=seed, threads=1)
        networks.append(new_model(model, graphs, split.train, config))
        fits.append(fit(networks[-1], graphs, split, config, on_epoch=on_epoch))

    def answers(part: npt.NDArray[np.int64]) -> npt.NDArray[np.floating[Any]]:
        each = [predict(network, graphs, part) for network in networks]
        return each[0] if len(each) == 1 else np.mean(each, axis=0)

    probability = answers(split.test)
    val, test = graphs.y[split.val], graphs.y[split.test]
    task, target = task_of(graphs.target), graphs.target
    return FoldResult(
        fit=fits[0],
        validation=task.score(val, answers(split.val), target) if len(val) else None,
        test=task.score(test, probability, target) | task.trivial_scores(graphs.y, split, target)
        if len(test)
        else None,
        probability=probability,
        model=networks[0],
    )


def model_file(graphs: GraphSet, split: Split, run: Run, result: FoldResult) -> bytes:
    """The content of a model file, including its uncertainty data."""
    summary = {
        "train": run.train.to_dict() | {"seed": fold_seed(run.seed, run.fold)}, "best_epoch": result.fit.best_epoch,
        "epochs": len(result.fit.history), "validation": result.validation, "test": result.test, "name": graphs.name,
    }  # fmt: skip
    extra = {"trust": trust_of(result.model, graphs, split)}
    return checkpoint.to_bytes(
        result.model, recipe=graphs.recipe, summary=summary, fingerprint=graphs.fingerprint, extra=extra
    )


def run(graphs: GraphSet, run: Run, on_epoch: OnEpoch | None = None, splits: SplitFile | None = None) -> RunRecord:
    """Train and evaluate; the scores depend on the graphs, the Run and its split file alone.

    on_epoch(finished, all, validation accuracy) is called before the first epoch, with 0 and None, and after each.
    """
    if graphs.fingerprint != run.fingerprint:
        raise DataError(
            f"{run.data}: the run is for graphs with fingerprint {run.fingerprint}, but these have "
            f"{graphs.fingerprint}. Give it the graphs it was planned for"
        )
    began, cpu, epochs = time.perf_counter(), time.process_time(), run.epochs
    members = 0  # trained or in training
    split = run.split(graphs, splits)
    if on_epoch is not None:
        on_epoch(0, epochs, None)

    def after_epoch(epoch: Epoch, progress: Progress) -> None:
        nonlocal members
        members += epoch.epoch == 1
        if on_epoch is not None:
            done = (members - 1) * run.train.epochs + epoch.epoch
            on_epoch(done, epochs, epoch.val_accuracy or epoch.val_score)
        for number, least in run.rungs:
            if epoch.epoch == number and (value := best_value(map(asdict, progress.history))) < least:
                raise Pruned(number, value, least, [asdict(one) for one in progress.history])

    def spent() -> dict[str, Any]:
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
        return {"seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3), "machine": machine()}

    try:
        seeds = [fold_seed(run.seed, run.fold, member) for member in range(run.ensemble)]
        result = train_fold(graphs, split, run.model, run.train, seeds, after_epoch)
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
    """A training run that was stopped because others did better."""

    def __init__(self, epoch: int, value: float, least: float, history: list[dict[str, Any]]) -> None:
        super().__init__(f"{PRUNED} after epoch {epoch}: {value:.4g} on validation, others had {least:.4g} by then")
        self.epoch, self.history = epoch, history
