"""Search for settings: Optuna proposes, the engines train, and the validation part alone decides.

A trial is an ordinary Run: it is stored in runs.jsonl and never trained twice. Proposals and their results are in
trials-FOLD.journal, Optuna's own file. The first trial has the default settings. The test part of the split is scored
with every run but never influences a choice.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from asapool.errors import CheckpointError, ConfigError, MissingExtraError, TrainingError
from asapool.experiments.protocols import SplitFile
from asapool.experiments.record import RunRecord
from asapool.experiments.run import PRUNED, Run, best_value
from asapool.experiments.space import Choice, Space, Tables
from asapool.experiments.store import Store
from asapool.files import read_json, write_json
from asapool.models.batches import check_molecules
from asapool.training.tasks import task_of

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.execute import Engine, OnProgress
    from asapool.training.settings import RunSettings

ETA = 3  # at a rung, a trial must be in the best third of those that reached it so far (successive halving)
RUNGS = (1 / 9, 1 / 3)  # of the epochs
FEWEST = 3  # trials that must have reached a rung before it prunes
DEFAULT_TRIAL = 0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One proposed setting and its result.

    Args:
        number: from 0; trial 0 has the default settings.
        chosen: "model.hidden" and the like → value.
        settings: all settings of the run.
        value: validation score; None if the trial was pruned or failed.
        record: of its run.
    """

    number: int
    chosen: Mapping[str, Any]
    settings: RunSettings
    value: float | None
    record: RunRecord

    @property
    def pruned(self) -> bool:
        """Whether it was stopped early because it fell behind the other trials."""
        return (self.record.failure or "").startswith(PRUNED)


@dataclass(frozen=True, kw_only=True)
class Search:
    """The result of a search on one split.

    Args:
        trials: in the order of their numbers.
        metric: the validation score that decided.
        greater: whether greater is better.
        fold: of the split.
    """

    trials: tuple[Trial, ...]
    metric: str
    greater: bool
    fold: int = 0

    @property
    def best(self) -> Trial:
        """The best finished trial; the earlier of equals."""
        finished = [trial for trial in self.trials if trial.value is not None]
        if not finished:
            raise TrainingError("no trial was finished. The reasons are in runs.jsonl")
        sign = -1 if self.greater else 1
        return min(finished, key=lambda trial: (sign * (trial.value or 0.0), trial.number))

    @property
    def default(self) -> Trial | None:
        """The trial with the default settings, if it was finished."""
        return next((t for t in self.trials if t.number == DEFAULT_TRIAL and t.value is not None), None)


