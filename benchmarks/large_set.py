"""A table of 1.58 million molecules: `asapool data convert` with two processes, then an epoch with `train -j 2`.

    python -m benchmarks.large_set [--data-root FOLDER] [--rows 0] [--every 1] [--jobs 2] [--work FOLDER]

The target is RDKit's Crippen logP of every molecule, or with --every N of each N-th; the others have none. Converting
is timed from the start of the command to its end. An epoch is training on 10,000, 100,000 and 1,000,000 molecules with
a target, as far as there are so many, and validation on 1,000; its seconds are those of history.csv, and the last of
four or two epochs counts, since the first one loads the loops. asap+ with width 64. Memory is the resident memory of
all processes together, and of the largest one, sampled ten times a second; pages of the mapped files are part of it.
--rows takes the first rows only. The table is kept in --work, and made only if it is not there; --epochs-only uses the
converted set in --work as well, and keeps the numbers of its conversion. Writes benchmarks/results/large_set.json.

    python -m benchmarks.large_set --batches 64,256,512 --work FOLDER

trains on 30,000 molecules of the set in --work with batches of different sizes, six epochs each, and writes the
validation scores to benchmarks/results/large_set_batches.json.
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
from itertools import islice
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.measuring import data_root, machine, write

SIZES = {10_000: 4, 100_000: 2, 1_000_000: 2}  # training molecules → epochs
HELD_OUT = 1_000  # for validation, and as many for the test
BATCH = 512  # graphs, the default of sets of this size


def row_of(molecule: tuple[str, bool]) -> tuple[str, str]:
    """A row of the table, from a SMILES and whether it has a target."""
    from rdkit import Chem
    from rdkit.Chem.Crippen import MolLogP

    smiles, labelled = molecule
    return smiles, f"{MolLogP(Chem.MolFromSmiles(smiles)):.4f}" if labelled else ""


def make_table(source: Path, out: Path, rows: int, every: int, jobs: int) -> None:
    """The table with the target column."""
    unfinished = out.with_suffix(".part")
    with gzip.open(source, "rt") as given, gzip.open(unfinished, "wt", compresslevel=1) as made, Pool(jobs) as pool:
        lines = ((row["SMILES"], k % every == 0) for k, row in enumerate(csv.DictReader(given)))
        writer = csv.writer(made)
        writer.writerow(["SMILES", "logP"])
        writer.writerows(pool.imap(row_of, islice(lines, rows or None), chunksize=2000))
    unfinished.rename(out)


def watched(*words: str) -> dict[str, Any]:
    """Run a command of asapool: seconds, and the greatest memory in MiB."""
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


def trained(graphs: Path, work: Path, size: int, epochs: int, jobs: int, *words: str) -> tuple[Path, dict[str, Any]]:
    """Train on `size` molecules drawn at random; returns the folder and what `watched` measured."""
    from asapool.data import Split, load

    every = load(graphs)
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(every.labelled))[: size + 2 * HELD_OUT]
    train, val, test = np.sort(drawn[:size]), drawn[size:-HELD_OUT], drawn[-HELD_OUT:]
    Split(train=train, val=val, test=test, graphs=len(every), fingerprint=every.fingerprint).save(work / "split.json")
    run = work / f"run-{size}"
    used = watched(
        "train", str(graphs), "--split", str(work / "split.json"), "--out", str(run), "--overwrite",
        "--epochs", str(epochs), "--hidden", "64", "--no-report", "-j", str(jobs), *words,
    )  # fmt: skip
    made = json.loads((run / "metrics.json").read_text())["parts"]
    assert made["train"] == size, made
    return run, used


def epoch(graphs: Path, work: Path, size: int, epochs: int, jobs: int) -> dict[str, Any]:
    """The last epoch of a training on so many molecules, all with the batches of the largest set."""
    run, used = trained(graphs, work, size, epochs, jobs, "--batch-size", str(BATCH))
    last = list(csv.DictReader((run / "history.csv").open()))[-1]
    seconds = float(last["seconds"])
    return {
        "graphs": size,
        "epochs": epochs,
        "batch_size": BATCH,
        "epoch_s": seconds,
        "graphs_per_s": round((size + HELD_OUT) / seconds),
        **used,
    }


def batches(graphs: Path, work: Path, sizes: list[int], about: dict[str, Any]) -> None:
    """Validation scores after six epochs on 30,000 molecules, with batches of these sizes."""
    found = []
    for size in sizes:
        run, _ = trained(graphs, work, 30_000, 6, 1, "--batch-size", str(size))
        rmse = json.loads((run / "metrics.json").read_text())["validation"]["rmse"]
        found.append({"batch_size": size, "validation_rmse": rmse})
    write("large_set_batches", {
        "what": "validation RMSE of logP after six epochs on 30,000 molecules", "batches": found, "machine": about,
    })  # fmt: skip


def main() -> None:
    """Make the table, convert it, train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", type=Path, help="folder for the files; default: a temporary one")
    parser.add_argument("--table-only", action="store_true", help="make the table in --work, and nothing else")
    parser.add_argument("--epochs-only", action="store_true", help="train on the converted set in --work")
    parser.add_argument("--batches", help="sizes of batches to compare on the converted set in --work")
    options = parser.parse_args()
    source, about = Path(data_root(options.data_root) or ".") / "molecules" / "moses.csv.gz", machine()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(exist_ok=True)
        table, graphs = work / "table.csv.gz", work / "table.graphs"
        if options.batches:
            batches(graphs, work, [int(size) for size in options.batches.split(",")], about)
            return
        if not table.exists():
            make_table(source, table, options.rows, options.every, options.jobs)
        if options.table_only:
            return
        timed = work / "convert.json"
        if not options.epochs_only:
            assert not graphs.exists(), f"{graphs} is there already; remove it, so that the conversion can be timed"
            convert = watched("data", "convert", str(table), str(graphs), "--target", "logP", "--task", "regression",
                              "--workers", str(options.jobs))  # fmt: skip
            timed.write_text(json.dumps(convert | {"commit": about["commit"]}))
        convert = json.loads(timed.read_text())
        from asapool.data import load

        made = load(graphs)
        rows, labelled = len(made), int(made.labelled.sum())
        sizes = {size: epochs for size, epochs in SIZES.items() if size + 2 * HELD_OUT <= labelled}
        epochs = [epoch(graphs, work, size, count, options.jobs) for size, count in sizes.items()]
    write("large_set", {
        "what": "a table of molecules converted, and epochs over its graphs", "rows": rows, "labelled": labelled,
        "jobs": options.jobs,
        "convert": convert, "epochs": epochs, "machine": about,
    })  # fmt: skip


if __name__ == "__main__":
    main()
