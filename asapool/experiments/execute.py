"""Execute a plan: skip finished Runs, give the rest to an engine, keep every outcome in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from asapool.experiments.plan import Plan
from asapool.experiments.record import RunRecord
from asapool.experiments.run import Run
from asapool.experiments.store import Store
from asapool.files import working_in, writing

if TYPE_CHECKING:
    from asapool.data import GraphSet

OnRecord = Callable[[RunRecord], None]
OnProgress = Callable[[Run, int, int, float | None], None]  # finished epochs, all epochs, validation accuracy
Inputs = Mapping[str, Any]  # by content digest: the graphs by their fingerprint, split files by their digest


class Engine(Protocol):
    """Trains Runs, in local processes or on a cluster."""

    def work(self, runs: Iterable[Run], inputs: Inputs, on_progress: OnProgress) -> Iterator[RunRecord]:
        """Yield one record per Run when it ends, finished or failed; leaving the loop stops the workers.

        A Run is taken from the iterable when a worker is free, so it may depend on the records so far.
        Inputs are sent to a worker (or a node) once. on_progress(run, finished epochs, all epochs, validation accuracy)
        is called in this process now and then.
        """
        ...


def execute(
    plan: Plan | Sequence[Plan],
    graphs: Mapping[str, GraphSet],
    store: Store,
    engine: Engine,
    on_record: OnRecord | None = None,
    on_progress: OnProgress | None = None,
    models: Path | None = None,
) -> list[RunRecord]:
    """Train every Run of the plan (or plans) that is not finished in the store; return the records of all of them.

    graphs: by name of the data set, as in the plan's columns. A Run that fails is tried once more at the end of
    the queue; if it fails again, it stays in the store with its reason, and the next call tries it again. models: a
    folder for the model files, each written before its record, so that a finished Run always has its model.
    """
    plans = [plan] if isinstance(plan, Plan) else list(plan)
    runs = list({run.key: run for one in plans for run in one.runs(graphs)}.values())
    if models is not None:
        with working_in(models):  # makes the folder, and removes temporary files of a killed writer
            pass
        runs = [replace(run, keep=True) for run in runs]
    waiting = [
        run for run in runs
        if not store.finished(run.key) or (models is not None and not model_path(models, run).is_file())
    ]  # fmt: skip
    needed = {digest for run in waiting for digest in (run.fingerprint, run.splits)}
    every: dict[str, Any] = {g.fingerprint: g for g in graphs.values()}
    every |= {cell.splits.digest: cell.splits for one in plans for cell in one.cells if cell.splits is not None}
    inputs = {digest: value for digest, value in every.items() if digest in needed}
    for _ in range(2):
        again = []
        if not waiting:
            break
        with _stopping(engine.work(waiting, inputs, on_progress or _silent)) as records:
            for record in records:
                before = store.records().get(record.run.key)
                known = replace(record, attempts=1 if before is None else before.attempts + 1)
                if models is not None and record.model is not None:
                    with writing(model_path(models, record.run), durable=True) as out:
                        out.write(record.model)
                if not store.finished(record.run.key):  # otherwise only its model was missing
                    store.append(known)
                if not known.finished:
                    again.append(known.run)
                if on_record is not None:
                    on_record(known)
        waiting = again
    records_by_key = store.records()
    return [records_by_key[run.key] for run in runs if run.key in records_by_key]


def model_path(models: Path, run: Run) -> Path:
    """The model file of a Run."""
    return models / f"{run.key}.safetensors"


@contextmanager
def _stopping(records: Iterator[RunRecord]) -> Iterator[Iterator[RunRecord]]:
    """Stop the workers as soon as the loop is left, not when the generator is garbage-collected."""
    try:
        yield records
    finally:
        close = getattr(records, "close", None)
        if close is not None:
            close()


def _silent(run: Run, epoch: int, epochs: int, score: float | None) -> None:
    """Ignore the progress."""