@dataclass(kw_only=True)
class Tuner:
    """A search on one split of one data set, in a folder.

    Args:
        graphs: the data set.
        space: the settings to search.
        base: tables of the settings that all trials start from.
        store: where records are kept.
        seed: of the split, the runs and the sampler.
        fold: of the split; its validation part decides.
        folds: how many there are.
        protocol: how folds are made.
        splits: published splits.
        sampler: "tpe", "random" or "grid".
        prune: stop trials that fall behind.
        metric: the validation score that decides; None = the default of the task.
    """

    graphs: GraphSet
    space: Space
    base: Tables
    store: Store
    seed: int = 0
    fold: int = 0
    folds: int = 10
    protocol: str = "stratified"
    splits: SplitFile | None = None
    sampler: str = "tpe"
    prune: bool = True
    metric: str | None = None
    _open: dict[str, list[tuple[int, dict[str, Any]]]] = field(default_factory=dict, init=False)  # Run key → trials
    _done: dict[int, Trial] = field(default_factory=dict, init=False)
    _rungs: dict[int, list[float]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.space.check(self.base)
        task = task_of(self.graphs.target)
        default = self.space.settings(self.base, {})
        part = self._run(default).split(self.graphs, self.splits)
        if self.splits is not None:
            self.splits.check(self.graphs)
        check_molecules(default.model, self.graphs)
        rule = task.default_rule(self.graphs.y[part.train], default.train.weighted)
        name = self.metric or (rule if rule in task.metrics else task.headline)
        if name not in task.metrics:
            raise ConfigError(f"--metric must be one of {', '.join(task.metrics)}, got {name!r}")
        self.metric, self.greater = name, task.metrics[name].greater

    def search(
        self,
        engine: Engine,
        trials: int,
        seconds: float = math.inf,
        on_trial: Callable[[Trial, Search], None] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Search:
        """Propose and train until `trials` trials exist or the time limit is reached.

        Args:
            engine: executes the runs.
            trials: total number, including those of earlier calls.
            seconds: time limit after which no trial starts; running ones finish.
            on_trial: called with every trial that ends, and the search so far.
            on_progress: called from time to time with the epochs of the running trials.
        """
        self._claim()
        study = self._study()
        self._recall(study)
        end = time.monotonic() + seconds
        inputs: dict[str, Any] = {self.graphs.fingerprint: self.graphs}
        inputs |= {} if self.splits is None else {self.splits.digest: self.splits}
        records = engine.work(self._proposals(study, trials, end), inputs, on_progress or (lambda *news: None))
        for record in records:
            self.store.append(record)
            for trial in self._tell(study, record):
                if on_trial is not None:
                    on_trial(trial, self.result())
        return self.result()

    def result(self) -> Search:
        """The trials so far."""
        assert self.metric is not None
        trials = tuple(self._done[number] for number in sorted(self._done))
        return Search(trials=trials, metric=self.metric, greater=self.greater, fold=self.fold)

    def _proposals(self, study: Any, trials: int, end: float) -> Iterator[Run]:
        """Runs to train, each proposed only when the engine can take it, so that it uses all earlier results."""
        waiting = [t for t in study.trials if not t.state.is_finished()]  # of an earlier, interrupted call
        grid = list(self.space.grid()) if self.sampler == "grid" else None
        while True:
            if waiting:
                number, chosen = waiting[0].number, self._chosen(waiting.pop(0))
            elif (
                len(study.trials) >= (trials if grid is None else min(trials, len(grid) + 1)) or time.monotonic() > end
            ):
                return
            else:
                number, chosen = self._ask(study, grid)
            run = self._run(self.space.settings(self.base, chosen), number)
            known = Store.read(self.store.folder)[run.key] if self.store.finished(run.key) else None
            running = run.key in self._open
            self._open.setdefault(run.key, []).append((number, chosen))
            if known is not None:  # the setting was tried before, or the process was killed after training it
                self._tell(study, known)
            elif not running:
                yield run

    def _ask(self, study: Any, grid: list[dict[str, Any]] | None) -> tuple[int, dict[str, Any]]:
        import optuna

        number = len(study.trials)
        # a new sampler for every trial: a resumed search proposes what an uninterrupted one would have
        kind = optuna.samplers.TPESampler if self.sampler == "tpe" else optuna.samplers.RandomSampler
        study.sampler = kind(seed=(self.seed * 1_000_003 + number) % 2**32)
        if number == DEFAULT_TRIAL:
            study.enqueue_trial({}, user_attrs={"default": True})
            trial = study.ask()
            return trial.number, {}
        if grid is not None:
            chosen = grid[number - 1]
            study.enqueue_trial({name: self.space.free[name].stored(value) for name, value in chosen.items()})
        trial = study.ask()
        return trial.number, self.space.suggest(trial)

    def _chosen(self, trial: Any) -> dict[str, Any]:
        """The settings that a stored trial chose."""
        if trial.user_attrs.get("default"):
            return {}
        return {
            name: json.loads(value) if isinstance(self.space.free[name], Choice) else value
            for name, value in trial.params.items()
        }

    def _run(self, settings: RunSettings, number: int | None = None) -> Run:
        rungs = self._bars(settings.train.epochs) if self.prune and number not in (None, DEFAULT_TRIAL) else ()
        return Run(
            data=self.graphs.name, fingerprint=self.graphs.fingerprint, model=settings.model, train=settings.train,
            seed=self.seed, fold=self.fold, folds=self.folds, protocol=self.protocol,
            splits="" if self.splits is None else self.splits.digest, rungs=rungs,
        )  # fmt: skip

    def _bars(self, epochs: int) -> tuple[tuple[int, float], ...]:
        """The score needed at every rung: that of the best third of the trials that reached it."""
        bars = []
        for share in RUNGS:
            number = math.ceil(share * epochs)
            reached = sorted(self._rungs.get(number, []), reverse=True)
            if number < epochs and len(reached) >= FEWEST:
                bars.append((number, reached[max(0, math.ceil(len(reached) / ETA) - 1)]))
        return tuple(bars)

    def _tell(self, study: Any, record: RunRecord) -> list[Trial]:
        """Tell Optuna the result of a Run, for every trial that proposed it."""
        import optuna

        states, reported = optuna.trial.TrialState, []
        for number, chosen in self._open.pop(record.run.key):
            trial = self._finish(number, chosen, record)
            if trial.value is not None:
                study.tell(number, trial.value)
            else:
                study.tell(number, state=states.PRUNED if trial.pruned else states.FAIL)
            reported.append(trial)
        return reported

    def _finish(self, number: int, chosen: dict[str, Any], record: RunRecord) -> Trial:
        """Store a trial and its scores at the rungs."""
        value = (record.validation or {}).get(str(self.metric)) if record.finished else None
        settings = self.space.settings(self.base, chosen)
        self._done[number] = Trial(number=number, chosen=chosen, settings=settings, value=value, record=record)
        for share in RUNGS:
            rung = math.ceil(share * settings.train.epochs)
            if record.history and len(record.history) >= rung:
                self._rungs.setdefault(rung, []).append(best_value(record.history[:rung]))
        return self._done[number]

    def _recall(self, study: Any) -> None:
        """Restore the trials of an earlier call."""
        finished = [stored for stored in study.trials if stored.state.is_finished()]
        records = Store.read(self.store.folder) if finished else {}  # with their curves and probabilities
        for stored in finished:
            chosen = self._chosen(stored)
            record = records.get(self._run(self.space.settings(self.base, chosen)).key)
            if record is None:
                raise CheckpointError(f"{self.store.folder}: the record of trial {stored.number} is missing")
            self._finish(stored.number, chosen, record)

    def _study(self) -> Any:
        try:
            import optuna
        except ImportError:
            raise MissingExtraError("optuna", "tune") from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        path = self.store.folder / f"trials-{self.fold}.journal"
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
        direction = "maximize" if self.greater else "minimize"
        return optuna.create_study(storage=storage, study_name="tune", direction=direction, load_if_exists=True)

    def _claim(self) -> None:
        """Refuse a folder that belongs to another search."""
        path = self.store.folder / "tune.json"
        default = self.space.settings(self.base, {})
        claim = {
            "version": 1, "data": self.graphs.name, "fingerprint": self.graphs.fingerprint, "metric": self.metric,
            "space": {name: list(kind.ends()) for name, kind in self.space.free.items()}, "sampler": self.sampler,
            "base": {"model": default.model.to_dict(), "train": default.train.to_dict()}, "seed": self.seed,
            "folds": self.folds, "protocol": self.protocol, "prune": self.prune,
            "splits": "" if self.splits is None else self.splits.digest,
        }  # fmt: skip
        if path.exists() and read_json(path) != _plain(claim):
            raise CheckpointError(f"{self.store.folder}: contains a search with other settings. Choose another --out")
        write_json(path, claim)


def _plain(value: Any) -> Any:
    """As it comes back from JSON."""
    return json.loads(json.dumps(value))


def difference(best: Trial, other: Trial, graphs: GraphSet, metric: str, repeats: int = 1_000) -> dict[str, float]:
    """Test score of two trials on the same test graphs, with a bootstrap interval of the difference over graphs."""
    task, rng = task_of(graphs.target), np.random.default_rng(0)
    rows = np.array((best.record.probabilities or {})["graphs"], dtype=np.int64)
    answers = [np.array((trial.record.probabilities or {})["proba"], dtype=np.float64) for trial in (best, other)]
    both = [task.parts(graphs.y[rows], p, graphs.target) for p in answers]

    def scores(counts: Any) -> list[float]:
        compute = task.metrics[metric].compute
        values = [[compute(part.y, part.p, counts[part.rows]) for part in parts] for parts in both]
        return [float(np.mean([v for v in some if v is not None] or [math.nan])) for some in values]

    first, second = scores(np.ones(len(rows), dtype=np.int64))
    drawn = (np.bincount(rng.integers(0, len(rows), len(rows)), minlength=len(rows)) for _ in range(repeats))
    gaps = np.array([one - two for one, two in map(scores, drawn)])
    gaps = gaps[np.isfinite(gaps)]
    low, high = np.quantile(gaps, (0.025, 0.975)) if len(gaps) else (math.nan, math.nan)
    return {"best": first, "default": second, "difference": first - second, "low": float(low), "high": float(high)}


def sentence(search: Search, graphs: GraphSet) -> str:
    """How much better than the default the best trial is, on the test graphs; "no better" is an answer."""
    best, default, metric = search.best, search.default, search.metric
    if default is None:
        return "The default settings could not be trained, so there is nothing to compare the best trial with."
    label = task_of(graphs.target).metrics[metric].label
    if best.number == default.number:
        return f"None of {len(search.trials)} trials was better than the default settings on validation ({label})."
    gap = difference(best, default, graphs, metric)
    numbers = (
        f"test {label} {gap['best']:.4g} against {gap['default']:.4g} with the default settings, "
        f"difference {gap['difference']:+.4g} (95 % interval {gap['low']:+.4g} to {gap['high']:+.4g})"
    )
    better = gap["low"] > 0 if search.greater else gap["high"] < 0
    return f"The best trial is {'better than' if better else 'no better than'} the default: {numbers}."
