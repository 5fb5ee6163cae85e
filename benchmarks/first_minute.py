"""Processor time of the first commands after a fresh install, when no loop is compiled yet.

    python -m benchmarks.first_minute [--rounds 2]

Every command is a process of its own with an empty folder for compiled loops (NUMBA_CACHE_DIR), as a user types it:
trainings of 60 small graphs, as they are and with compiled loops, and predictions for five molecules.
Measured is the time of the processor (user and system, from the start of the process), up to the moment when the
state of the first epoch is on the disk, and in all. Each command runs again with what the first one compiled. Needs
Linux. Writes benchmarks/results/first_minute.json.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
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


def command(words: list[str], cache: Path, epoch_file: Path | None = None) -> dict[str, float]:
    """Run an asapool command; processor seconds until epoch_file is there, and in all, and seconds by the clock."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    before, start, first = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), None
    process = subprocess.Popen(
        [sys.executable, "-m", "asapool", *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while epoch_file is not None and process.poll() is None and not epoch_file.exists():
        time.sleep(0.01)
    if epoch_file is not None and process.poll() is None:
        first = processor_seconds(process.pid)
    _, errors = process.communicate()
    if process.returncode:
        raise SystemExit(f"asapool {' '.join(words)} failed:\n{errors.decode()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"all": spent, "clock": time.perf_counter() - start} | ({} if first is None else {"first epoch": first})


def training(method: str, folder: Path, *options: str) -> dict[str, dict[str, float]]:
    """A training with nothing compiled, and again."""
    done = {}
    for name in ("nothing compiled", "again"):
        out = folder / name
        words = ["train", TOYS, "--method", method, "--out", str(out), *options]
        done[name] = command(words, folder / "cache", out / "state.safetensors")
    return done


def predicting(model: Path, folder: Path) -> dict[str, dict[str, float]]:
    """Predictions for a few molecules with nothing compiled, and again."""
    table = folder / "five.csv"
    table.write_text("smiles\n" + "\n".join(MOLECULES) + "\n")
    words = ["predict", str(model), str(table), "-o", str(folder / "answers.csv")]
    return {name: command(words, folder / "cache") for name in ("nothing compiled", "again")}


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
    rounds = parser.parse_args(arguments).rounds
    cases: dict[str, list[dict[str, dict[str, float]]]] = {}

    def record(name: str, measured: dict[str, dict[str, float]]) -> None:
        cases.setdefault(name, []).append(measured)

    with TemporaryDirectory() as root:
        small, large = (trained_on_molecules(_new(Path(root), name), n) for name, n in (("s", 200), ("l", 4000)))
        for turn in range(rounds):
            for method in ("asap+", "asap"):
                record(f"train, {method}", training(method, _new(Path(root), f"{method}-{turn}")))
                fused = training(method, _new(Path(root), f"{method}-fused-{turn}"), "--set", "model.backend=fused")
                record(f"train, {method}, loops compiled", fused)
            record("predict, model of 200 molecules", predicting(small, _new(Path(root), f"predict-{turn}")))
            record("predict, model of 4,000 molecules", predicting(large, _new(Path(root), f"predict-fused-{turn}")))
    runs = [{"case": name, **_summary(measured)} for name, measured in cases.items()]
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
