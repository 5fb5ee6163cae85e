"""The state of training after an epoch: weights, Adam's moments, RNG state, the best weights, the history.

Everything is in one safetensors file (no pickle), which is renamed into place: a process killed at any moment leaves
the state of the last finished epoch, and continuing from it gives the same bytes as an uninterrupted run.

A power failure may destroy the state: it is not synced to disk, which would slow down every epoch on a small data set.
Settings, split, model, metrics and the records of a store are synced, so only an unfinished run can be lost, never a
finished one.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn

from asapool import __version__
from asapool.errors import CheckpointError
from asapool.files import writing
from asapool.models.checkpoint import NUMERICS
from asapool.training.adam import Adam

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One line of the history; the validation columns are None without a validation part."""

    epoch: int
    lr: float
    loss: float  # mean over the training graphs, penalty included
    val_loss: float | None
    val_accuracy: float | None
    seconds: float
    val_score: float | None = None  # the score of train.select_by


@dataclass(kw_only=True)
class Progress:
    """The progress of training."""

    best: dict[str, Tensor] = field(default_factory=dict)  # weights of the best epoch
    best_epoch: int = 0
    best_score: float | None = None  # on the validation part, by train.select_by
    best_loss: float = math.inf  # validation loss of the best epoch
    history: list[Epoch] = field(default_factory=list)
    mean: dict[str, Tensor] = field(default_factory=dict)  # of the weights of the last epochs, if train.average > 0

    @property
    def epoch(self) -> int:
        """Number of finished epochs."""
        return len(self.history)


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all weights and buffers."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def save_state(
    path: str | PathLike[str], model: nn.Module, adam: Adam, generator: torch.Generator,
    progress: Progress, owner: dict[str, Any],
) -> None:  # fmt: skip
    """Write the state.

    Args:
        path: the file.
        model, adam, generator, progress: what is saved; dropout draws from the generator.
        owner: digests of settings, data and split, which must be the same when the state is loaded.
    """
    from safetensors.torch import save

    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in progress.best.items()}
    tensors |= {f"mean.{name}": value for name, value in progress.mean.items()}
    tensors |= {f"adam.{name}": value for name, value in adam.state().items()}
    tensors["chance"] = generator.get_state()  # the name is that of 0.1.0
    # a tensor rather than text, because it is written after every epoch and grows with every epoch
    tensors["history"] = torch.tensor([_row(epoch) for epoch in progress.history], dtype=torch.float64)
    vectors, index = pack(tensors)
    header = {
        "version": VERSION,
        "asapool": __version__,
        "numerics": NUMERICS,
        "owner": owner,
        "best_epoch": progress.best_epoch,
        "best_score": progress.best_score,
        "best_loss": progress.best_loss if math.isfinite(progress.best_loss) else None,
        "index": index,
    }
    content = save(vectors, {"asapool.state": json.dumps(header)})
    with writing(path) as out:
        out.write(content)


def load_state(
    path: str | PathLike[str], model: nn.Module, adam: Adam, generator: torch.Generator,
    owner: dict[str, Any], *, mix_versions: bool = False,
) -> Progress:  # fmt: skip
    """Restore model, optimiser and generator.

    Args:
        path: a file written by save_state.
        model, adam, generator: what is restored.
        owner: as given to save_state.
        mix_versions: accept the state of a version that gives different numbers.

    Returns:
        The progress.
    """
    tensors, header = _read(path)
    if header.get("version") != VERSION:
        raise CheckpointError(f"{path}: has version {header.get('version')!r}, expected {VERSION}. Train again")
    numerics, writer = header.get("numerics", 1), header.get("asapool", "0.1.0")
    if numerics != NUMERICS and not mix_versions:
        raise CheckpointError(
            f"{path}: was written by asapool {writer}, which gives different numbers than {__version__}. "
            "Finish the run with that version, or continue it with mix_versions (--mix-versions)"
        )
    if writer != __version__:
        numbers = "the same numbers" if numerics == NUMERICS else "different numbers"
        warnings.warn(
            f"{path}: was started by asapool {writer} and is continued by {__version__}, which gives {numbers}",
            stacklevel=2,
        )
    for name, value in owner.items():
        if header["owner"].get(name) != value:
            raise CheckpointError(
                f"{path}: belongs to a run with another {name} ({header['owner'].get(name)!r}, now {value!r}). "
                "Continue with the settings and data of that run, or start a new one in another folder"
            )
    try:
        model.load_state_dict(_part(tensors, "model."))
        adam.load_state(_part(tensors, "adam."))
        generator.set_state(tensors["chance"])
        return Progress(
            best=_part(tensors, "best."),
            mean=_part(tensors, "mean."),
            best_epoch=header["best_epoch"],
            best_score=header.get("best_score", header.get("best_accuracy")),  # 0.1.0 chose by accuracy
            best_loss=math.inf if header.get("best_loss") is None else header["best_loss"],
            history=[_epoch(row) for row in tensors["history"].tolist()],
        )
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"{path}: does not match this model ({error}). Start a new run in another folder"
        ) from None


