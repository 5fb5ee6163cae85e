"""What `make demo` runs: real molecules, a model that sees structure, and two baselines that it has to beat.

nci-alerts is a set of 4,991 molecules that come with RDKit; a molecule is an "alert" if it contains a group that
medicinal chemists avoid (the BRENK catalogue). Molecules with the same scaffold stay in the same part of the split, so
that the test molecules have unseen scaffolds. The model is in runs/demo: try

    asapool predict runs/demo nci-alerts -o predictions.csv
"""

from __future__ import annotations

import sys
import time

from asapool.reports import write_report
from asapool.training import resolve, start

EPOCHS = 20


def train(method: str, folder: str) -> dict:
    """Train one method on the same split as every other, and return its metrics."""
    settings, graphs = resolve(
        {
            "data": {"source": "nci-alerts"},
            "split": {"kind": "scaffold"},
            "model": {"method": method, "hidden": 64},
            "train": {"epochs": EPOCHS, "seed": 0},
        }
    )

    def tell(epoch, progress):
        if epoch.epoch % 5 == 0:
            left = (EPOCHS - epoch.epoch) * epoch.seconds
            print(
                f"  {method}: epoch {epoch.epoch:>2} of {EPOCHS}, loss {epoch.loss:.3f}, "
                f"validation accuracy {epoch.val_accuracy:.3f}, about {left:.0f} s left",
                file=sys.stderr,
            )

    return start(settings, graphs, folder, overwrite=True, on_epoch=tell)


def main() -> None:
    """Train ASAP and the structure-free mlp, and print their scores beside the majority class."""
    began = time.perf_counter()
    runs = {"asap": train("asap", "runs/demo"), "mlp": train("mlp", "runs/demo-mlp")}
    parts, majority = runs["asap"]["parts"], runs["asap"]["majority_class"]
    print(
        f"nci-alerts: {parts['train']:,} training, {parts['val']} validation, {parts['test']} test molecules "
        "(scaffold split)"
    )
    print()
    print(f"{'test molecules, unseen scaffolds':<46} accuracy  balanced  ROC AUC")
    rows = {"asap (hierarchical pooling)": runs["asap"], "mlp (sums the atoms, sees no structure)": runs["mlp"]}
    for name, run in rows.items():
        test = run["test"]
        print(f"{name:<46} {test['accuracy']:8.3f}  {test['balanced_accuracy']:8.3f}  {test['roc_auc']:7.3f}")
    always = f"majority class (always {majority['class']!r})"
    print(f"{always:<46} {majority['test_accuracy']:8.3f}  {0.5:8.3f}  {0.5:7.3f}")
    print()
    write_report("runs/demo")
    seconds = time.perf_counter() - began
    print(f"The model is in runs/demo/model.safetensors, its report in runs/demo/report.html ({seconds:.0f} s).")
    print("To see why it predicts what it does: asapool explain runs/demo nci-alerts --graph 3 -o page.html")


if __name__ == "__main__":
    main()
