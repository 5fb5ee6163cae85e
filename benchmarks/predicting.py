"""`asapool predict` on large files: graphs and megabytes per second, and whether memory grows with the file.

    python -m benchmarks.predicting [--gigabytes 2] [--molecules 1000000] [--folder FOLDER] [--threads 1]

Two files are made in a temporary folder: JSON lines of graphs with 8 numbers per node, every line other numbers, and a
CSV of the nci-alerts molecules again and again. Each is predicted as a person would do it, by the command in a process
of its own, once a tenth of it and once the whole; peak is the most memory that process held. Before that, the answers
for a small file read in pieces are compared with those for the same file read at once.
Writes benchmarks/results/predicting.json. Takes minutes, so `make bench` leaves it out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asapool.data import GraphSet, load
from asapool.data.csr import owners
from asapool.models import ModelConfig, build, checkpoint
from benchmarks.measuring import machine, write

WIDTH = 8  # numbers per node
SMALL = 500  # graphs that are compared and that the models are built for
PART = 0.1


def graph_lines(seed: int = 0) -> Iterator[bytes]:
    """Endless JSON lines: the edges of 200 grown graphs in turn, with numbers from anywhere in a long table."""
    shapes = load("synthetic:motifs?graphs=200")
    row, rng = owners(shapes.rowptr), np.random.default_rng(seed)
    sizes, edges = np.diff(shapes.ptr).tolist(), []
    for g, start in enumerate(shapes.ptr[:-1].tolist()):
        of = slice(shapes.rowptr[start], shapes.rowptr[start + sizes[g]])
        pairs = np.stack([row[of], shapes.col[of]], axis=1) - start
        edges.append(_compact(pairs[pairs[:, 0] < pairs[:, 1]].tolist()))
    rows = [_compact(numbers) for numbers in rng.normal(size=(50_000, WIDTH)).round(4).tolist()]
    table = b",".join(rows)  # any part of it that begins and ends with a row is the features of a graph
    begin = np.cumsum([0, *(len(text) + 1 for text in rows)])
    for number in count():
        g = number % len(sizes)
        k = int(rng.integers(len(rows) - sizes[g]))
        features = table[begin[k] : begin[k + sizes[g]] - 1]
        yield b'{"id":%d,"nodes":%d,"label":"%s","edges":%s,"features":[%s]}\n' % (
            number, sizes[g], (b"odd", b"even")[number % 2], edges[g], features,
        )  # fmt: skip


def molecule_lines() -> Iterator[bytes]:
    """Endless lines of a CSV: the nci-alerts molecules, again and again."""
    smiles = [text.encode() for text in load("nci-alerts").source_text or ()]
    yield b"id,smiles\n"
    for number in count():
        yield b"%d,%s\n" % (number, smiles[number % len(smiles)])


def fill(path: Path, lines: Iterable[bytes], least_bytes: float = 0) -> None:
    """Write lines until there are no more, or until so many bytes are written."""
    size = 0
    with path.open("wb") as out:
        for line in lines:
            size += out.write(line)
            if 0 < least_bytes <= size:
                return


def save_model(graphs: GraphSet, path: Path) -> None:
    """A small ASAP network for such graphs, as it is before training: its answers take as long as any."""
    model = build(ModelConfig(method="asap", hidden=32), graphs.x.shape[1], 2, seed=0)
    checkpoint.save(path, model, classes=("a", "b"), recipe=graphs.recipe | {"classes": ["a", "b"]})


def predict(model: Path, source: Path, threads: int, *options: str) -> tuple[bytes, dict[str, float]]:
    """Answers, and seconds, processor seconds and peak memory of the command, in a process of its own."""
    out = source.with_suffix(".out.csv")
    words = [sys.executable, "-m", "asapool.cli.main", "predict", str(model), str(source), "-o", str(out), *options]
    start = time.perf_counter()
    process = subprocess.Popen(words, env={**os.environ, "OMP_NUM_THREADS": str(threads)}, stdout=subprocess.DEVNULL)
    ended, peak = 0, 0
    while not ended:
        peak = max(peak, _peak(process.pid))
        time.sleep(0.02)
        ended, code, used = os.wait4(process.pid, os.WNOHANG)
    seconds, process.returncode = time.perf_counter() - start, os.waitstatus_to_exitcode(code)
    if process.returncode:
        sys.exit(process.returncode)  # its message was printed
    taken = {"seconds": seconds, "processor_seconds": used.ru_utime + used.ru_stime, "peak_bytes": peak}
    return out.read_bytes(), taken


def assert_same_answers(model: Path, source: Path, threads: int) -> None:
    """Pieces of 70 graphs give the answers of the file read at once, to the last printed digit or one beside it."""
    pieces, whole = (
        [line.split(",") for line in predict(model, source, threads, "--chunk", size)[0].decode().splitlines()]
        for size in ("70", "1000000")
    )
    assert len(whole) == SMALL + 1
    assert [row[:2] for row in pieces] == [row[:2] for row in whole]
    result, expected = (np.array([row[3:] for row in rows[1:]], float) for rows in (pieces, whole))
    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-6)


def measure(what: str, folder: Path, path: Path, make: Callable[[float], None], threads: int) -> dict[str, Any]:
    """One kind of file; make(share) writes that share of it to path, make(0) just enough to compare answers."""
    model = folder / "model.safetensors"
    make(0)
    save_model(load(path, labels="optional"), model)
    assert_same_answers(model, path, threads)
    runs = []
    for share in (PART, 1.0):
        make(share)
        answers, taken = predict(model, path, threads)
        graphs, size = answers.count(b"\n") - 1, path.stat().st_size
        rates = {"graphs_per_second": graphs / taken["seconds"], "megabytes_per_second": size / 1e6 / taken["seconds"]}
        rates["graphs_per_processor_second"] = graphs / taken["processor_seconds"]  # says more on a busy machine
        runs.append({"share": share, "graphs": graphs, "bytes": size, **taken, **rates})
    path.unlink()
    return {"what": what, "runs": runs, "memory_growth": runs[1]["peak_bytes"] / runs[0]["peak_bytes"]}


def _compact(numbers: list[Any]) -> bytes:
    return json.dumps(numbers, separators=(",", ":")).encode()


def _peak(process: int) -> int:
    """The most memory a running process held until now; 0 when it just ended."""
    try:
        result = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return int(result[1]) * 1024 if result else 0


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="size of the JSON lines")
    parser.add_argument("--molecules", type=int, default=1_000_000, help="rows of the CSV")
    parser.add_argument("--folder", type=Path, help="where there is room; by default that of temporary files")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        lines, table = folder / "graphs.jsonl", folder / "molecules.csv"

        def make_lines(share: float) -> None:
            fill(lines, graph_lines() if share else islice(graph_lines(), SMALL), share * args.gigabytes * 1e9)

        def make_table(share: float) -> None:
            rows = round(share * args.molecules) or SMALL
            fill(table, islice(molecule_lines(), rows + 1))  # and the line of the names

        files = [
            measure("JSON lines", folder, lines, make_lines, args.threads),
            measure("SMILES", folder, table, make_table, args.threads),
        ]
    write("predicting", {"what": "asapool predict, start-up included", "files": files, "machine": machine()})


if __name__ == "__main__":
    main()
