"""Mutated requests to `asapool serve`: broken JSON, huge graphs, NaN, wrong keys, script tags, wrong addresses.

    python -m benchmarks.serve_hostile MODEL [--requests 10000] [--seed 0]

Ends with 1 if any answer is a 5xx or takes more than 60 s, or if the service is not healthy afterwards.
Writes benchmarks/results/serve_hostile.json.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import sys
import time
from typing import Any

import httpx

from benchmarks.measuring import machine, write
from benchmarks.service import running_service

SEEDS: list[dict[str, Any]] = [
    {"smiles": ["CCO", "c1ccccc1"], "ids": ["a", "b"]},
    {"smiles": "C" * 300},
    {"csv": "smiles,id\nCCO,1\n"},
    {"graphs": [{"id": "g", "edges": [[0, 1], [1, 0]], "features": [[1.0], [2.0]]}]},
    {"jsonl": '{"edges": [[0, 1]], "nodes": 2}\n'},
    {"graphml": '<graphml><graph><node id="0"/><node id="1"/><edge source="0" target="1"/></graph></graphml>'},
    {"smiles": "CCO", "target": "x", "occlusion": True},
]
ODD: list[Any] = [
    None, True, -1, 1e308, 10**30, "", "<script>alert(1)</script>", "\u0000", "C" * 3000, [], {}, [[]], [None], "NaN",
    "../../etc/passwd", "🧪", {"smiles": "C"}, [[0, 10**9]], "C1CC", "[Na+]." * 200, "c1ccccc1" * 60, {"nodes": 10**9},
]  # fmt: skip


def mutated(rng: random.Random) -> bytes:
    """The bytes of a request."""
    body = json.loads(json.dumps(rng.choice(SEEDS)))
    kind = rng.randrange(6)
    if kind == 0:
        body[rng.choice([*body, "smiles", "graphs", "csv", "jsonl", "graphml", "ids", "target", "x"])] = rng.choice(ODD)
    if kind == 1 and "graphs" in body:
        body["graphs"][0][rng.choice(["edges", "features", "nodes", "id", "label", "y"])] = rng.choice(ODD)
    if kind == 2:
        return rng.choice([b"[" * 100_000, b'{"smiles": NaN}', b'{"smiles": [Infinity]}', b"\xff" * 50, b"", b"null"])
    text = bytearray(json.dumps(body).encode())
    if kind >= 3:
        for _ in range(rng.randint(1, 8)):
            place = rng.randrange(len(text))
            text[place : place + rng.randint(0, 4)] = bytes(rng.randrange(256) for _ in range(rng.randint(0, 4)))
    return bytes(text)


def main() -> None:
    """Send them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, codes, worst = random.Random(options.seed), collections.Counter[str](), 0.0
    failed, about = [], machine()
    with running_service(options.model) as (address, _), httpx.Client(base_url=address, timeout=60) as client:
        for _ in range(options.requests):
            content, path = mutated(rng), rng.choice(["/predict", "/explain", "/embed", "/predict", "/<b>"])
            start = time.perf_counter()
            try:
                status = client.post(path, content=content).status_code
            except httpx.HTTPError as error:
                codes[type(error).__name__] += 1
                failed.append((path, content[:200], repr(error)))
            else:
                codes[str(status)] += 1
                if status >= 500:
                    failed.append((path, content[:200], str(status)))
            worst = max(worst, time.perf_counter() - start)
        healthy = client.get("/health").status_code == 200
    write("serve_hostile", {
        "what": "mutated requests to asapool serve", "requests": options.requests, "seed": options.seed,
        "status": dict(sorted(codes.items())), "slowest_s": round(worst, 2), "healthy": healthy, "failed": len(failed),
        "machine": about,
    })  # fmt: skip
    for case in failed[:5]:
        print(case, file=sys.stderr)
    sys.exit(1 if failed or not healthy else 0)


if __name__ == "__main__":
    main()
