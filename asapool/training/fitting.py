"""Train a model on some graphs of a set, and keep the weights of the epoch that is best on others."""

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
from asapool.errors import ConfigError, GraphTooLargeError, TrainingError
from asapool.kernels.rng import drawing_from
from asapool.kernels.shards import Shard, all_rows, sharing_batches
from asapool.kernels.threads import flush_denormals
from asapool.models import DirectModel, GraphModel, method
from asapool.models.batches import check_extras, cut
from asapool.training.adam import Adam
from asapool.training.config import TrainConfig
from asapool.training.device import (
    LossScale,
    check_precision,
    device_of,
    on_device_of,
    products_in,
    resolve_device,
)
from asapool.training.losses import Loss
from asapool.training.parallel import of_rank_0, own_part, sum_gradients, sum_of
from asapool.training.predictions import Validation, refused_graphs
from asapool.training.selection import Selection
from asapool.training.state import Epoch, Progress, average_weights, averaged, load_state, save_state, snapshot
from asapool.training.tasks import task_of

Ints = npt.NDArray[np.int64]
OnEpoch = Callable[[Epoch, Progress], None]


class TrainedParts(Protocol):
    """The training graphs and those that choose the epoch, such as an asapool.data.Split."""

    @property
    def train(self) -> Any: ...
    @property
    def val(self) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The result of training; the model itself has the weights of best_epoch.

    Args:
        best_epoch: number of the epoch, from 1.
        best_score: its validation score, None without a validation part.
        selected_by: the score by which the epoch was chosen, see TrainConfig.select_by.
        history: one Epoch per epoch.
        stopped: why training ended before the last epoch, if it did.
        diverged: the loss became NaN or infinite; best_epoch is the best before that.
        notes: for the user, one sentence each.
    """

    best_epoch: int
    best_score: float | None
    selected_by: str
    history: tuple[Epoch, ...]
    stopped: str | None = None
    diverged: bool = False
    notes: tuple[str, ...] = ()


def fit(
    model: GraphModel,
    graphs: GraphSet,
    split: TrainedParts,
    config: TrainConfig,
    *,
    sample_weight: npt.ArrayLike | None = None,
    on_epoch: OnEpoch | None = None,
    state_file: str | PathLike[str] | None = None,
    owner: dict[str, Any] | None = None,
    mix_versions: bool = False,
    shard: Shard | None = None,
) -> Fit:
    """Train by gradient descent, and leave the weights of the best epoch in the model.

    loss = mean over graphs (and tasks) of ℓ + penalty, where ℓ is the cross entropy of classes, the binary cross
    entropy of yes/no tasks, or the squared error of measured values, scaled by the training part. The best epoch is the
    one with the best validation score (config.select_by). Without a validation part the weights of the last epoch are
    kept. The same seed gives the same bytes, even if several models are trained in parallel threads; torch's global
    generator is not used.

    Args:
        model: from asapool.models.build; a DirectModel is fitted without gradients.
        graphs: the whole set.
        split: train and val, lists of graph numbers.
        config: the settings.
        sample_weight: how much each graph counts in the losses of training and validation, (G,), at least 0; None = all
            the same. If the weights of the validation graphs differ, the validation loss chooses the epoch.
        on_epoch: called after every epoch.
        state_file: written after every epoch; if it exists, training continues from it.
        owner: digests that must be the same to continue (see state.save_state).
        mix_versions: continue from the state of a version that gives different numbers.
        shard: the rank of this process if several share every batch (see training/parallel.py); only rank 0 writes.

    Returns:
        The history, the best epoch, and notes.
    """
    train, val = _labelled(graphs, split.train, "training"), _labelled(graphs, split.val, "validation")
    if len(train) == 0:
        raise TrainingError(f"{graphs.name}: there are no training graphs. Make the training part larger")
    by_graph = _sample_weights(graphs, train, sample_weight)
    task = task_of(graphs.target)
    target = task.scaled(graphs.target, graphs.y[train], graphs.name)
    if target.outputs != model.num_classes:
        raise ConfigError(
            f"the model has {model.num_classes} outputs, but the target of {graphs.name} needs {target.outputs}. "
            "Build it with graphs.target.outputs"
        )
    model.target = target
    loss_of = task.loss(graphs, train, target, config, by_graph)
    uneven = by_graph is not None and len(np.unique(by_graph.numpy()[val])) > 1
    selection = Selection.choose(
        config.select_by, task, target, graphs.y[train], graphs.y[val], config.weighted, uneven
    )
    if isinstance(model, DirectModel):
        return _fit_direct(model, graphs, train, val, config, selection, by_graph, on_epoch)
    check_extras(model, graphs)
    if model.descriptors is not None and graphs.descriptors is not None:
        model.descriptors.fit(graphs.descriptors[train])
    if config.freeze_encoder:
        model.freeze_encoder()
    home, device = device_of(model), resolve_device(config.device)
    check_precision(config.precision, device)
    model.to(device)
    checks = Validation.prepare(model, graphs, val, shard)
    adam = Adam(
        (w for w in model.parameters() if w.requires_grad), weight_decay=config.weight_decay,
        decoupled=config.optimizer == "adamw",
    )  # fmt: skip
    generator = torch.Generator(device).manual_seed(config.seed)
    # a layer of another package may use torch's own dropout, so all of torch's functions are redirected
    everything = not method(model.config.method).builtin
    with drawing_from(generator, all_functions=everything), _threads(config.threads), flush_denormals():
        progress = Progress()
        if state_file is not None and Path(state_file).exists():
            progress = load_state(state_file, model, adam, generator, owner or {}, mix_versions=mix_versions)
        stopped, diverged = _patience(progress, config, selection), False
        while stopped is None and progress.epoch < config.epochs:
            began, number = time.perf_counter(), progress.epoch + 1
            loss = _train_epoch(model, graphs, train, config, number, adam, loss_of, shard)
            average_weights(progress, model, config.averaged_epochs)
            with averaged(progress, model):
                scores = _validate(model, checks, loss_of, selection, graphs.y[val])
                val_loss, val_accuracy, val_score = scores if shard is None else of_rank_0(scores)
                bad = _not_finite(model, loss, val_loss)
                if bad is None and _is_better(val_score, val_loss, progress, selection):
                    progress.best, progress.best_epoch, progress.best_score = snapshot(model), number, val_score
                    progress.best_loss = math.inf if val_loss is None else val_loss
            if bad is not None:
                stopped, diverged = f"{bad} not a number in epoch {number}", True
                break
            epoch = Epoch(
                epoch=number, lr=config.lr_at(number), loss=loss, val_loss=val_loss, val_accuracy=val_accuracy,
                seconds=time.perf_counter() - began, val_score=val_score,
            )  # fmt: skip
            progress.history.append(epoch)
            if state_file is not None and (shard is None or shard.rank == 0):
                save_state(state_file, model, adam, generator, progress, owner or {})
            if on_epoch is not None:
                on_epoch(epoch, progress)
            stopped = _patience(progress, config, selection)
    if not progress.best:
        raise TrainingError(f"{graphs.name}: {stopped}. Lower train.lr, set train.clip, or scale the node features")
    model.load_state_dict(progress.best)
    model.to(home).eval()
    return Fit(
        best_epoch=progress.best_epoch, best_score=progress.best_score, selected_by=selection.name,
        history=tuple(progress.history), stopped=stopped, diverged=diverged,
        notes=selection.notes(config.early_stopping, len(val)),
    )  # fmt: skip


def order(train: Ints, seed: int, epoch: int) -> Ints:
    """The order of the training graphs in an epoch, determined by seed and epoch alone.

    >>> order(np.arange(5), seed=1, epoch=1).tolist() == order(np.arange(5), seed=1, epoch=1).tolist()
    True
    """
    return np.random.default_rng([seed, epoch]).permutation(train)


def _sample_weights(graphs: GraphSet, train: Ints, given: npt.ArrayLike | None) -> Tensor | None:
    """The weight of every graph, (G,); None = all the same."""
    if given is None:
        return None
    w = np.asarray(given, dtype=np.float64)
    if w.shape != (len(graphs),):
        raise ConfigError(f"sample_weight must have one number per graph, shape ({len(graphs)},), got {w.shape}")
    if not np.isfinite(w).all() or (w < 0).any() or not w[train].any():
        raise ConfigError("sample_weight must be finite numbers of at least 0, not all 0 for the training graphs")
    return torch.from_numpy(w.astype(np.float32))


def _train_epoch(
    model: GraphModel, graphs: GraphSet, train: Ints, config: TrainConfig, epoch: int,
    adam: Adam, loss_of: Loss, shard: Shard | None,
) -> float:  # fmt: skip
    """One pass over the training graphs; returns the mean loss, or NaN as soon as a loss is not finite."""
    model.train()
    weights, scale = list(model.parameters()), LossScale(config.precision)
    shuffled, total = order(train, config.seed, epoch), 0.0
    for start in range(0, len(shuffled), config.batch_size):
        indices = shuffled[start : start + config.batch_size]
        if loss_of.graphs is not None and not loss_of.graphs[torch.from_numpy(indices)].any():
            continue  # all graphs have weight 0
        adam.zero_grad()
        # a batch with fewer graphs than processes is not shared: each computes all of it, and only rank 0 counts
        shared = shard if shard is not None and len(indices) >= shard.size else None
        parts = [indices] if shared is None else own_part(graphs, indices, shared)
        batch = on_device_of(model, cut(model, graphs, parts[0 if shared is None else shared.rank]))
        try:
            with sharing_batches(shared), products_in(config.precision, batch.x.device):
                outputs = model.forward_with_penalty(*batch.inputs, **model.more(batch))
        except GraphTooLargeError as error:
            own = parts[0 if shared is None else shared.rank]
            raise refused_graphs(graphs, {int(own[error.graph]): error.reason}) from None
        # a few numbers per graph, in the precision of the weights; the loss is computed here
        logits, penalty = (t.to("cpu", torch.promote_types(t.dtype, torch.float32)) for t in outputs)
        if shared is not None:  # every process gets the loss of the whole batch and the gradient of its own graphs
            penalty = sum_of(penalty * (len(batch) / len(indices)), shared)
            logits = all_rows(logits, [len(part) for part in parts], shared)
        loss = loss_of(logits, graphs.targets(indices), indices) + penalty
        value = loss.item()
        if not math.isfinite(value):
            return math.nan
        scale.backward(loss)
        if shard is not None:
            sum_gradients(model, shard, 1.0 if shared is not None else float(shard.rank == 0))
        total += value * len(indices)
        if not scale.unscale(weights):
            continue
        if config.clip is not None:
            nn.utils.clip_grad_norm_(weights, config.clip)
        adam.step(lr=config.lr_at(epoch, start / len(shuffled)))
    return total / len(shuffled)


def _validate(
    model: GraphModel, checks: Validation, loss_of: Loss, selection: Selection, y: npt.NDArray[Any]
) -> tuple[float | None, float | None, float | None]:
    """Loss, accuracy and score on the validation part; label smoothing is for training only."""
    plain = loss_of.plain()
    sizes = [plain.size(piece) for piece in checks.pieces]
    if sum(sizes) == 0:
        return None, None, None
    loss, outputs = 0.0, checks.logits(model)
    for logits, labels, piece, size in zip(outputs, checks.targets, checks.pieces, sizes, strict=True):
        loss += float(plain(logits, labels, piece)) * size if size else 0.0
    if not math.isfinite(loss):
        return loss, None, None
    task, target, loss = selection.task, selection.target, loss / sum(sizes)
    p = task.answers(torch.cat(outputs).double(), target).numpy()
    right = task.mean("accuracy", y, p, target) if "accuracy" in task.metrics else None
    return loss, right, selection.score(y, p, right, loss)


def _is_better(val_score: float | None, val_loss: float | None, progress: Progress, selection: Selection) -> bool:
    """Whether the weights of an epoch replace the best so far."""
    if val_score is None or val_loss is None or progress.best_score is None:
        return True  # without a validation part the last epoch counts
    return selection.better(val_score, val_loss, progress.best_score, progress.best_loss)


def _not_finite(model: nn.Module, loss: float, val_loss: float | None) -> str | None:
    """Which value is not finite, if any."""
    if not math.isfinite(loss) or (val_loss is not None and not math.isfinite(val_loss)):
        return "the loss was"
    # a maximum or a ReLU may keep a weight that is NaN from affecting the loss
    return None if all(bool(p.isfinite().all()) for p in model.parameters()) else "a weight was"


def _labelled(graphs: GraphSet, indices: Any, part: str) -> Ints:
    chosen: Ints = np.asarray(indices, dtype=np.int64)
    missing = int((~graphs.labelled[chosen]).sum())
    if missing:
        raise TrainingError(
            f"{graphs.name}: {missing} graphs of the {part} part have no label. Leave them out of the split"
        )
    return chosen


def _patience(progress: Progress, config: TrainConfig, selection: Selection) -> str | None:
    if config.early_stopping is None or progress.best_score is None:
        return None
    waited = progress.epoch - progress.best_epoch
    return f"no better {selection.label} in {waited} epochs" if waited >= config.early_stopping else None


def _fit_direct(
    model: DirectModel, graphs: GraphSet, train: Ints, val: Ints, config: TrainConfig, selection: Selection,
    by_graph: Tensor | None, on_epoch: OnEpoch | None,
) -> Fit:  # fmt: skip
    """Fit a model without epochs; its history is one line, with the log loss or RMSE of both parts."""
    began = time.perf_counter()
    task, target = selection.task, selection.target
    w = task.graph_weights(graphs, train, config)
    if by_graph is not None:
        of_graph = by_graph.double().numpy()[train]
        w = of_graph if w is None else w * of_graph
    with _threads(config.threads):
        model.fit_graphs(graphs, train, val, config.seed, w)
        loss = task.mean(task.fitting, graphs.y[train], model.predict_graphs(graphs, train), target)
        y, p = graphs.y[val], model.predict_graphs(graphs, val)
    assert loss is not None  # there are training graphs
    val_loss = val_accuracy = score = None
    if len(val):
        val_loss = task.mean(task.fitting, y, p, target)
        val_accuracy = task.mean("accuracy", y, p, target) if "accuracy" in task.metrics else None
    if val_loss is not None:
        score = selection.score(y, p, val_accuracy, val_loss)
    epoch = Epoch(
        epoch=1, lr=0.0, loss=loss, val_loss=val_loss, val_accuracy=val_accuracy,
        seconds=time.perf_counter() - began, val_score=score,
    )  # fmt: skip
    if on_epoch is not None:
        on_epoch(epoch, Progress(best_epoch=1, best_score=score, history=[epoch]))
    return Fit(
        best_epoch=1, best_score=score, selected_by=selection.name, history=(epoch,),
        notes=selection.notes(),
    )  # fmt: skip


@contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
