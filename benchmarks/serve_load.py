"""Load on `asapool serve` from real HTTP clients: python benchmarks/serve_load.py MODEL [--seconds 60] [--workers 1]

Starts the service in a process of its own and sends the NCI molecules that come with rdkit: requests of 1 from 32
connections, then requests of 100 from 4. Prints molecules per second, p50 and p99 of a request, errors, and the
memory of the service before and after.
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import time

import httpx
import numpy as np
import psutil

import asapool


def memory(pid):
    """Resident megabytes of the service and its workers."""
    process = psutil.Process(pid)
    return sum(p.memory_info().rss for p in (process, *process.children(recursive=True))) / 1e6


async def load(address, smiles, size, connections, seconds):
    """Requests of `size` molecules from so many connections: molecules, times of requests, errors, total time."""
    times, errors, sent = [], 0, 0
    end = time.perf_counter() + seconds
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:

        async def one(number):
            nonlocal errors, sent
            place = number * 37
            while time.perf_counter() < end:
                part = [smiles[(place + k) % len(smiles)] for k in range(size)]
                place += connections * size
                start = time.perf_counter()
                try:
                    answer = await client.post("/predict", json={"smiles": part})
                    good = answer.status_code == 200 and len(answer.json()["results"]) == size
                    reason = answer.text[:200]
                except httpx.HTTPError as error:
                    good, reason = False, repr(error)
                if not good:
                    print(reason, file=sys.stderr)
                times.append(time.perf_counter() - start)
                errors += not good
                sent += size * good

        begin = time.perf_counter()
        await asyncio.gather(*(one(k) for k in range(connections)))
    return sent, np.array(times), errors, time.perf_counter() - begin


def main():
    """Run both loads."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("model")
    words.add_argument("--seconds", type=float, default=60)
    words.add_argument("--workers", type=int, default=1)
    options = words.parse_args()
    smiles = list(asapool.load("nci-alerts").source_text)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "asapool", "serve", options.model, "--port", str(port)]
    service = subprocess.Popen([*command, "--workers", str(options.workers)], stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                httpx.get(f"{address}/health")
                break
            except httpx.HTTPError:
                assert service.poll() is None, "the service ended"
                time.sleep(0.5)
        asyncio.run(load(address, smiles, 1, 32, min(5, options.seconds)))  # warm
        before = memory(service.pid)
        for size, connections in ((1, 32), (100, 4)):
            sent, times, errors, seconds = asyncio.run(load(address, smiles, size, connections, options.seconds))
            p50, p99 = np.percentile(times, [50, 99]) * 1000
            print(json.dumps({
                "molecules_per_request": size, "connections": connections, "molecules_per_s": round(sent / seconds, 1),
                "p50_ms": round(p50, 1), "p99_ms": round(p99, 1), "requests": len(times), "errors": errors,
            }), flush=True)  # fmt: skip
        print(json.dumps({"memory_mb_before": round(before, 1), "memory_mb_after": round(memory(service.pid), 1)}))
    finally:
        service.terminate()
        service.wait(30)


if __name__ == "__main__":
    main()
