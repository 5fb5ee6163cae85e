"""What all benchmarks share: where a number was measured, how, and where it is kept."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """Where and with what a number was measured; load is that of the minute before."""
    cpu = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "")
    commit, changed = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no", "asapool")
    return {
        "cpu": cpu or platform.processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numpy", "numba", "torch", "torch_geometric", "torch_scatter")},
        "threads": torch.get_num_threads(),
        "commit": commit + ("+" if changed else ""),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _git(*words: str) -> str:
    folder = Path(__file__).parent.parent
    return subprocess.run(["git", *words], capture_output=True, text=True, cwd=folder, check=False).stdout.strip()


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def spread(numbers: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(numbers, n=4)
    return {"median": middle, "quartile_1": low, "quartile_3": high, "runs": len(numbers)}


def timed(work: Callable[[], Any]) -> float:
    """Seconds that work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turns(
    sides: Mapping[str, Callable[[], Any]], rounds: int, warm_up: int = 3, settle: bool = True
) -> dict[str, list[float]]:
    """Seconds of every side, round by round, so that a busy moment of the machine meets all of them.

    settle: in every round a side runs twice and the second time counts: it then finds caches and memory as it left
    them, as in a training, and not as another side did.
    """
    for side in sides.values():
        for _ in range(warm_up):
            side()
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            if settle:
                side()
            seconds[name].append(timed(side))
    return seconds


def write(name: str, result: dict[str, Any]) -> None:
    """Print a result and keep it as a file, whole or not at all."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(result, indent=2) + "\n"
    partial = RESULTS / f".{name}.json"
    partial.write_text(text)
    partial.replace(RESULTS / f"{name}.json")
    print(text)


def data_root(given: str | None) -> str | None:
    """The folder of the benchmark data sets: as given, ASAPOOL_DATA, or ../shared/datasets."""
    beside = Path(__file__).parents[2] / "shared" / "datasets"
    return given or os.environ.get("ASAPOOL_DATA") or (str(beside) if beside.exists() else None)


def per_data_set(
    about: str | None,
    arguments: list[str] | None,
    measure: Callable[[str, int, int, str | None], dict[str, Any]],
    *,
    names: str = "PROTEINS,NCI1,DD",
    threads: str = "1,2",
    rounds: int = 15,
) -> list[dict[str, Any]]:
    """Read the command line, and call measure(name, threads, rounds, data root) for every data set and thread count."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root")
    parser.add_argument("--names", default=names)
    parser.add_argument("--threads", default=threads)
    parser.add_argument("--rounds", type=int, default=rounds)
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", "Sparse")  # torch_geometric goes through torch's sparse tensors
    return [
        measure(name, int(threads), args.rounds, data_root(args.data_root))
        for name in args.names.split(",")
        for threads in args.threads.split(",")
    ]
