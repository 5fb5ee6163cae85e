"""Flip single bits in a store of trainings and count those that pass unnoticed or end in a traceback.

    python -m benchmarks.bit_flips FOLDER --flips 10000 --seed 0

A flip is noticed where reading the store is refused with a DataError. One that is not must leave the records as they
were. FOLDER is a folder of `asapool cv`, `compare` or `reproduce`; it is copied and stays as it is.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from asapool.errors import DataError
from asapool.experiments.store import FILE, Store


def flip(data: bytes, bit: int) -> bytes:
    """The data with one bit turned over."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def outcome(folder: Path, data: bytes, expected: dict[str, str]) -> str:
    """What reading the damaged store comes to: noticed, silent or a traceback."""
    (folder / FILE).write_bytes(data)
    try:
        records = Store.read(folder)
    except DataError:
        return "noticed"
    except Exception as error:
        return f"traceback ({type(error).__name__})"
    return "harmless" if {key: r.to_line() for key, r in records.items()} == expected else "silent"


def main() -> None:
    """Flip bits and print the counts; the code is 1 if one was silent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    data = (args.folder / FILE).read_bytes()
    expected = {key: record.to_line() for key, record in Store.read(args.folder).items()}
    choose, counts = random.Random(args.seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="asapool-flips-") as folder:
        for _ in range(args.flips):
            counts[outcome(Path(folder), flip(data, choose.randrange(8 * len(data))), expected)] += 1
    print(f"{args.flips} flips: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    sys.exit(1 if set(counts) - {"noticed", "harmless"} else 0)


if __name__ == "__main__":
    main()
