"""The overhead of an engine: run `asapool reproduce` and compare its time with that of its training runs.

    python -m benchmarks.engines table2 --datasets NCI1 --methods topk --seeds 1 -j 2 --out FOLDER [--data-root DIR]

All arguments are passed to `asapool reproduce`; -j and --out are required, and runs finished before do not count.
overhead = 1 − Σ seconds of the training runs / (processes × total seconds): starting processes, reading the data,
writing records and tables, and processes that wait for the last training. Adds to benchmarks/results/engines.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from asapool.experiments.store import Store
from benchmarks.measuring import RESULTS, machine, timed, write


def measure(words: list[str]) -> dict[str, Any]:
    """One command."""
    jobs, folder = int(_after("-j", words)), Path(_after("--out", words))
    before = set(Store.read(folder, light=True)) if (folder / "runs.jsonl").exists() else set()
    seconds = timed(lambda: subprocess.run([sys.executable, "-m", "asapool.cli.main", "reproduce", *words], check=True))
    trained = [record.seconds for key, record in Store.read(folder, light=True).items() if key not in before]
    return {
        "command": label(words),
        "trainings": len(trained),
        "processes": jobs,
        "seconds": seconds,
        "seconds_of_trainings": sum(trained),
        "overhead": 1 - sum(trained) / (jobs * seconds),
        "machine": machine(),
    }


def label(words: list[str]) -> str:
    """The command without the folders of this machine.

    >>> label(["table2", "-j", "2", "--data-root", "/data", "--out", "/tmp/t2"])
    'table2 -j 2'
    """
    kept = [w for before, w in zip(["", *words], words, strict=False) if before not in ("--out", "--data-root")]
    return " ".join(Path(word).name for word in kept if word not in ("--out", "--data-root", "--no-report"))


def _after(option: str, words: list[str]) -> str:
    if option not in words[:-1]:
        sys.exit(f"benchmarks.engines: {option} must be among the words of the command")
    return words[words.index(option) + 1]


def main(arguments: list[str] | None = None) -> None:
    run = measure(sys.argv[1:] if arguments is None else arguments)
    path = RESULTS / "engines.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    write("engines", {"what": "what an engine costs beside the trainings", "runs": [*runs, run]})


if __name__ == "__main__":
    main()
