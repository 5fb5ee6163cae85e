"""Keep what `asapool cv` measured as compact files under results/, and write docs/results.md from them.

    python -m benchmarks.accuracy --add FOLDER     # a folder that `asapool cv --out FOLDER` left behind
    python -m benchmarks.accuracy                  # just the page
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.measuring import machine

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "results.md"
PAPER = {("PROTEINS", "asap"): "74.19 ± 0.79", ("DD", "asap"): "76.87 ± 0.70", ("NCI1", "asap"): "71.48 ± 0.42"}

HEAD = """# Accuracy we measured

Made from the files in `results/` by `python -m benchmarks.accuracy`. Protocol of the paper's authors: plain shuffled
10-fold, validation on the fold before the test fold, the epoch chosen by validation accuracy, nothing tuned on test
folds; settings and seeds are the authors' own. ± is the deviation over the means of the seeds, as in the paper; the
deviation over single folds stands beside it, because it says how far one training can be off.

"""


def compact(folder: Path) -> dict[str, Any]:
    """Plan, machine, and for every fold its scores."""
    plan = json.loads((folder / "plan.json").read_text())
    folds = [json.loads(path.read_text()) for path in sorted((folder / "folds").glob("*.json"))]
    keep = ("method", "seed", "fold", "best_epoch", "seconds", "failure")
    return {
        "plan": plan,
        "machine": machine(),
        "folds": [
            {**{k: fold[k] for k in keep}, **{p: round(fold[p]["accuracy"], 6) for p in ("validation", "test")}}
            for fold in folds
        ],
    }


def row(result: dict[str, Any]) -> str:
    """One line of the table."""
    plan, folds = result["plan"], result["folds"]
    name, method = plan["data"]["name"], folds[0]["method"]
    seeds = sorted({fold["seed"] for fold in folds})
    means = [100 * statistics.mean(f["test"] for f in folds if f["seed"] == seed) for seed in seeds]
    over_seeds = f"± {statistics.stdev(means):.2f}" if len(means) > 1 else "(one seed)"
    over_folds = statistics.stdev(100 * f["test"] for f in folds)
    validation = 100 * statistics.mean(f["validation"] for f in folds)
    semantics = plan["models"][method]["semantics"]
    cells = [
        name, method, semantics, f"{statistics.mean(means):.2f} {over_seeds}", f"{over_folds:.2f}", f"{validation:.2f}",
        PAPER.get((name, method), "–"), str(len(seeds)), str(len(folds)),
        f"{statistics.median(f['seconds'] for f in folds):.0f}",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Add a folder if one is given, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=Path)
    args = parser.parse_args()
    if args.add:
        found = compact(args.add)
        model = next(iter(found["plan"]["models"].values()))
        RESULTS.mkdir(exist_ok=True)
        target = RESULTS / f"{found['plan']['data']['name']}-{model['method']}-{model['semantics']}.json"
        target.write_text(json.dumps(found, indent=1) + "\n")
    rows = [row(json.loads(path.read_text())) for path in sorted(RESULTS.glob("*.json"))]
    head = ["data", "method", "semantics", "test accuracy", "over folds ±", "validation", "paper", "seeds", "trainings",
            "seconds each"]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *rows]
    how = (
        "\nA row again: `asapool cv PROTEINS --method asap --semantics authors --folds 10 --seeds 3 -j 2 --out DIR`\n"
        "(with `--data-root`), then `python -m benchmarks.accuracy --add DIR`.\n"
        "\nNot measured yet: the other data sets, the baselines on these folds, the ablations, and all twenty seeds.\n"
    )
    PAGE.write_text(HEAD + "\n".join(lines) + "\n" + how)
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
