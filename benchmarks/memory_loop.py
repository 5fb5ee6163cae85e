"""Train and predict in one process for half an hour, and see whether its memory stays the same.

    python -m benchmarks.memory_loop --minutes 30 --write

Each round trains a model on molecules with `asapool train`, reads it from its file and predicts the same molecules with
`asapool predict`, both in this process. The resident memory is read after every round. The rounds of the first tenth of
the time are a warm-up; then the medians of the first and the last fifth of the rounds must not differ by more than 1 %.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import machine, write

ALLOWED = 0.01  # growth of the resident memory
PARTS = ("C", "O", "N", "CC", "C(=O)", "C(C)", "c1ccccc1", "C1CC1", "S", "C(F)", "C(Cl)", "N(C)")


def molecules(path: Path, count: int, seed: int) -> None:
    """A table of molecules made of a few fragments; the class says whether there is a ring."""
    choose = random.Random(seed)
    smiles = ["C" + "".join(choose.choices(PARTS, k=choose.randint(2, 9))) for _ in range(count)]
    rows = "".join(f"m{k},{s},{'ring' if '1' in s else 'chain'}\n" for k, s in enumerate(smiles))
    path.write_text(f"id,smiles,label\n{rows}")


def command(*words: object) -> None:
    """Run a command of asapool in this process; an error ends the benchmark."""
    from asapool.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["asapool", *map(str, words)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"asapool {words[0]} ended with code {end.code}: {err.getvalue()}") from None


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rounds(minutes: float, seed: int) -> list[tuple[float, int]]:
    """Seconds since the start and resident bytes after every round."""
    samples, start = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="asapool-memory-") as name:
        folder = Path(name)
        molecules(folder / "molecules.csv", 200, seed)
        while time.monotonic() - start < 60 * minutes:
            options = ("--epochs", 3, "--hidden", 16, "--seed", len(samples), "--no-report", "--overwrite")
            command("train", folder / "molecules.csv", *options, "--out", folder / "run")
            command("predict", folder / "run", folder / "molecules.csv", "-o", folder / "predictions.csv")
            gc.collect()
            samples.append((time.monotonic() - start, resident()))
    return samples


def growth(samples: list[tuple[float, int]]) -> float:
    """How much more memory the last fifth of the rounds after the warm-up has than the first fifth, by medians.

    >>> growth([(t, 100 if t > 1 else 50) for t in range(21)])
    0.0
    """
    end = samples[-1][0]
    counted = [size for seconds, size in samples if seconds >= 0.1 * end]
    fifth = max(1, len(counted) // 5)
    return statistics.median(counted[-fifth:]) / statistics.median(counted[:fifth]) - 1


def main() -> None:
    """Run the rounds and print the result; the code is 1 if memory grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="keep the result in benchmarks/results")
    args = parser.parse_args()
    samples = rounds(args.minutes, args.seed)
    grown = growth(samples)
    step = max(1, len(samples) // 60)
    result = {
        "what": "resident memory of a process that trains and predicts again and again",
        "command": f"python -m benchmarks.memory_loop --minutes {args.minutes:g} --seed {args.seed}",
        "rounds": len(samples),
        "growth": grown,
        "allowed": ALLOWED,
        "bytes_by_seconds": {f"{seconds:.0f}": size for seconds, size in samples[::step]},
        "machine": machine(),
    }
    if args.write:
        write("memory_loop", result)
    print(f"{len(samples)} rounds in {args.minutes:g} minutes: memory grew by {grown:.2%}")
    sys.exit(1 if grown > ALLOWED else 0)


if __name__ == "__main__":
    main()
