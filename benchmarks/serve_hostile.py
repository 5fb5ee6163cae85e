"""Mutated requests to `asapool serve`: python benchmarks/serve_hostile.py MODEL [--requests 10000]

Broken JSON, huge graphs, NaN, wrong keys, script tags, deep nesting, wrong addresses. Prints the status codes; ends
with 1 if any answer is a 5xx, hangs for more than 60 s, or the service is not healthy afterwards.
"""

import argparse
import collections
import json
import random
import socket
import subprocess
import sys
import time

import httpx

SEEDS = [
    {"smiles": ["CCO", "c1ccccc1"], "ids": ["a", "b"]},
    {"smiles": "C" * 300},
    {"csv": "smiles,id\nCCO,1\n"},
    {"graphs": [{"id": "g", "edges": [[0, 1], [1, 0]], "features": [[1.0], [2.0]]}]},
    {"jsonl": '{"edges": [[0, 1]], "nodes": 2}\n'},
    {"graphml": '<graphml><graph><node id="0"/><node id="1"/><edge source="0" target="1"/></graph></graphml>'},
    {"smiles": "CCO", "target": "x", "occlusion": True},
]
ODD = [
    None, True, -1, 1e308, 10**30, "", "<script>alert(1)</script>", "\u0000", "C" * 3000, [], {}, [[]], [None], "NaN",
    "../../etc/passwd", "🧪", {"smiles": "C"}, [[0, 10**9]], "C1CC", "[Na+]." * 200, "c1ccccc1" * 60, {"nodes": 10**9},
]  # fmt: skip


def mutated(rng):
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


def main():
    """Send them all."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("model")
    words.add_argument("--requests", type=int, default=10_000)
    words.add_argument("--seed", type=int, default=0)
    options = words.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "asapool", "serve", options.model, "--port", str(port)]
    service = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    rng, codes, worst = random.Random(options.seed), collections.Counter(), 0.0
    bad = []
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            for _ in range(600):
                try:
                    client.get("/health")
                    break
                except httpx.HTTPError:
                    assert service.poll() is None, "the service ended"
                    time.sleep(0.5)
            for _ in range(options.requests):
                content, address = mutated(rng), rng.choice(["/predict", "/explain", "/embed", "/predict", "/<b>"])
                start = time.perf_counter()
                try:
                    status = client.post(address, content=content).status_code
                except httpx.HTTPError as error:
                    status = type(error).__name__
                worst = max(worst, time.perf_counter() - start)
                codes[status] += 1
                if not isinstance(status, int) or status >= 500:
                    bad.append((address, content[:200], status))
            healthy = client.get("/health").status_code == 200
    finally:
        service.terminate()
        service.wait(30)
    print(json.dumps({"requests": options.requests, "status": {str(k): v for k, v in sorted(codes.items(), key=str)},
                      "slowest_s": round(worst, 2), "healthy": healthy, "failed": len(bad)}))  # fmt: skip
    for case in bad[:5]:
        print(case, file=sys.stderr)
    sys.exit(1 if bad or not healthy else 0)


if __name__ == "__main__":
    main()
