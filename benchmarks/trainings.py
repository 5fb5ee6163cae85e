"""Train what the tables of docs/results.md still lack, in order of importance and at a lower priority than other work.

    python -m benchmarks.trainings --out FOLDER [--data-root FOLDER] [-j 2] [--list]
    python -m benchmarks.accuracy --add FOLDER

The training runs in results/ are merged into the folder first, so only missing ones are trained. Ctrl-C stops; the same
command resumes. --list prints how many runs each item still needs, with the time that runs of its kind took so far.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from asapool.data import GraphSet
from asapool.experiments.compact import read_compact, together
from asapool.experiments.engines import LocalEngine
from asapool.experiments.plan import Plan, load_graphs, load_plan
from asapool.experiments.record import RunRecord
from asapool.experiments.run import Run
from asapool.experiments.store import Store

RESULTS = Path(__file__).parents[1] / "results"


class Item(NamedTuple):
    """Some rows of a plan on some data sets: the first `seeds` seeds, and of each the first `folds` folds."""

    plan: str
    data: str
    rows: str | None = None  # None = all
    seeds: int = 1
    folds: int = 10


SMALL = "PROTEINS,NCI1,NCI109,Mutagenicity"  # their graphs are
RIVALS = "topk,sagpool,sortpool,set2set,global-attention,none,mlp,diffpool"
CHAINS = "chains-4,chains-5,chains-6,chains-7,chains-8"
ABLATIONS = ("table-edges", "table-fitness", "table-attention", "table-aggregation")
QUEUE = (
    Item("table2", "DD", "diffpool", seeds=1),
    Item("ablation-plus", "DD"),
    Item("table2", "Mutagenicity", RIVALS, seeds=1),
    Item("table-semantics", "PROTEINS", seeds=3),
    Item("table2", f"DD,{SMALL}", "topk,sagpool,sortpool", seeds=3),
    Item("table2", SMALL, "diffpool", seeds=3),
    *(Item(name, "NCI1,Mutagenicity", seeds=3) for name in ABLATIONS),
    Item("pooling-range", CHAINS, folds=5),
    Item("table2", "DD", "asap", seeds=10),
    Item("table-plus", "DD", "asap+ as an ensemble of 3", seeds=3),
    Item("table2", f"DD,{SMALL}", seeds=3),
    Item("table-semantics", "NCI1,DD", seeds=3),
    Item("table2", "NCI1,PROTEINS", "asap,none,mlp", seeds=10),
)


def plan_of(item: Item, root: str | None) -> Plan:
    """The plan of an item, restricted to its data sets, rows and seeds."""
    rows = None if item.rows is None else item.rows.split(",")
    return load_plan(item.plan, datasets=item.data.split(","), methods=rows, seeds=item.seeds, data_root=root)


def runs_of(item: Item, plan: Plan, graphs: dict[str, GraphSet]) -> list[Run]:
    """The training runs of an item, in the order of its plan."""
    return [run for run in plan.runs(graphs) if run.fold < item.folds]


def seconds_of(runs: Sequence[Run], records: dict[str, RunRecord]) -> float | None:
    """Processor seconds that the runs will need, by the median of finished ones of the same model and data set."""
    known: dict[tuple[str, str], list[float]] = {}
    for record in records.values():
        if record.finished and record.cpu_seconds:
            known.setdefault((record.run.data, record.run.model.method), []).append(record.cpu_seconds)
    times = [known.get((run.data, run.model.method)) for run in runs]
    return sum(statistics.median(one) for one in times if one) if all(times) else None


def main() -> None:
    """Train the queue, or list it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-root", default=os.environ.get("ASAPOOL_DATA"))
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    os.nice(5)
    plans = [plan_of(item, args.data_root) for item in QUEUE]
    graphs = load_graphs(plans)
    with Store.open(args.out) as store:
        for key, record in together(*(read_compact(path) for path in sorted(RESULTS.glob("*.jsonl")))).items():
            if not store.finished(key):
                store.append(record)
        seen: set[str] = set()
        waiting: list[list[Run]] = []
        for item, plan in zip(QUEUE, plans, strict=True):
            left = [run for run in runs_of(item, plan, graphs) if not store.finished(run.key) and run.key not in seen]
            seen |= {run.key for run in left}
            waiting.append(left)
            needed = seconds_of(left, store.records())
            time_left = "?" if needed is None else f"{needed / 60:.0f} processor minutes"
            rows = item.rows or "all rows"
            print(f"{item.plan} on {item.data}, {rows}: {len(left)} runs left, {time_left}", file=sys.stderr)
        if not args.list:
            train(waiting, plans, graphs, store, args.jobs)


def train(
    waiting: Sequence[Sequence[Run]], plans: Sequence[Plan], graphs: dict[str, GraphSet], store: Store, jobs: int
) -> None:
    """Train everything that is waiting; a run that fails is tried again by the next call."""
    inputs = {one.fingerprint: one for one in graphs.values()}
    splits = {c.splits.digest: c.splits for plan in plans for c in plan.cells if c.splits is not None}

    def in_order() -> Iterator[Run]:
        for runs in waiting:
            yield from runs

    total, done, began = sum(map(len, waiting)), 0, time.monotonic()
    with closing(LocalEngine(jobs).work(in_order(), inputs | splits, lambda *_: None)) as records:
        for record in records:
            store.append(record)
            done += 1
            score = "failed: " + record.failure if record.failure else f"{100 * record.test['accuracy']:.2f}"
            run = record.run
            print(
                f"{done}/{total} after {(time.monotonic() - began) / 60:.0f} min: {run.data}, {run.model.method}, "
                f"seed {run.seed}, fold {run.fold}: {score} in {record.cpu_seconds or 0:.0f} s",
                file=sys.stderr,
                flush=True,
            )


if __name__ == "__main__":
    main()
