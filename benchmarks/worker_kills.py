"""Kill workers of `asapool cv -j 2` at random times and count how often the command hangs or loses a training.

    python -m benchmarks.worker_kills --kills 100 --seed 0 [--write]

Every trial starts the command, kills one of its workers with SIGKILL between 0 and 5 s after the first one appeared,
and waits for the end. The command itself tries the killed training again, so that every trial must end with code 0 and
all folds finished.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import machine, write

SOURCE = "synthetic:motifs?graphs=200"  # more than 64 KiB, what a pipe holds
FOLDS = 3
HANGS_AFTER = 300.0  # seconds


def children(pid: int) -> list[int]:
    """The worker processes of a process."""
    result = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            result += [int(word) for word in task.read_text().split()]
        except OSError:
            continue
    return [child for child in result if b"spawn_main" in _command(child)]


def trial(delay: float, choose: random.Random) -> tuple[str, bool]:
    """One command with one kill: "ok", "hang" or what went wrong; and whether a worker was there to be killed."""
    with tempfile.TemporaryDirectory(prefix="asapool-kills-") as folder:
        command = [sys.executable, "-m", "asapool", "cv", SOURCE, "--folds", str(FOLDS), "--epochs", "1", "-j", "2"]
        command += ["--method", "mlp", "--no-report", "--out", folder]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not children(process.pid):
            time.sleep(0.005)
        time.sleep(delay)
        workers = children(process.pid)
        for worker in workers[:1] if delay < 0.5 else workers and [choose.choice(workers)]:
            os.kill(worker, signal.SIGKILL)
        try:
            _, errors = process.communicate(timeout=HANGS_AFTER)
        except subprocess.TimeoutExpired:
            for worker in children(process.pid):
                os.kill(worker, signal.SIGKILL)
            process.kill()
            process.communicate()
            return "hang", bool(workers)
        finished = (Path(folder) / "results.csv").read_text().count("\n") - 1 if process.returncode == 0 else 0
        if process.returncode != 0 or finished != FOLDS:
            return f"code {process.returncode}, {finished} folds: {errors.strip().splitlines()[-1:]}", bool(workers)
        return "ok", bool(workers)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def main() -> None:
    """Run the trials and print a line for each that went wrong, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="keep the result in benchmarks/results")
    args = parser.parse_args()
    choose, killed, hangs, wrong, number = random.Random(args.seed), 0, 0, 0, 0
    delays: list[float] = []
    while killed < args.kills:
        delay = choose.uniform(0, 5)
        result, had_worker = trial(delay, choose)
        delays += [round(delay, 2)] if had_worker else []
        number, killed = number + 1, killed + had_worker
        hangs, wrong = hangs + (result == "hang"), wrong + (result not in ("ok", "hang"))
        if result != "ok":
            print(f"trial {number}, {delay:.2f} s: {result}", flush=True)
    if args.write:
        write(
            "worker_kills",
            {
                "what": "a worker of asapool cv -j 2 is killed at a random time",
                "command": f"python -m benchmarks.worker_kills --kills {args.kills} --seed {args.seed}",
                "kills": killed,
                "trials": number,
                "hangs": hangs,
                "other_failures": wrong,
                "seconds_until_the_kill": delays,
                "machine": machine(),
            },
        )
    print(f"{killed} kills in {number} trials: {hangs} hangs, {wrong} other failures")
    sys.exit(1 if hangs or wrong else 0)


if __name__ == "__main__":
    main()
