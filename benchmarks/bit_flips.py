"""Flip single bits in a store of training runs and in a model file, and count those that pass unnoticed.

    python -m benchmarks.bit_flips --flips 10000 --seed 0 [--write]

A flip is noticed where reading the file is refused with an AsapoolError. One that is not noticed must leave the content
as it was. Both files are made for this: nine training runs by `asapool cv`, and the model of `asapool train`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asapool.errors import AsapoolError
from asapool.experiments.store import FILE, Store
from asapool.models import checkpoint
from benchmarks.measuring import machine, write
from benchmarks.memory_loop import command

SOURCE = "synthetic:cycles?graphs=40&nodes=6"
SMALL = ("--hidden", 8, "--epochs", 2, "--no-report")
MODEL = "model.safetensors"


def flip(data: bytes, bit: int) -> bytes:
    """The data with one bit turned over."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def records(folder: Path) -> Any:
    """The content of a store."""
    return {key: record.to_line() for key, record in Store.read(folder).items()}


def model(folder: Path) -> Any:
    """The content of a model file: its settings and the bytes of its weights."""
    loaded = checkpoint.load(folder / MODEL)
    tensors = loaded.model.state_dict().items()
    weights = {name: (str(t.dtype), tuple(t.shape), t.numpy().tobytes()) for name, t in tensors}
    return weights, *(getattr(loaded, name) for name in ("config", "classes", "target", "recipe", "summary", "extra"))


def outcome(read: Callable[[Path], Any], file: Path, data: bytes, expected: Any) -> str:
    """What reading the damaged file comes to: noticed, harmless, silent or a traceback."""
    file.write_bytes(data)
    try:
        content = read(file.parent)
    except AsapoolError:
        return "noticed"
    except Exception as error:
        return f"traceback ({type(error).__name__})"
    return "harmless" if content == expected else "silent"


def flips(read: Callable[[Path], Any], file: Path, times: int, seed: int) -> Counter[str]:
    """The outcomes of so many flips in a file, each in the undamaged one."""
    data, expected = file.read_bytes(), read(file.parent)
    choose, counts = random.Random(seed), Counter[str]()
    for _ in range(times):
        counts[outcome(read, file, flip(data, choose.randrange(8 * len(data))), expected)] += 1
    return counts


def main() -> None:
    """Flip bits and print the counts; the code is 1 if one was silent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=10_000, help="in each of the two files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="keep the result in benchmarks/results")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="asapool-flips-") as name:
        store, trained = Path(name) / "cv", Path(name) / "run"
        command("cv", SOURCE, *SMALL, "--folds", 3, "--seeds", 3, "--out", store)
        command("train", SOURCE, *SMALL, "--out", trained)
        files = {FILE: (records, store / FILE), MODEL: (model, trained / MODEL)}
        sizes = {kind: file.stat().st_size for kind, (_, file) in files.items()}
        counts = {kind: flips(read, file, args.flips, args.seed) for kind, (read, file) in files.items()}
    if args.write:
        write(
            "bit_flips",
            {
                "what": "single bits of a store of training runs and of a model file are flipped",
                "command": f"python -m benchmarks.bit_flips --flips {args.flips} --seed {args.seed}",
                "flips_per_file": args.flips,
                "bytes": sizes,
                "outcomes": {kind: dict(count.most_common()) for kind, count in counts.items()},
                "machine": machine(),
            },
        )
    for kind, count in counts.items():
        print(f"{args.flips} flips in {kind}: " + ", ".join(f"{times} {what}" for what, times in count.most_common()))
    sys.exit(1 if set().union(*counts.values()) - {"noticed", "harmless"} else 0)


if __name__ == "__main__":
    main()