def pack(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], list[list[Any]]]:
    """Concatenate tensors into one vector per dtype; the index lists name, dtype and shape in that order.

    A model has a few hundred small tensors, and a file with a few large ones is written several times faster.

    >>> pack({"a": torch.ones(2), "b": torch.zeros(1, 1)})
    ({'float32': tensor([1., 1., 0.])}, [['a', 'float32', [2]], ['b', 'float32', [1, 1]]])
    """
    kinds: dict[str, list[Tensor]] = {}
    index: list[list[Any]] = []
    for name, value in tensors.items():
        kind = str(value.dtype).removeprefix("torch.")
        kinds.setdefault(kind, []).append(value.detach().cpu().reshape(-1))
        index.append([name, kind, list(value.shape)])
    return {kind: torch.cat(values) for kind, values in kinds.items()}, index


def unpack(vectors: dict[str, Tensor], index: list[list[Any]]) -> dict[str, Tensor]:
    """The tensors that pack was given, as copies."""
    place = dict.fromkeys(vectors, 0)
    tensors = {}
    for name, kind, shape in index:
        start, place[kind] = place[kind], place[kind] + math.prod(shape)
        tensors[name] = vectors[kind][start : place[kind]].reshape(shape).clone()
    return tensors


def _row(epoch: Epoch) -> list[float]:
    """An epoch as numbers; None becomes NaN."""
    return [math.nan if value is None else float(value) for value in vars(epoch).values()]


def _epoch(row: list[float]) -> Epoch:
    """The epoch that _row was given."""
    names = [f.name for f in fields(Epoch)][: len(row)]  # 0.1.0 has one column fewer
    values: dict[str, Any] = {k: None if math.isnan(v) else v for k, v in zip(names, row, strict=True)}
    return Epoch(**values | {"epoch": int(row[0])})


def _read(path: str | PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["asapool.state"])
            vectors = {kind: file.get_tensor(kind) for kind in file.keys()}  # noqa: SIM118 (not a dict)
            return unpack(vectors, header["index"]), header
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
        raise CheckpointError(f"{path}: is not a training state ({error}). Delete it and train again") from None


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def average_weights(progress: Progress, model: nn.Module, epochs: int) -> None:
    """Update the mean with the weights of a finished epoch: m ← m + (w − m) / min(e, epochs), e counted from 1.

    Statistics of batch norms are averaged like weights; integers are copied.

    Args:
        progress: has the mean, and the history of the epochs before this one.
        model: the model after the epoch.
        epochs: about how many epochs count; 0 = no mean is kept.
    """
    if epochs == 0:
        return
    now, share = snapshot(model), 1 / min(progress.epoch + 1, epochs)
    for name, value in now.items():
        if value.is_floating_point() and name in progress.mean:
            now[name] = torch.lerp(progress.mean[name].to(value.device), value, share)
    progress.mean = now


@contextmanager
def averaged(progress: Progress, model: nn.Module) -> Iterator[None]:
    """Context in which the model has the mean weights, if there are any."""
    if not progress.mean:
        yield
        return
    current = snapshot(model)
    model.load_state_dict(progress.mean)
    try:
        yield
    finally:
        model.load_state_dict(current)
