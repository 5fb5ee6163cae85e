"""Train a model on some graphs of a set, and keep the weights that did best on others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from asapool.data import GraphSet
from asapool.errors import TrainingError
from asapool.kernels.threads import flush_denormals
from asapool.models import DirectModel, GraphModel
from asapool.training.config import TrainConfig
from asapool.training.predictions import logits_of, pieces
from asapool.training.state import Epoch, Progress, load_state, save_state, snapshot

Ints = npt.NDArray[np.int64]
OnEpoch = Callable[[Epoch, Progress], None]


class Parts(Protocol):
    """Which graphs to learn from and which to choose the epoch by; asapool.data's Split is one."""

    @property
    def train(self) -> Any: ...
    @property
    def val(self) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What came of a training; the model itself holds the weights of best_epoch."""

    best_epoch: int
    best_accuracy: float | None  # on the validation part; None when there is none
    history: tuple[Epoch, ...]
    stopped: str | None = None  # why it ended before the last epoch, if it did
    diverged: bool = False  # the loss was not a number: best_epoch is the best before that


def fit(
    model: GraphModel,
    graphs: GraphSet,
    split: Parts,
    config: TrainConfig,
    *,
    on_epoch: OnEpoch | None = None,
    state_file: str | PathLike[str] | None = None,
    owner: dict[str, Any] | None = None,
) -> Fit:
    """Train with Adam, and leave the weights of the epoch with the highest validation accuracy in the model.

    loss = mean_b CE(logits_b, y_b) + penalty; an epoch is better when its validation accuracy is strictly greater.
    Without a validation part the last epoch's weights stay. The same seed gives the same bytes.

    split: train and val, lists of graph numbers. on_epoch is called after every epoch. state_file: written after every
    epoch and, where it is already there, gone on from; owner: what must be the same to go on (see state.save_state).
    """
    train, val = _labelled(graphs, split.train, "training"), _labelled(graphs, split.val, "validation")
    if len(train) == 0:
        raise TrainingError(f"{graphs.name}: there are no graphs to learn from. Make the training part larger")
    weights = class_weights(graphs.y[train], graphs.num_classes) if config.class_weights == "balanced" else None
    if isinstance(model, DirectModel):
        return _fit_direct(model, graphs, train, val, config, weights, on_epoch)
    loss_of = nn.CrossEntropyLoss(weight=weights)
    checks = [(graphs.batch(piece), len(piece)) for piece in pieces(graphs, val)]  # cut once, used in every epoch
    adam = torch.optim.Adam(model.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=True)
    with _chance(config.seed), _threads(config.threads), flush_denormals():
        progress = Progress()
        if state_file is not None and Path(state_file).exists():
            progress = load_state(state_file, model, adam, owner or {})
        stopped, diverged = _patience(progress, config), False
        while stopped is None and progress.epoch < config.epochs:
            began, number = time.perf_counter(), progress.epoch + 1
            for group in adam.param_groups:
                group["lr"] = config.lr_at(number)
            loss = _learn(model, graphs, train, config, number, adam, loss_of)
            val_loss, val_accuracy = _check(model, checks, loss_of)
            bad = _not_finite(model, loss, val_loss)
            if bad is not None:
                stopped, diverged = f"{bad} not a number in epoch {number}", True
                break
            epoch = Epoch(
                epoch=number, lr=config.lr_at(number), loss=loss, val_loss=val_loss, val_accuracy=val_accuracy,
                seconds=time.perf_counter() - began,
            )  # fmt: skip
            progress.history.append(epoch)
            if val_accuracy is None or progress.best_accuracy is None or val_accuracy > progress.best_accuracy:
                progress.best, progress.best_epoch, progress.best_accuracy = snapshot(model), number, val_accuracy
            if state_file is not None:
                save_state(state_file, model, adam, progress, owner or {})
            if on_epoch is not None:
                on_epoch(epoch, progress)
            stopped = _patience(progress, config)
    if not progress.best:
        raise TrainingError(f"{graphs.name}: {stopped}. Lower train.lr, set train.clip, or scale the node features")
    model.load_state_dict(progress.best)
    model.eval()
    return Fit(
        best_epoch=progress.best_epoch, best_accuracy=progress.best_accuracy, history=tuple(progress.history),
        stopped=stopped, diverged=diverged,
    )  # fmt: skip


def _fit_direct(
    model: DirectModel, graphs: GraphSet, train: Ints, val: Ints, config: TrainConfig, weights: Tensor | None,
    on_epoch: OnEpoch | None,
) -> Fit:  # fmt: skip
    """Fit a model that needs no epochs; its history is one line, with the mean log loss of both parts."""
    began = time.perf_counter()
    w = None if weights is None else weights.double().numpy()
    with _threads(config.threads):
        model.fit_graphs(graphs, train, val, config.seed, None if w is None else w[graphs.y[train]])
        loss, _ = _log_loss(model, graphs, train, w)
        val_loss, val_accuracy = _log_loss(model, graphs, val, w)
    assert loss is not None  # there are training graphs
    epoch = Epoch(
        epoch=1, lr=0.0, loss=loss, val_loss=val_loss, val_accuracy=val_accuracy, seconds=time.perf_counter() - began
    )
    progress = Progress(best_epoch=1, best_accuracy=val_accuracy, history=[epoch])
    if on_epoch is not None:
        on_epoch(epoch, progress)
    return Fit(best_epoch=1, best_accuracy=val_accuracy, history=(epoch,))


def _log_loss(
    model: DirectModel, graphs: GraphSet, indices: Ints, weights: npt.NDArray[np.float64] | None
) -> tuple[float | None, float | None]:
    """Mean log loss (a probability of 0 counts as 1e-12) and accuracy on some graphs."""
    if len(indices) == 0:
        return None, None
    y, p = graphs.y[indices], model.predict_graphs(graphs, indices)
    loss = -np.log(np.maximum(p[np.arange(len(y)), y], 1e-12))
    w = np.ones(len(y)) if weights is None else weights[y]
    return float((w * loss).sum() / w.sum()), float((p.argmax(axis=1) == y).mean())


def order(train: Ints, seed: int, epoch: int) -> Ints:
    """The order of the training graphs in an epoch, which seed and epoch alone decide.

    >>> order(np.arange(5), seed=1, epoch=1).tolist() == order(np.arange(5), seed=1, epoch=1).tolist()
    True
    """
    return np.random.default_rng([seed, epoch]).permutation(train)


def class_weights(y: Ints, C: int) -> Tensor:
    """Weights that let every class count the same: w_c = G / (C · G_c), 0 for a class without graphs.

    >>> class_weights(np.array([0, 0, 0, 1]), 2)
    tensor([0.6667, 2.0000])
    """
    count = np.bincount(y, minlength=C)
    w = np.divide(len(y), np.count_nonzero(count) * count, out=np.zeros(C), where=count > 0)
    return torch.from_numpy(w.astype(np.float32))


def typical_nodes(graphs: GraphSet, train: npt.ArrayLike) -> int:
    """Mean number of nodes of the training graphs: what diffpool's number of clusters follows from."""
    sizes = np.diff(graphs.ptr)[np.asarray(train, dtype=np.int64)]
    return max(1, round(float(sizes.mean()))) if len(sizes) else 1


