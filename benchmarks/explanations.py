"""How well each kind of importance finds the nodes that are known to decide the class.

    python -m benchmarks.explanations           train two small models, explain their test graphs, write the JSON
    python -m benchmarks.explanations --docs    write the table of the JSON into docs/explanations.md

Only correctly predicted test graphs are explained, for that class: the ground truth is no reason for a wrong
prediction. Per graph: ROC-AUC of the importance against the truth, and precision@k, k = number of true nodes.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from asapool import __version__
from asapool.data import GraphSet
from asapool.insight import explain
from asapool.models import GraphClassifier, build
from asapool.training import fit, predict, resolve
from benchmarks.explainers import gnn_explainer

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "explanations.json"
PAGE = ROOT / "docs" / "explanations.md"
SETS = {
    "nci-alerts": {"source": "nci-alerts", "split": "scaffold", "epochs": 15, "class": "alert"},
    "synthetic:motifs": {
        "source": "synthetic:motifs?graphs=1200&seed=1",
        "split": "stratified",
        "epochs": 40,
        "class": None,
    },
}
NAMES = {
    "random": "random", "degree": "degree", "attention": "composed attention × fitness", "gradient": "gradient × input",
    "|gradient|": "gradient × input, without its sign", "occlusion": "occlusion, node removed",
    "|occlusion|": "occlusion, node removed, without its sign", "occlusion-zero": "occlusion, features zeroed",
    "gnnexplainer": "GNNExplainer, node mask (torch_geometric)",
}  # fmt: skip
MOST = 150  # graphs explained per set


def precision(truth: np.ndarray, scores: np.ndarray, chance: np.random.Generator) -> float:
    """Share of true nodes among the k most important, k = number of true nodes; ties are broken by chance."""
    k = int(truth.sum())
    order = np.lexsort((chance.random(len(scores)), -scores))
    return float(truth[order[:k]].mean())


def measure(name: str) -> dict:
    """Train, explain and score one set."""
    entry = SETS[name]
    settings, graphs = resolve(
        {
            "data": {"source": entry["source"]}, "split": {"kind": entry["split"], "seed": 0}, "model": {"hidden": 64},
            "train": {"epochs": entry["epochs"], "seed": 0, "threads": 1},
        }
    )  # fmt: skip
    split = settings.split.make(graphs)
    model = build(settings.model, graphs.num_features, graphs.num_classes, seed=0)
    fit(model, graphs, split, settings.train)
    p = predict(model, graphs, split.test)
    right = p.argmax(axis=1) == graphs.y[split.test]
    wanted = (
        right if entry["class"] is None else right & (graphs.y[split.test] == graphs.class_names.index(entry["class"]))
    )
    chance = np.random.default_rng(0)
    rows: dict[str, list[tuple[float, float, float]]] = {}
    chosen = [i for i in np.asarray(split.test)[wanted].tolist() if 0 < _truth(graphs, i).mean() < 1][:MOST]
    for i in chosen:
        truth = _truth(graphs, i)
        for kind, (scores, seconds) in importances(model, graphs, i, chance).items():
            result = (float(roc_auc_score(truth, scores)), precision(truth, scores, chance), seconds)
            rows.setdefault(kind, []).append(result)
    table = {}
    for kind, values in rows.items():
        auc, at_k, seconds = np.array(values).T
        table[kind] = {
            "roc_auc": auc.mean(), "roc_auc_error": auc.std(ddof=1) / np.sqrt(len(auc)), "precision": at_k.mean(),
            "precision_error": at_k.std(ddof=1) / np.sqrt(len(at_k)), "seconds": float(np.median(seconds)),
        }  # fmt: skip
    share = float(np.mean([_truth(graphs, i).mean() for i in chosen]))
    accuracy = float(right.mean())
    return {
        "graphs": len(chosen), "test_accuracy": accuracy, "share_of_true_nodes": share, "epochs": entry["epochs"],
        "split": entry["split"], "source": entry["source"], "class": entry["class"], "kinds": table,
    }  # fmt: skip


def importances(model: GraphClassifier, graphs: GraphSet, i: int, chance: np.random.Generator) -> dict:
    """Every kind of importance of graph i with the seconds it took."""
    a, b = graphs.ptr[i], graphs.ptr[i + 1]
    result = {
        "random": (chance.random(b - a), 0.0),
        "degree": (np.diff(graphs.rowptr[a : b + 1]).astype(float), 0.0),
    }
    for kind, scores_of, occlude in (
        ("attention", "attention", "remove"), ("gradient", "gradient", "remove"), ("occlusion", "occlusion", "remove"),
        ("occlusion-zero", "occlusion", "zero"),
    ):  # fmt: skip
        began = time.perf_counter()
        scores = explain(model, graphs, i, importance=[scores_of], occlude=occlude).importance[scores_of]
        result[kind] = (scores, time.perf_counter() - began)
        if kind in ("gradient", "occlusion"):
            result[f"|{kind}|"] = (np.abs(scores), result[kind][1])
    began = time.perf_counter()
    result["gnnexplainer"] = (gnn_explainer(model, graphs, i), time.perf_counter() - began)
    return result


def _truth(graphs: GraphSet, i: int) -> np.ndarray:
    return graphs.truth[graphs.ptr[i] : graphs.ptr[i + 1]]


def table_of(result: dict) -> str:
    """The result in Markdown, one table per set."""
    parts = []
    for name, entry in result["sets"].items():
        what = f"class {entry['class']!r}" if entry["class"] else "both classes"
        parts.append(
            f"**{name}**: {entry['graphs']} test graphs that the model predicted correctly ({what}; its test accuracy "
            f"is {entry['test_accuracy']:.3f} on a {entry['split']} split after {entry['epochs']} epochs); "
            f"{entry['share_of_true_nodes']:.0%} of their nodes are true.\n\n"
            "| importance by | ROC-AUC | precision@k | seconds per graph |\n|---|---|---|---|\n"
            + "".join(
                f"| {words} | {k['roc_auc']:.3f} ± {k['roc_auc_error']:.3f} | {k['precision']:.3f} ± "
                f"{k['precision_error']:.3f} | {'as above' if kind[0] == '|' else format(k['seconds'], '.3f')} |\n"
                for kind, words in NAMES.items()
                for k in [entry["kinds"][kind]]
            )
        )
    m = result["machine"]
    return "\n".join(parts) + (
        f"\nMeans over graphs ± standard error. asapool {m['asapool']}, torch {m['torch']}, torch_geometric "
        f"{m['torch_geometric']}, Python {m['python']}, one thread; {m['processor']}.\n"
    )


def write_docs() -> None:
    """Put the tables between the two marks of the page."""
    before, _, rest = PAGE.read_text().partition("<!-- table: from benchmarks/results/explanations.json -->\n")
    after = rest.partition("<!-- end of table -->\n")[2]
    tables = table_of(json.loads(RESULTS.read_text()))
    mark = "<!-- table: from benchmarks/results/explanations.json -->\n"
    PAGE.write_text(f"{before}{mark}\n{tables}\n<!-- end of table -->\n{after}")


def main() -> None:
    """Measure everything and keep it."""
    import torch_geometric

    torch.set_num_threads(1)
    machine = {
        "asapool": __version__, "torch": torch.__version__, "torch_geometric": torch_geometric.__version__,
        "python": platform.python_version(), "processor": platform.processor() or platform.machine(),
    }  # fmt: skip
    sets = {}
    for name in SETS:
        began = time.perf_counter()
        sets[name] = measure(name)
        print(
            f"{name}: {time.perf_counter() - began:.0f} s, test accuracy {sets[name]['test_accuracy']:.3f}",
            file=sys.stderr,
        )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"version": 1, "machine": machine, "sets": sets}, indent=1) + "\n")
    print(table_of({"machine": machine, "sets": sets}))


if __name__ == "__main__":
    write_docs() if "--docs" in sys.argv else main()
