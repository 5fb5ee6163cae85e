"""A training step of this checkout beside that of another one, such as the last release.

    python -m benchmarks.versions CHECKOUT [--names PROTEINS,NCI1,DD] [--rounds 15] [--steps 3]

Each checkout has a process of its own, with one torch thread and a cache of compiled loops of its own. Both build the
same network with the same seed; before anything is timed, the losses must be equal to rounding. Then they take turns:
in every round each makes a few steps while the other waits, and the one that begins changes from round to round. Times
are those of the process (CPU time), which a busy machine changes less than it changes the time on the wall; both are
kept. Writes benchmarks/results/versions.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measuring import data_root, machine, spread, write

HERE = Path(__file__).resolve().parents[1]

# Runs in both checkouts, so it uses only what both have.
WORKER = r"""
import json, sys, time, warnings
import torch, torch.nn.functional as F
import asapool
from asapool.data import load
from asapool.models import ModelConfig, build

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

def prepare(name, root, batch, hidden, dropout, lr):
    graphs = load(name, data_root=root)
    chosen = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))[:batch]
    part = graphs.batch(chosen.numpy())
    config = ModelConfig(hidden=hidden, attention_dropout=dropout)
    model = build(config, part.x.size(1), 2, seed=0)
    # the rate is zero, which spares Adam nothing: the network keeps the same nodes in every step
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0, weight_decay=5e-4, fused=True)
    inputs = (part.x, part.ptr, part.rowptr, part.col, part.weight)
    def step():
        optimiser.zero_grad(set_to_none=True)
        F.cross_entropy(model(*inputs), part.y).backward()
        optimiser.step()
    with torch.no_grad():
        loss = F.cross_entropy(model.eval()(*inputs), part.y).item()
    model.train()
    return step, loss

print(json.dumps({"version": asapool.__version__, "file": asapool.__file__}), flush=True)
step = None
for line in sys.stdin:
    request = json.loads(line)
    if "name" in request:
        step, loss = prepare(**request)
        for _ in range(5):
            step()
        print(json.dumps({"loss": loss}), flush=True)
    else:
        step()  # finds caches and memory as the other process left them; the next ones count
        times = []
        for _ in range(request["steps"]):
            wall, cpu = time.perf_counter(), time.process_time()
            step()
            times.append([time.process_time() - cpu, time.perf_counter() - wall])
        print(json.dumps({"times": times}), flush=True)
"""


class Worker:
    """A process that runs the code of one checkout."""

    def __init__(self, checkout: Path) -> None:
        cache = Path(tempfile.gettempdir()) / f"asapool-versions-{checkout.name}"
        environment = {
            **os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(cache),
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER], env=environment, cwd="/", text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        about = self._answer()
        if not about["file"].startswith(str(checkout)):
            raise SystemExit(f"benchmarks.versions: {checkout} has no asapool; {about['file']} was loaded")
        self.version = about["version"]

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("benchmarks.versions: a worker ended; its error is above")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(workers: dict[str, Worker], name: str, rounds: int, steps: int, root: str | None) -> dict[str, Any]:
    """One data set: the least CPU time of a step in every round, of each side, and their ratios."""
    from benchmarks.networks import SETTINGS

    losses = {side: w.ask(name=name, root=root, **vars(SETTINGS[name]))["loss"] for side, w in workers.items()}
    before, after = losses["before"], losses["after"]
    assert abs(before - after) <= 1e-5 * abs(before), losses
    cpu: dict[str, list[float]] = {side: [] for side in workers}
    wall: dict[str, list[float]] = {side: [] for side in workers}
    for k in range(rounds):
        for side in sorted(workers, reverse=k % 2 == 1):
            times = workers[side].ask(steps=steps)["times"]
            cpu[side].append(1e3 * min(t[0] for t in times))
            wall[side].append(1e3 * min(t[1] for t in times))
    return {
        "data": name,
        "loss": losses,
        "cpu_milliseconds": {side: spread(values) | {"least": min(values)} for side, values in cpu.items()},
        "wall_milliseconds": {side: spread(values) | {"least": min(values)} for side, values in wall.items()},
        "after_by_before": spread([a / b for a, b in zip(cpu["after"], cpu["before"], strict=True)]),
        "least_after_by_before": min(cpu["after"]) / min(cpu["before"]),
        "rounds_cpu_milliseconds": {side: [round(v, 4) for v in values] for side, values in cpu.items()},
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="the other checkout")
    parser.add_argument("--names", default="PROTEINS,NCI1,DD")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=3, help="steps of a side in a round; the fastest counts")
    parser.add_argument("--data-root")
    args = parser.parse_args(arguments)
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    where = {"before": args.checkout.resolve(), "after": HERE}
    loads, runs = [os.getloadavg()[0]], []
    workers = {side: Worker(path) for side, path in where.items()}
    try:
        for name in args.names.split(","):
            runs.append(compare(workers, name, args.rounds, args.steps, data_root(args.data_root)))
            loads.append(os.getloadavg()[0])
    finally:
        for worker in workers.values():
            worker.close()
    commits = {side: _commit(path) for side, path in where.items()}
    write(
        "versions",
        {
            "what": "CPU time of one training step (forward, backward, Adam), before and after, taking turns",
            "versions": {side: worker.version for side, worker in workers.items()},
            "commits": commits,
            "runs": runs,
            "median_ratio": statistics.median(run["after_by_before"]["median"] for run in runs),
            "load": [round(value, 2) for value in loads],
            "machine": machine(),
        },
    )


def _commit(path: Path) -> str:
    words = ["git", "-C", str(path), "rev-parse", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    main()
