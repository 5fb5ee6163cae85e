"""A run: from settings and graphs to a folder with the model, its scores and everything needed to repeat it.

    config.toml       the settings, all of them           split.json       which graph was in which part
    state.safetensors the state after the last epoch; removed at the end
    model.safetensors the weights of the best epoch       history.csv      one line per epoch
    README.md         the model card
    predictions.csv   the test graphs                     metrics.json     the scores; written last

`start` starts a run; `resume` continues one that was stopped in any way, and gives the same bytes of the model.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from asapool import __version__
from asapool.data import GraphSet, Split
from asapool.data.reading import Reading
from asapool.errors import AsapoolError, CheckpointError, ConfigError, TrainingError
from asapool.files import read_json, remove, working_in, write_json, write_text
from asapool.kernels.shards import Shard
from asapool.models import DirectModel, GraphModel
from asapool.models.batches import check_molecules
from asapool.models.methods import method
from asapool.nn.norms import NodeNorm
from asapool.training.device import check_shared, resolve_device
from asapool.training.fitting import Fit, OnEpoch, fit
from asapool.training.new_model import new_model
from asapool.training.parallel import Processes
from asapool.training.results import evaluate_run, write_run
from asapool.training.selection import resolve_rule
from asapool.training.settings import RunSettings, read_for
from asapool.training.tasks import check_target, task_of

logger = logging.getLogger(__name__)
FILES = (
    "metrics.json",
    "ensemble.json",
    "model.safetensors",
    "predictions.csv",
    "history.csv",
    "state.safetensors",
    "config.toml",
    "split.json",
)
HEADING = f"The settings of an asapool {__version__} run. Repeat it with: asapool train --config THIS_FILE"


def start(
    settings: RunSettings,
    graphs: GraphSet,
    folder: str | PathLike[str],
    *,
    overwrite: bool = False,
    on_epoch: OnEpoch | None = None,
    reading: Reading | None = None,
    processes: Processes | None = None,
) -> dict[str, Any]:
    """Train in a new folder.

    Args:
        settings: all four tables.
        graphs: the data set that the settings name.
        folder: where the files go.
        overwrite: replace an existing run.
        on_epoch: called after every epoch.
        reading: counts of what was left out of the data set, for metrics.json.
        processes: those that share every batch; None = this one alone.

    Returns:
        The content of metrics.json.
    """
    split = settings.split.make(graphs)
    several = processes is not None and processes.size > 1  # one thread each
    settings = settle(settings, graphs, split, threads=1 if several else torch.get_num_threads())
    with claimed(Path(folder), settings, split, overwrite=overwrite) as path:
        return _carry_out(settings, graphs, split, path, on_epoch, reading, False, processes)


@contextmanager
def claimed(folder: Path, settings: RunSettings, split: Split, *, overwrite: bool) -> Iterator[Path]:
    """Lock a folder for a new run, and write its settings; a folder that contains a run is refused."""
    with working_in(folder) as path:
        if (path / "runs.jsonl").exists():
            raise ConfigError(
                f"{path}: contains the training runs of a cross-validation or of tables, and a run needs its own "
                "folder. Choose another with --out"
            )
        if any((path / name).exists() for name in FILES) and not overwrite:
            raise ConfigError(
                f"{path}: already contains a run. Continue it with --resume {path}, replace it with --overwrite, "
                "or choose another folder with --out"
            )
        for name in (*FILES, "report.html"):  # metrics.json first, so that a kill in between leaves no finished run
            remove(path / name)
        write_json(path / "split.json", split.to_json(), durable=True)
        write_text(path / "config.toml", settings.to_toml(HEADING), durable=True)
        yield path


def resume(
    folder: str | PathLike[str], *, on_epoch: OnEpoch | None = None, mix_versions: bool = False,
    processes: Processes | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Continue a run that was stopped, with any number of processes; a finished one is only read.

    Args:
        folder: of the run.
        on_epoch: called after every epoch.
        mix_versions: continue a run of a version that gives different numbers.
        processes: those that share every batch; None = this one alone.

    Returns:
        The content of metrics.json.
    """
    path = Path(folder)
    if not (path / "config.toml").exists():
        raise CheckpointError(
            f"{path}: contains no run (there is no config.toml). Start one with: asapool train --out {path}"
        )
    with working_in(path):
        if (path / "metrics.json").exists():
            metrics: dict[str, Any] = read_json(path / "metrics.json")
            return metrics
        settings, split = RunSettings.from_file(path / "config.toml"), Split.load(path / "split.json")
        if settings.train.select_by == "auto":  # 0.1.0 wrote no rule, because it had only one
            settings = replace(settings, train=replace(settings.train, select_by="paper"))
        if settings.data.task is None:  # 0.1.0 supported only classes
            settings = replace(settings, data=replace(settings.data, task="classification"))
        reading = read_for(settings.data, settings.split)
        graphs = reading.graphs
        split.check(graphs)
        return _carry_out(settings, graphs, split, path, on_epoch, reading, mix_versions, processes)


def extent(folder: str | PathLike[str]) -> tuple[int, int]:
    """Epochs of a run and graphs of an epoch (training and validation), for a progress bar; zeros if unknown."""
    try:
        epochs, split = (
            RunSettings.from_file(Path(folder) / "config.toml").train.epochs,
            read_json(Path(folder) / "split.json"),
        )
        return epochs, len(split["train"]) + len(split["val"])
    except (AsapoolError, KeyError, TypeError):
        return 0, 0


def new_folder(root: Path, name: str) -> Path:
    """The first of root/name, root/name-2, root/name-3, … that does not exist."""
    safe = "".join(c if c.isalnum() or c in "-_.+" else "-" for c in name).strip(".-") or "run"
    number = 2
    path = root / safe
    while path.exists():
        path, number = root / f"{safe}-{number}", number + 1
    return path


