"""Reads many molecules in several processes: each gets SMILES on stdin and writes an .npz of codes to stdout.

Plain subprocesses instead of multiprocessing: a script that calls asapool.load needs no `if __name__ == "__main__"`,
and nothing that is loaded here (torch, threads) is copied into them.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import asapool
from asapool.data.molecules import Molecules, read_smiles
from asapool.errors import DataError

SHARE = 10_000  # molecules that justify a process (starting one takes as long as reading about 2,000)


def read_many(smiles: Sequence[str], workers: int | None = None) -> Molecules:
    """As read_smiles, with this many processes; None = as many as pay off."""
    if workers is None:
        workers = min(_cores(), len(smiles) // SHARE)
    if workers < 2 or len(smiles) < 2:
        return read_smiles(smiles)
    share = -(-len(smiles) // workers)
    share = min(share, 5 * SHARE)  # limits the memory of one process
    pieces = [smiles[k : k + share] for k in range(0, len(smiles), share)]
    with ThreadPoolExecutor(workers) as pool:
        return _join(list(pool.map(_read_in_subprocess, pieces)), share)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_in_subprocess(smiles: Sequence[str]) -> Molecules:
    package_root = str(Path(asapool.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "asapool.data.molecule_workers"],
        input=json.dumps(list(smiles)).encode(),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1]
        raise DataError(f"a process reading molecules exited with code {done.returncode} ({last}). Try workers=1")
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as arrays:
        failed = [(int(k), str(reason)) for k, reason in json.loads(bytes(arrays["failed"]))]
        fields = {name: arrays[name] for name in Molecules._fields[:-1]}
        return Molecules(**fields, failed=failed)


def _join(parts: Sequence[Molecules], share: int) -> Molecules:
    """The results in order; part k began at molecule k · share."""
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Molecules._fields[1:-1]}
    return Molecules(
        rows=np.concatenate([part.rows + k * share for k, part in enumerate(parts)]),
        failed=[(row + k * share, reason) for k, part in enumerate(parts) for row, reason in part.failed],
        **joined,
    )


def _main() -> None:
    molecules = read_smiles(json.loads(sys.stdin.buffer.read()))
    arrays = {name: getattr(molecules, name) for name in Molecules._fields[:-1]}
    failed = np.frombuffer(json.dumps(molecules.failed).encode(), np.uint8)
    out = io.BytesIO()
    np.savez(out, failed=failed, **arrays)
    sys.stdout.buffer.write(out.getvalue())


if __name__ == "__main__":
    _main()