def _learn(
    model: GraphModel, graphs: GraphSet, train: Ints, config: TrainConfig, epoch: int,
    adam: torch.optim.Adam, loss_of: nn.Module,
) -> float:  # fmt: skip
    """One pass over the training graphs; returns the mean loss, NaN as soon as it is not a number."""
    model.train()
    shuffled, total = order(train, config.seed, epoch), 0.0
    for start in range(0, len(shuffled), config.batch_size):
        batch = graphs.batch(shuffled[start : start + config.batch_size])
        adam.zero_grad(set_to_none=True)
        logits, penalty = model.forward_with_penalty(batch.x, batch.ptr, batch.rowptr, batch.col, batch.weight)
        loss = loss_of(logits, batch.y) + penalty
        value = loss.item()
        if not math.isfinite(value):
            return math.nan
        loss.backward()
        if config.clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        adam.step()
        total += value * len(batch)
    return total / len(shuffled)


def _check(model: GraphModel, checks: list[Any], loss_of: nn.Module) -> tuple[float | None, float | None]:
    """Loss and accuracy on the validation part."""
    G = sum(size for _, size in checks)
    if G == 0:
        return None, None
    loss, right = 0.0, 0
    for batch, size in checks:
        logits = logits_of(model, batch)
        loss += float(loss_of(logits, batch.y)) * size
        right += int((logits.argmax(dim=1) == batch.y).sum())
    return loss / G, right / G


def _not_finite(model: nn.Module, loss: float, val_loss: float | None) -> str | None:
    """What went out of bounds, if anything did."""
    if not math.isfinite(loss) or (val_loss is not None and not math.isfinite(val_loss)):
        return "the loss was"
    # a maximum or a ReLU may hide a weight that is not a number from the loss
    return None if all(bool(p.isfinite().all()) for p in model.parameters()) else "a weight was"


def _labelled(graphs: GraphSet, indices: Any, part: str) -> Ints:
    chosen = np.asarray(indices, dtype=np.int64).reshape(-1)
    if len(chosen) and (graphs.y[chosen] < 0).any():
        missing = int((graphs.y[chosen] < 0).sum())
        raise TrainingError(
            f"{graphs.name}: {missing} graphs of the {part} part have no label. Leave them out of the split"
        )
    return chosen


def _patience(progress: Progress, config: TrainConfig) -> str | None:
    if config.early_stopping is None or progress.best_accuracy is None:
        return None
    waited = progress.epoch - progress.best_epoch
    return f"no better validation accuracy in {waited} epochs" if waited >= config.early_stopping else None


@contextmanager
def _chance(seed: int) -> Iterator[None]:
    """Dropout draws from torch's own generator: seed it for us, and give the caller's back afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
