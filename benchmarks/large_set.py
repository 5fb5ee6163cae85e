"""A table of 1.58 million molecules: `asapool data convert` with two processes, then two epochs with `train -j 2`.

    python -m benchmarks.large_set [--data-root FOLDER] [--rows 0] [--jobs 2] [--work FOLDER]

The target is RDKit's Crippen logP of every tenth molecule; the others have none, and an epoch runs over those that do:
training and validation. The second epoch counts, since the first loads the loops. asap+ with width 64. Memory is the
resident memory of all processes together, and of the largest one, sampled ten times a second; pages of the mapped files
are part of it. --rows takes the first rows only. Writes benchmarks/results/large_set.json.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measuring import data_root, machine, write


def make_table(source: Path, out: Path, rows: int) -> int:
    """The table with the target column; returns its number of rows."""
    from rdkit import Chem
    from rdkit.Chem.Crippen import MolLogP

    count = 0
    with gzip.open(source, "rt") as given, gzip.open(out, "wt", compresslevel=1) as made:
        write_row = csv.writer(made).writerow
        write_row(["SMILES", "logP"])
        for count, row in enumerate(csv.DictReader(given), 1):
            mol = Chem.MolFromSmiles(row["SMILES"]) if count % 10 == 0 else None
            write_row([row["SMILES"], "" if mol is None else f"{MolLogP(mol):.4f}"])
            if count == rows:
                break
    return count


def watched(*words: str) -> dict[str, Any]:
    """Run a command of asapool: seconds, processor time, and the greatest memory in MiB."""
    process = psutil.Popen([sys.executable, "-m", "asapool", *words], env=os.environ | {"OMP_NUM_THREADS": "1"},
                           stdout=subprocess.DEVNULL)  # fmt: skip
    start, total, largest = time.perf_counter(), 0, 0
    while process.poll() is None:
        held = []
        for one in [process, *process.children(recursive=True)]:
            try:
                held.append(one.memory_info().rss)
            except psutil.NoSuchProcess:
                continue
        total, largest = max(total, sum(held)), max(largest, *held, 0)
        time.sleep(0.1)
    seconds = time.perf_counter() - start
    assert process.returncode == 0, words
    return {
        "seconds": round(seconds, 1),
        "memory_mib": round(total / 2**20),
        "largest_process_mib": round(largest / 2**20),
    }


def main() -> None:
    """Make the table, convert it, train one epoch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", type=Path, help="folder for the files; default: a temporary one")
    options = parser.parse_args()
    source, about = Path(data_root(options.data_root) or ".") / "molecules" / "moses.csv.gz", machine()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(exist_ok=True)
        rows = make_table(source, work / "table.csv.gz", options.rows)
        graphs, run = work / "table.graphs", work / "run"
        read = ("--target", "logP", "--task", "regression")
        convert = watched(
            "data", "convert", str(work / "table.csv.gz"), str(graphs), *read, "--workers", str(options.jobs)
        )
        train = watched("train", str(graphs), "--out", str(run), "--epochs", "2", "--hidden", "64", "--no-report",
                        "-j", str(options.jobs), "--overwrite")  # fmt: skip
        last = list(csv.DictReader((run / "history.csv").open()))[-1]
        parts = json.loads((run / "metrics.json").read_text())["parts"]
    write("large_set", {
        "what": "a table converted, and an epoch over its labelled molecules", "rows": rows, "jobs": options.jobs,
        "convert": convert, "train": train, "parts": parts, "epoch_s": float(last["seconds"]),
        "graphs_per_s": round((parts["train"] + parts["val"]) / float(last["seconds"])), "machine": about,
    })  # fmt: skip


if __name__ == "__main__":
    main()
