"""What a busy neighbour costs: a training step alone, and while another process keeps one core busy; and the start-up.

    python -m benchmarks.contention [--data-root FOLDER] [--name NCI1] [--rounds 20]

Writes benchmarks/results/contention.json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from typing import Any

import torch

from asapool.data import load
from benchmarks.measuring import data_root, in_turns, machine, spread, timed, write
from benchmarks.networks import SETTINGS
from benchmarks.step import our_side

FIRST_STEP = """
import time; start = time.perf_counter()
import asapool
imported = time.perf_counter() - start
import torch
from asapool.nn import ASAPooling
x = torch.randn(4, 8)
ASAPooling(8)(x, torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])).x.sum().backward()
print(imported, time.perf_counter() - start)
"""


def start_up() -> dict[str, float]:
    """Seconds of `import asapool`, and from there to the end of the first forward and backward, in a second process."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", FIRST_STEP]
    # the first one compiles, where nothing is kept on disk yet
    done = [subprocess.run(words, env=env, capture_output=True, text=True, check=True) for _ in range(2)]
    imported, first = map(float, done[-1].stdout.split())
    helped = timed(lambda: subprocess.run([sys.executable, "-m", "asapool.cli.main", "--help"], capture_output=True))
    return {"import_asapool": imported, "import_to_first_step": first, "asapool_help": helped}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root")
    parser.add_argument("--name", default="NCI1")
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", "Sparse")
    setting, graphs = SETTINGS[args.name], load(args.name, data_root=data_root(args.data_root))
    batch = graphs.batch(torch.arange(setting.batch).numpy())
    runs: list[dict[str, Any]] = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        step, _ = our_side(batch, setting, semantics="paper")
        alone = in_turns({"step": step}, args.rounds)["step"]
        neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            beside = in_turns({"step": step}, args.rounds)["step"]
        finally:
            neighbour.kill()
            neighbour.wait()
        ms = {name: spread([1e3 * s for s in values]) for name, values in (("alone", alone), ("beside", beside))}
        runs.append({"threads": threads, "milliseconds": ms, "slower": ms["beside"]["median"] / ms["alone"]["median"]})
    write(
        "contention",
        {"what": f"a training step on {args.name}", "runs": runs, "start_up_seconds": start_up(), "machine": machine()},
    )


if __name__ == "__main__":
    main()
