"""The overhead of `asapool tune`, and how many more settings are tried when hopeless ones are pruned.

    python -m benchmarks.tune_cost [--data-root FOLDER] [--data NCI1] [--trials 27] [--epochs 18] [--jobs 2]

The same search twice, random settings of the default space, with and without pruning. Processor time is that of the
command and of all its processes; the time of the runs themselves is in their records. The rest is overhead: reading
the data, starting processes, Optuna, files and the report. Writes benchmarks/results/tune_cost.json.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from asapool.experiments.store import Store
from benchmarks.measuring import data_root, machine, write


def search(source: str, out: Path, options: argparse.Namespace, *more: str) -> dict[str, Any]:
    """One search, from the command line."""
    command = [sys.executable, "-m", "asapool", "tune", source, "--out", str(out), "--sampler", "random"]
    command += ["--trials", str(options.trials), "--epochs", str(options.epochs), "-j", str(options.jobs), *more]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    records = list(Store.read(out).values())
    inside = sum(record.cpu_seconds or 0.0 for record in records)
    return {
        "trials": len(records), "finished": sum(record.finished for record in records),
        "epochs": sum(len(record.history or ()) for record in records), "processor_s": round(total, 1),
        "trainings_s": round(inside, 1), "overhead": round(1 - inside / total, 4),
        "best_validation": max((r.validation or {}).get("accuracy", 0.0) for r in records if r.finished),
    }  # fmt: skip


def main() -> None:
    """Both searches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root")
    parser.add_argument("--data", default="NCI1")
    parser.add_argument("--trials", type=int, default=27)
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    source = str(Path(data_root(options.data_root) or ".") / f"{options.data}.zip")
    with tempfile.TemporaryDirectory() as folder:
        pruned = search(source, Path(folder) / "pruned", options)
        full = search(source, Path(folder) / "full", options, "--no-prune")
    write("tune_cost", {
        "what": "asapool tune with and without pruning", "data": options.data, "jobs": options.jobs,
        "epochs_of_a_trial": options.epochs, "with_pruning": pruned, "without_pruning": full,
        "times_as_many_settings": round(full["processor_s"] / pruned["processor_s"], 2), "machine": machine(),
    })  # fmt: skip


if __name__ == "__main__":
    main()
