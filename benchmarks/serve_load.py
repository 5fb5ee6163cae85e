"""Load on `asapool serve` from a real HTTP client on the same machine.

    python -m benchmarks.serve_load MODEL [--seconds 60] [--workers 1] [--name serve_load]

Starts the service in a process of its own and sends the NCI molecules that come with rdkit: requests of 1 from 32
connections, then requests of 100 from 4, `--seconds` each. Records molecules per second, p50 and p99 of a request,
errors, and the memory of the service before and after. Writes benchmarks/results/NAME.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from typing import Any

import aiohttp
import numpy as np
import psutil

import asapool
from benchmarks.measuring import machine, write
from benchmarks.service import running_service

LOADS = ((1, 32), (100, 4))  # molecules of a request, connections


def memory(process: psutil.Process) -> float:
    """Resident megabytes of the service and its workers."""
    held = (process, *process.children(recursive=True))
    return round(sum(p.memory_info().rss for p in held) / 1e6, 1)


async def load(address: str, smiles: list[str], size: int, connections: int, seconds: float) -> dict[str, Any]:
    """Requests of `size` molecules from so many connections."""
    times: list[float] = []
    errors = sent = 0
    end = time.perf_counter() + seconds
    connector, timeout = aiohttp.TCPConnector(limit=connections), aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(address, connector=connector, timeout=timeout) as client:

        async def one(number: int) -> None:
            nonlocal errors, sent
            place = number * 37
            while time.perf_counter() < end:
                part = [smiles[(place + k) % len(smiles)] for k in range(size)]
                place += connections * size
                start = time.perf_counter()
                try:
                    async with client.post("/predict", json={"smiles": part}) as answer:
                        text = await answer.text()
                    good = answer.status == 200 and len(json.loads(text)["results"]) == size
                except (aiohttp.ClientError, TimeoutError) as error:
                    good, text = False, repr(error)
                if not good:
                    print(text[:200], file=sys.stderr)
                times.append(time.perf_counter() - start)
                errors += not good
                sent += size * good

        begin = time.perf_counter()
        await asyncio.gather(*(one(k) for k in range(connections)))
        took = time.perf_counter() - begin
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    return {
        "molecules_per_request": size, "connections": connections, "seconds": round(took, 1),
        "molecules_per_s": round(sent / took, 1), "p50_ms": round(p50, 1), "p99_ms": round(p99, 1),
        "requests": len(times), "errors": errors,
    }  # fmt: skip


def main() -> None:
    """Run both loads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--name", default="serve_load")
    options = parser.parse_args()
    smiles, about = list(asapool.load("nci-alerts").source_text), machine()
    card = asapool.load_model(options.model)
    with running_service(options.model, options.workers) as (address, process):
        for size, connections in LOADS:  # warm-up
            asyncio.run(load(address, smiles, size, connections, min(5, options.seconds)))
        before = memory(process)
        runs = [asyncio.run(load(address, smiles, *kind, options.seconds)) for kind in LOADS]
        after = memory(process)
    write(options.name, {
        "what": "asapool serve and its client on the same machine",
        "method": card.config.method, "hidden": card.config.hidden, "workers": options.workers, "runs": runs,
        "memory_mb": {"before": before, "after": after}, "machine": about,
    })  # fmt: skip


if __name__ == "__main__":
    main()
