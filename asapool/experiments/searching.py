"""`tune` and `tune_nested`: a search in a folder, on one split or inside every fold of a cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asapool.experiments.engines import InlineEngine, LocalEngine
from asapool.experiments.plan import in_memory
from asapool.experiments.protocols import SplitFile
from asapool.experiments.space import Space, Tables
from asapool.experiments.store import Store
from asapool.experiments.tuning import Search, Trial, Tuner, difference, sentence
from asapool.files import write_json, write_text
from asapool.training.config import DEFAULT_METHOD, preset
from asapool.training.settings import RunSettings, overlay, resolve
from asapool.training.tasks import task_of

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.execute import Engine

HEADING = "The best settings of a search. Train with them: asapool train --config THIS_FILE"
OnTrial = Callable[[Trial, Search], None]


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
    **options: Any,
) -> Search:
    """Search for settings by the score on a validation part; the test part decides nothing.

    The same call in the same folder continues a search that was stopped. Writes config.toml with the best settings and
    search.json with all trials.

    Args:
        source: a data set, or what `asapool.load` reads.
        folder: where everything is kept.
        trials: how many settings to try, the default ones included.
        seconds: after which no trial is begun.
        space: a Space, a TOML file, or None for the one that comes with asapool.
        method: what to tune; None = asap+.
        settings: tables "data", "model" and "train" of settings that all trials share.
        jobs: trainings at the same time; one trains in this process.
        engine: trains instead.
        on_trial: called with every trial that ends, and the search so far.
        options: seed, fold, folds, protocol, splits, sampler, prune and metric of `Tuner`.

    Returns:
        The trials, among them the best.
    """
    graphs, base = _resolved(source, method, settings)
    wanted = space if isinstance(space, Space) else Space.read(space, str(base["model"]["method"]))
    with Store.open(folder) as store:
        tuner = Tuner(graphs=graphs, space=wanted, base=base, store=store, **_read_splits(options))
        search = tuner.search(engine or _local(jobs), trials, seconds, on_trial)
        write_json(Path(folder) / "search.json", to_dict(search, graphs))
        write_text(Path(folder) / "config.toml", search.best.settings.to_toml(HEADING))
    return search


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
        folder: where everything is kept.
        trials: of every fold.
        space: see `tune`.
        method: see `tune`.
        settings: see `tune`.
        jobs: trainings at the same time.
        engine: trains instead.
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
    """The outer score of every fold beside the inner one; their difference is how much the search flattered itself."""
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
    usual = preset(source.name, name, len(source), source.target.kind)
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