@dataclass(frozen=True)
class _Work:
    """What every process of a training run needs to know."""

    settings: RunSettings
    graphs: GraphSet
    split: Split
    owner: dict[str, str]
    mix_versions: bool

    def build(self) -> GraphModel:
        """The untrained model."""
        return new_model(self.settings.model, self.graphs, self.split.train, self.settings.train)

    def fit(self, model: GraphModel, state: Path | None, on_epoch: OnEpoch | None, shard: Shard | None) -> Fit:
        """Train it."""
        return fit(
            model, self.graphs, self.split, self.settings.train, on_epoch=on_epoch, state_file=state, owner=self.owner,
            mix_versions=self.mix_versions, shard=shard,
        )  # fmt: skip


def follow(shard: Shard, work: _Work, state: bytes | None) -> None:
    """The work of a process that shares the batches of a training run and writes no files."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "state.safetensors"
        if state is not None:
            file.write_bytes(state)
        work.fit(work.build(), None if state is None else file, None, shard)


def _carry_out(
    settings: RunSettings, graphs: GraphSet, split: Split, path: Path, on_epoch: OnEpoch | None,
    reading: Reading | None, mix_versions: bool, processes: Processes | None,
) -> dict[str, Any]:  # fmt: skip
    train = settings.train.to_dict()
    if train.get("select_by") == "paper":  # the only rule of 0.1.0, which did not write it
        del train["select_by"]
    train.pop("device", None)
    owner = {
        "settings": _digest({"model": settings.model.to_dict(), "train": train}),
        "data": graphs.fingerprint,
        "split": _digest(split.to_json()),
    }
    work, state = _Work(settings, graphs, split, owner, mix_versions), path / "state.safetensors"
    model = work.build()
    processes = Processes() if processes is None else processes
    device = resolve_device(settings.train.device)
    if processes.size > 1:  # refused before any process starts
        check_shared(device, processes.size, processes.gpus)
    if processes.size > 1:
        _check_shareable(model)
    advice = f"Continue with: asapool train --resume {path}"
    saved = state.read_bytes() if processes.size > 1 and state.exists() else None
    with processes.sharing(follow, work, saved, advice=advice) as shard:
        done = work.fit(model, state, on_epoch, shard)
    metrics = evaluate_run(settings, graphs, split, model, done)
    if model.origin is not None:
        metrics["started_from"] = model.origin
    if reading is not None:
        metrics["data"] |= reading.counts()
    if processes.size > 1:
        metrics["processes"] = processes.size
    write_run(path, settings, graphs, split, model, done, metrics)
    if done.diverged:
        raise TrainingError(
            f"{done.stopped}; the best weights before that, of epoch {done.best_epoch}, are in "
            f"{path / 'model.safetensors'}. "
            "Lower train.lr or set train.clip"
        )
    return metrics


def _check_shareable(model: GraphModel) -> None:
    """Refuse a method that cannot be trained in several processes."""
    if isinstance(model, DirectModel):
        raise ConfigError(
            f"the method {model.config.method!r} is not trained by gradient descent, so there are no batches to share "
            "among processes. Leave out -j"
        )
    unshared = [name for name, m in model.named_modules() if isinstance(m, _BatchNorm) and not isinstance(m, NodeNorm)]
    if unshared:
        logger.info(
            "the batch normalisation %s of the method %r uses only the graphs of each process, so the results depend "
            "on the number of processes", unshared[0], model.config.method,
        )  # fmt: skip


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


# (nodes + edges) × epochs: training of this size takes about ten seconds with the reference backend, less than
# compiling the fused kernels
SMALL_JOB = 750_000


def settle(settings: RunSettings, graphs: GraphSet, split: Split, threads: int, trainings: int = 1) -> RunSettings:
    """Resolve the settings that depend on the data and the machine, so that they are recorded with the run.

    These are the number of threads (sums depend on it), the rule that chooses the epoch, and the backend if it is
    "auto".

    Args:
        settings: as given.
        graphs: the data set.
        split: its parts.
        threads: of torch, if the settings have none.
        trainings: how many times the model is trained.
    """
    rule = resolve_rule(
        settings.train.select_by, task_of(graphs.target), graphs.y[split.train], settings.train.weighted
    )
    train = replace(settings.train, threads=settings.train.threads or threads, select_by=rule)
    check_target(graphs, split.train, train)
    check_molecules(settings.model, graphs)
    model = settings.model
    if is_small(settings, len(graphs.x) + len(graphs.col), trainings):
        model = replace(model, backend="reference")
    return replace(settings, model=model, train=train)


def is_small(settings: RunSettings, size: int, trainings: int = 1) -> bool:
    """Whether training is too small to be worth compiling kernels.

    Depends only on settings and sizes, never on the machine, so that the same command gives the same bytes everywhere.
    The model keeps the backend, so its predictions do not depend on the number of graphs.

    Args:
        settings: of the run.
        size: nodes and edges of all graphs together.
        trainings: how many times the model is trained.

    >>> settings = RunSettings.from_dict({"train": {"epochs": 100}})
    >>> is_small(settings, 4_560), is_small(settings, 162_000)
    (True, False)
    """
    chosen = method(settings.model.method)
    return (
        settings.model.backend == "auto"
        and settings.model.max_neighbours is None  # for huge graphs, whose memory only the fused backend bounds
        and settings.train.device == "cpu"
        and chosen.builtin
        and chosen.trainer == "gradient"
        and size * settings.train.epochs * trainings <= SMALL_JOB
    )
