"""`tune` and `tune_nested`: a search in a folder, on one split or inside every fold of a cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from asapool.errors import ConfigError
from asapool.experiments.engines import InlineEngine, LocalEngine
from asapool.experiments.plan import in_memory
from asapool.experiments.protocols import SplitFile
from asapool.experiments.space import Space, Tables
from asapool.experiments.store import Store
from asapool.experiments.tuning import Search, Trial, Tuner, difference, sentence
from asapool.files import write_json, write_text
from asapool.training.config import DEFAULT_METHOD, preset
from asapool.training.run import resume, settle, start
from asapool.training.settings import RunSettings, SplitConfig, overlay, resolve
from asapool.training.tasks import task_of

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.data.reading import Reading
    from asapool.experiments.execute import Engine

HEADING = "The best settings of a search. Train with them: asapool train --config THIS_FILE"
OnTrial = Callable[[Trial, Search], None]
# the protocol of a search → split.kind of a run with the same parts
SPLIT_KINDS: dict[str, Literal["authors", "stratified-folds", "scaffold-folds"]] = {
    "authors": "authors",
    "stratified": "stratified-folds",
    "scaffold": "scaffold-folds",
}


def tune(
    source: GraphSet | str | PathLike[str],
    folder: str | PathLike[str],
    *,
    trials: int = 20,
    seconds: float = math.inf,
    space: Space | str | PathLike[str] | None = None,
    method: str | None = None,
    settings: Tables | None = None,
    jobs: int = 1,
    engine: Engine | None = None,
    on_trial: OnTrial | None = None,
    train_best: bool = False,
    **options: Any,
) -> Search:
    """Search for settings by the score on a validation part; the test part decides nothing.

    The same call in the same folder resumes an interrupted search. Writes config.toml with the best settings and
    search.json with all trials.

    Args:
        source: a data set, or what `asapool.load` reads.
        folder: where everything is stored.
        trials: how many settings to try, including the defaults.
        seconds: time limit after which no trial starts.
        space: a Space, a TOML file, or None for the one that comes with asapool.
        method: what to tune; None = asap+.
        settings: tables "data", "model" and "train" of settings that all trials share.
        jobs: runs at a time; with 1, training happens in this process.
        engine: executes the runs instead of local processes.
        on_trial: called with every trial that ends, and the search so far.
        train_best: then train the best settings on the training and validation parts together, see `train_best_trial`.
        options: seed, fold, folds, protocol, splits, sampler, prune and metric of `Tuner`.

    Returns:
        The trials, among them the best.
    """
    if train_best and options.get("splits") is not None:
        raise ConfigError("a split file has many splits, and a final model needs one. Leave out train_best or splits")
    graphs, base = _resolved(source, method, settings)
    wanted = space if isinstance(space, Space) else Space.read(space, str(base["model"]["method"]))
    with Store.open(folder) as store:
        tuner = Tuner(graphs=graphs, space=wanted, base=base, store=store, **_read_splits(options))
        search = tuner.search(engine or _local(jobs), trials, seconds, on_trial)
        write_search(search, graphs, folder)
    if train_best:
        train_best_trial(search, graphs, folder)
    return search


def write_search(search: Search, graphs: GraphSet, folder: str | PathLike[str]) -> dict[str, Any]:
    """Write search.json and config.toml with the best settings; returns the content of search.json."""
    content = to_dict(search, graphs)
    write_json(Path(folder) / "search.json", content)
    write_text(Path(folder) / "config.toml", search.best.settings.to_toml(HEADING))
    return content


def train_best_trial(
    search: Search, graphs: GraphSet, folder: str | PathLike[str], reading: Reading | None = None
) -> dict[str, Any]:
    """Train the best settings on the training and validation parts together; the run is in FOLDER/best.

    There is no validation part left to choose an epoch by, so it trains for as many epochs as the best trial's chosen
    one, and keeps the last. The test part is that of the search, so its score stays honest. Given the reading, the same
    call finishes a training that was stopped.

    Args:
        search: a finished search.
        graphs: its data set.
        folder: of the search.
        reading: what reading left out of the data set, for the record.

    Returns:
        The content of metrics.json.
    """
    best, path = search.best, Path(folder) / "best"
    run = best.record.run
    split = SplitConfig(
        kind=SPLIT_KINDS[run.protocol], seed=run.seed, fold=run.fold, folds=run.folds, merge_validation=True
    )
    train = replace(best.settings.train, epochs=best.record.best_epoch or best.settings.train.epochs)
    settings = replace(best.settings, split=split, train=train)
    settings = settle(settings, graphs, split.make(graphs), threads=torch.get_num_threads())
    known = path / "config.toml"
    if reading is not None and known.exists() and RunSettings.from_file(known) == settings:
        return resume(path)
    return start(settings, graphs, path, overwrite=True, reading=reading)


def tune_nested(
    source: GraphSet | str | PathLike[str],
    folder: str | PathLike[str],
    *,
    trials: int = 20,
    space: Space | str | PathLike[str] | None = None,
    method: str | None = None,
    settings: Tables | None = None,
    jobs: int = 1,
    engine: Engine | None = None,
    on_trial: OnTrial | None = None,
    **options: Any,
) -> list[Search]:
    """Nested cross-validation: search inside every fold, and score the best of each on its test part.

    Args:
        source: a data set, or what `asapool.load` reads.
        folder: where everything is stored.
        trials: per fold.
        space: see `tune`.
        method: see `tune`.
        settings: see `tune`.
        jobs: runs at a time.
        engine: executes the runs instead of local processes.
        on_trial: called with every trial that ends, and the search of its fold so far.
        options: seed, folds, protocol, splits, sampler, prune and metric of `Tuner`.

    Returns:
        The search of every fold.
    """
    graphs, base = _resolved(source, method, settings)
    wanted = space if isinstance(space, Space) else Space.read(space, str(base["model"]["method"]))
    options = _read_splits(options)
    folds = len(options["splits"].folds) if options.get("splits") is not None else options.pop("folds", 10)
    searches = []
    with Store.open(folder) as store:
        for fold in range(folds):
            tuner = Tuner(graphs=graphs, space=wanted, base=base, store=store, fold=fold, folds=folds, **options)
            searches.append(tuner.search(engine or _local(jobs), trials, on_trial=on_trial))
            write_json(Path(folder) / "nested.json", nested_summary(searches, graphs))
    return searches


def to_dict(search: Search, graphs: GraphSet) -> dict[str, Any]:
    """Plain data for JSON."""
    best = search.best
    compared = None
    if search.default is not None and best.number != search.default.number:
        compared = difference(best, search.default, graphs, search.metric)
    return {
        "kind": "search", "data": graphs.name, "metric": search.metric, "greater": search.greater, "best": best.number,
        "sentence": sentence(search, graphs), "against_default": compared,
        "trials": [
            {
                "number": t.number, "chosen": dict(t.chosen), "validation": t.value, "epochs": t.record.epochs,
                "test": (t.record.test or {}).get(search.metric) if t.number in (best.number, 0) else None,
                "seconds": t.record.seconds, "pruned": t.pruned, "failure": t.record.failure,
            }
            for t in search.trials
        ],
    }  # fmt: skip


def nested_summary(searches: Sequence[Search], graphs: GraphSet) -> dict[str, Any]:
    """The outer score of every fold beside the inner one; the difference is the optimism of the search."""
    metric = searches[0].metric
    rows = [
        {
            "fold": s.fold, "trial": s.best.number, "inner": s.best.value,
            "outer": (s.best.record.test or {}).get(metric),
            "default_outer": None if s.default is None else (s.default.record.test or {}).get(metric),
            "chosen": dict(s.best.chosen),
        }
        for s in searches
    ]  # fmt: skip

    def mean(name: str) -> float | None:
        values = [float(row[name]) for row in rows if isinstance(row[name], (int, float))]  # type: ignore[arg-type]
        return float(np.mean(values)) if values else None

    inner, outer = mean("inner"), mean("outer")
    return {
        "kind": "nested", "data": graphs.name, "metric": metric, "folds": rows, "inner": inner, "outer": outer,
        "default_outer": mean("default_outer"),
        "optimism": None if inner is None or outer is None else inner - outer,
        "label": task_of(graphs.target).metrics[metric].label,
    }  # fmt: skip


def _resolved(
    source: GraphSet | str | PathLike[str], method: str | None, settings: Tables | None
) -> tuple[GraphSet, dict[str, dict[str, Any]]]:
    given: dict[str, dict[str, Any]] = {name: dict(table) for name, table in (settings or {}).items()}
    given.setdefault("model", {})
    if method is not None:
        given["model"]["method"] = method
    if isinstance(source, (str, PathLike)):
        chosen, graphs = resolve(overlay(given, {"data": {"source": str(source)}}))
        return graphs, chosen.to_dict()
    name = given["model"].get("method", DEFAULT_METHOD)
    memory = {"data": in_memory(source.name).to_dict()}
    usual = preset(source.name, name, len(source), source.target.kind, given)
    layers = overlay(memory, usual, {"model": {"method": name}}, given)
    return source, RunSettings.from_dict(layers).to_dict()


def _read_splits(options: dict[str, Any]) -> dict[str, Any]:
    splits = options.get("splits")
    if splits is None or isinstance(splits, SplitFile):
        return options
    file = SplitFile.read(splits)
    return options | {"splits": file, "protocol": "splits", "folds": len(file.folds)}


def _local(jobs: int) -> Engine:
    return InlineEngine() if jobs == 1 else LocalEngine(jobs)
