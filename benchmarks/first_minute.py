"""Processor time of the first commands after a fresh install, when no loop is compiled yet.

    python -m benchmarks.first_minute [--rounds 2] [--only PATTERN] [--stop]

Every command is a process of its own with an empty folder for compiled loops (NUMBA_CACHE_DIR), as a user types it:
training runs of 60 small graphs, as they are and with compiled loops, and predictions for five molecules.
Measured is the time of the processor (user and system, from the start of the process), up to the moment when the
state of the first epoch is on the disk, and in all. Commands that compile run again with what was compiled. Needs
Linux. Writes benchmarks/results/first_minute.json.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measuring import machine, write

TOYS = "synthetic:motifs?graphs=60"
MOLECULES = ("CCO", "c1ccccc1", "CC(=O)O", "CCN(CC)CC", "O=C1CCCN1")
TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    """User and system time of a running process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def command(words: list[str], cache: Path, epoch_file: Path | None = None, stop: bool = False) -> dict[str, float]:
    """Run an asapool command; processor seconds until epoch_file is there, and in all, and seconds by the clock.

    stop: end it when epoch_file is there.
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    before, start, first = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), None
    process = subprocess.Popen(
        [sys.executable, "-m", "asapool", *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while epoch_file is not None and process.poll() is None and not epoch_file.exists():
        time.sleep(0.01)
    if epoch_file is not None and process.poll() is None:
        first = processor_seconds(process.pid)
        if stop:
            process.kill()
            process.communicate()
            return {"first epoch": first, "clock": time.perf_counter() - start}
    _, errors = process.communicate()
    if process.returncode:
        raise SystemExit(f"asapool {' '.join(words)} failed:\n{errors.decode()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"all": spent, "clock": time.perf_counter() - start} | ({} if first is None else {"first epoch": first})


TURNS = ("nothing compiled", "again")


def training(method: str, folder: Path, *options: str, stop: bool = False) -> dict[str, dict[str, float]]:
    """A training with nothing compiled, and again where loops were compiled."""
    done = {}
    for name in TURNS if options else TURNS[:1]:
        out = folder / name
        words = ["train", TOYS, "--method", method, "--out", str(out), *options]
        done[name] = command(words, folder / "cache", out / "state.safetensors", stop)
    return done


def predicting(model: Path, folder: Path) -> dict[str, dict[str, float]]:
    """Predictions for a few molecules with nothing compiled, and again."""
    table = folder / "five.csv"
    table.write_text("smiles\n" + "\n".join(MOLECULES) + "\n")
    words = ["predict", str(model), str(table), "-o", str(folder / "answers.csv")]
    return {name: command(words, folder / "cache") for name in TURNS}


def trained_on_molecules(folder: Path, graphs: int) -> Path:
    """A model of some molecules of the built-in set."""
    from asapool.data import load

    molecules = load("nci-alerts")
    table, out = folder / "molecules.csv", folder / "run"
    names = molecules.class_names
    rows = [f"{molecules.source_text[i]},{names[molecules.y[i]]}" for i in range(graphs)]  # type: ignore[index]
    table.write_text("smiles,class\n" + "\n".join(rows) + "\n")
    command(["train", str(table), "--target", "class", "--epochs", "2", "--out", str(out), "--no-report"], folder)
    return out


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose names match, such as compiled")
    parser.add_argument("--stop", action="store_true", help="end training runs after their first epoch")
    args = parser.parse_args(arguments)
    fused = ("--set", "model.backend=fused")
    with TemporaryDirectory() as folder:
        root, models = Path(folder), dict[int, Path]()

        def predict(graphs: int, place: Path) -> dict[str, dict[str, float]]:
            if graphs not in models:
                models[graphs] = trained_on_molecules(_new(root, f"model-{graphs}"), graphs)
            return predicting(models[graphs], place)

        cases: dict[str, Callable[[Path], dict[str, dict[str, float]]]] = {
            "train, asap+": lambda place: training("asap+", place, stop=args.stop),
            "train, asap": lambda place: training("asap", place, stop=args.stop),
            "train, asap+, loops compiled": lambda place: training("asap+", place, *fused, stop=args.stop),
            "train, asap, loops compiled": lambda place: training("asap", place, *fused, stop=args.stop),
            "predict, model of 200 molecules": lambda place: predict(200, place),
            "predict, model of 4,000 molecules": lambda place: predict(4000, place),
        }
        chosen = {name: case for name, case in cases.items() if re.search(args.only, name)}
        measured: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in chosen}
        for turn in range(args.rounds):
            for number, (name, case) in enumerate(chosen.items()):
                measured[name].append(case(_new(root, f"{turn}-{number}")))
    runs = [{"case": name, **_summary(values)} for name, values in measured.items()]
    write("first_minute", {"what": "processor seconds of first commands", "runs": runs, "machine": machine()})


def _new(root: Path, name: str) -> Path:
    folder = root / name
    (folder / "cache").mkdir(parents=True)
    return folder


def _summary(measured: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """All rounds, in order."""
    return {
        when: {what: [round(run[when][what], 2) for run in measured] for what in measured[0][when]}
        for when in measured[0]
    }


if __name__ == "__main__":
    main()
