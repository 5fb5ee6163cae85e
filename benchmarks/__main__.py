"""`make bench`: every benchmark at a size that ends within ten minutes, then the page that shows them, and what
became faster or slower than the committed numbers."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import changes, page
from benchmarks.measuring import data_root

SHORT = {
    "batching": ["--rounds", "5"],
    "reading": ["--rounds", "3"],
    "step": ["--rounds", "9"],
    "epoch": ["--names", "PROTEINS", "--rounds", "3"],
    "operator": ["--rounds", "9"],
    "contention": ["--rounds", "15"],
    "fading": ["--rounds", "9"],
    "scaling": ["--edges", "1e4,1e5,1e6"],
}


def main() -> int:
    """Run them one after the other, each in a process of its own."""
    if data_root(None) is None:
        print("benchmarks: no data sets found. Put DD.zip, NCI1.zip and PROTEINS.zip where ASAPOOL_DATA points.")
        return 2
    for name, words in SHORT.items():
        print(f"benchmarks.{name} {' '.join(words)}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", f"benchmarks.{name}", *words], stdout=subprocess.DEVNULL
        )
        if done.returncode:
            return done.returncode
    page.main()
    return changes.main()


if __name__ == "__main__":
    sys.exit(main())
