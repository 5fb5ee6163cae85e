"""How well importance finds known reasons, how faithful it is to the model, and whether it survives retraining.

    python -m benchmarks.faithfulness            train, explain, write results/faithfulness.json
    python -m benchmarks.faithfulness --docs     write the tables of the JSON into docs/explanations.md

Sets with known reasons: nci-alerts (atoms of structural alerts), synthetic:motifs (nodes of the planted motif), and
Mutagenicity (NO2 and NH2 groups of mutagens, as the literature on explanations takes them). One split per set; the
seeds differ in weights, shuffling and dropout. Test graphs that the model answers correctly are explained, for that
class.

Peers on the same models: GNNExplainer (torch_geometric, a mask over nodes, 100 steps) and integrated gradients (captum,
50 steps from zero features; left out where captum is not installed). A record is kept per set, method and seed, so an
interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

import asapool
from asapool.data import GraphSet
from asapool.insight.faithfulness import faithful, importance_of, precision_at, rank_correlation
from asapool.insight.importance import KINDS, frozen
from asapool.models import GraphModel, build
from asapool.models.batches import cut, edge_channels
from asapool.training import fit, predict, resolve

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "faithfulness.json"
PAGE = ROOT / "docs" / "explanations.md"
MARK, END = "<!-- table: from results/faithfulness.json -->\n", "<!-- end of table -->\n"
SETS = {
    "nci-alerts": {"source": "nci-alerts", "split": "scaffold", "epochs": 15, "class": "alert"},
    "synthetic:motifs": {
        "source": "synthetic:motifs?graphs=1200&seed=1", "split": "stratified", "epochs": 40, "class": None,
    },
    "Mutagenicity": {"source": "Mutagenicity", "split": "stratified", "epochs": 30, "class": "0"},
}  # fmt: skip
SEEDS = (0, 1, 2, 3, 4)
MEASURES = ("precision", "roc_auc", "deletion", "insertion", "fidelity_plus", "fidelity_minus", "sparsity")
NAMES = {
    "random": "random", "attention": "attention", "gradient": "gradient × input", "|gradient|": "gradient, no sign",
    "neighbourhood": "neighbourhood", "occlusion": "occlusion", "|occlusion|": "occlusion, no sign",
    "gnnexplainer": "GNNExplainer", "integrated": "integrated gradients",
    "|integrated|": "integrated gradients, no sign",
}  # fmt: skip
KEPT = 30  # graphs whose importance is kept for the stability
OXYGEN, HYDROGEN, NITROGEN = 1, 3, 4  # node labels of Mutagenicity


def with_truth(graphs: GraphSet) -> GraphSet:
    """Mutagenicity with the atoms of NO2 and NH2 groups marked; other sets have their truth."""
    if graphs.truth is not None:
        return graphs
    element = graphs.x.argmax(axis=1)
    degree = np.diff(graphs.rowptr)
    truth = np.zeros(len(element), np.int8)
    for v in np.flatnonzero(element == NITROGEN).tolist():
        around = graphs.col[graphs.rowptr[v] : graphs.rowptr[v + 1]]
        for group in (around[(element[around] == OXYGEN) & (degree[around] == 1)], around[element[around] == HYDROGEN]):
            if len(group) == 2:
                truth[[v, *group]] = 1
    return graphs.with_fields(truth=truth)


class Adapter(torch.nn.Module):
    """A model as explainers call it: node features of one graph in, logits out; the structure stays."""

    def __init__(self, model: GraphModel, graphs: GraphSet, index: int) -> None:
        super().__init__()
        self.model, self.batch = model, cut(model, graphs, np.array([index]))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor | None = None) -> torch.Tensor:
        """Logits (1, C)."""
        return self.model(x, *self.batch.inputs[1:], **self.model.more(self.batch))


def gnn_explainer(model: GraphModel, graphs: GraphSet, index: int) -> np.ndarray:
    """Importance (N,) by a learned mask over the nodes."""
    from torch_geometric.explain import Explainer, GNNExplainer

    torch.manual_seed(index)
    adapter = Adapter(model, graphs, index)
    explainer = Explainer(
        adapter, GNNExplainer(epochs=100), explanation_type="model", node_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"},
    )  # fmt: skip
    return explainer(adapter.batch.x, adapter.batch.edge_index).node_mask.view(-1).numpy()


def integrated_gradients(model: GraphModel, graphs: GraphSet, index: int, c: int) -> np.ndarray | None:
    """Σ_f of captum's integrated gradients of the logit of class c, from zero features, (N,); None without captum."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        return None
    adapter = Adapter(model, graphs, index)

    def logit(x: torch.Tensor) -> torch.Tensor:
        z = adapter(x[0])
        return z[:, c] - torch.cat([z[:, :c], z[:, c + 1 :]], dim=1).logsumexp(dim=1)

    result = IntegratedGradients(logit).attribute(adapter.batch.x[None], n_steps=50, internal_batch_size=1)
    return result[0].sum(dim=1).detach().numpy()


def measure(name: str, method: str, seed: int, most: int) -> dict:
    """Train one model, explain its test graphs, score every kind."""
    about = SETS[name]
    settings, graphs = resolve(
        {
            "data": {"source": about["source"]}, "split": {"kind": about["split"], "seed": 0},
            "model": {"hidden": 64, "method": method},
            "train": {"epochs": about["epochs"], "seed": seed, "threads": 1},
        }
    )  # fmt: skip
    graphs = with_truth(graphs)
    split = settings.split.make(graphs)
    model = build(
        settings.model, graphs.num_features, graphs.num_classes, seed=seed, edge_channels=edge_channels(graphs)
    )
    fit(model, graphs, split, settings.train)
    test = graphs.subset(split.test)
    answer = predict(model, test).argmax(axis=1)
    sizes = [test.truth[a:b].mean() for a, b in pairwise(test.ptr)]
    fit_for = [i for i in range(len(test)) if 0 < sizes[i] < 1]
    if about["class"] is not None:
        fit_for = [i for i in fit_for if test.class_names[test.y[i]] == about["class"]]
    right = [i for i in fit_for if answer[i] == test.y[i]][:most]
    kept = fit_for[:KEPT]
    record = {"test_accuracy": float((answer == test.y).mean()), "graphs": len(right), "kinds": {}, "importance": {}}
    few = test.subset(np.array(right))
    truths = [few.truth[a:b].astype(np.int64) for a, b in pairwise(few.ptr)]
    model.eval()
    with frozen(model):
        scores, seconds = all_kinds(model, few)
        for kind, values in scores.items():
            result = faithful(model, few, values)
            columns = {m: result[m] for m in MEASURES if m in result}
            columns["precision"] = np.array([precision_at(t, s) for t, s in zip(truths, values, strict=True)])
            columns["roc_auc"] = np.array([roc_auc_score(t, s) for t, s in zip(truths, values, strict=True)])
            record["kinds"][kind] = {m: float(v.mean()) for m, v in columns.items()} | {"seconds": seconds.get(kind)}
        steady = importance_of(model, test.subset(np.array(kept)), list(KINDS), test.y[kept])
    record["importance"] = {kind: [np.round(v, 4).tolist() for v in rows] for kind, rows in steady.items()}
    return record


def all_kinds(model: GraphModel, graphs: GraphSet) -> tuple[dict, dict]:
    """Every kind of importance of every graph, and the median seconds per graph."""
    rng = np.random.default_rng(0)
    scores: dict[str, list[np.ndarray]] = {"random": [rng.random(int(n)) for n in np.diff(graphs.ptr)]}
    seconds: dict[str, float] = {}
    for kind in KINDS:
        began = time.perf_counter()
        scores |= importance_of(model, graphs, [kind], graphs.y)
        seconds[kind] = (time.perf_counter() - began) / len(graphs)
    peers = {
        "gnnexplainer": lambda i: gnn_explainer(model, graphs, i),
        "integrated": lambda i: integrated_gradients(model, graphs, i, int(graphs.y[i])),
    }
    for kind, compute in peers.items():
        began = time.perf_counter()
        values = [compute(i) for i in range(len(graphs))]
        if all(v is not None for v in values):
            scores[kind], seconds[kind] = values, (time.perf_counter() - began) / len(graphs)
    for kind in ("gradient", "occlusion", "integrated"):
        if kind in scores:
            scores[f"|{kind}|"] = [np.abs(v) for v in scores[kind]]
    return scores, seconds


def stability(records: list[dict]) -> dict[str, float]:
    """Mean rank correlation of the importance of the same graphs over all pairs of seeds."""
    result = {}
    for kind in records[0]["importance"]:
        values = [
            rank_correlation(np.array(a), np.array(b))
            for one, other in combinations(records, 2)
            for a, b in zip(one["importance"][kind], other["importance"][kind], strict=True)
        ]
        if values:
            result[kind] = float(np.mean(values))
    return result


def table_of(result: dict) -> str:
    """The records in Markdown: means over seeds ± half the 95% interval of Student's t."""
    from scipy.stats import t

    parts = []
    for name in SETS:
        for method in sorted({key.split("|")[1] for key in result["runs"]}):
            records = [r for key, r in result["runs"].items() if key.startswith(f"{name}|{method}|")]
            if not records:
                continue
            n = len(records)
            half = t.ppf(0.975, n - 1) / np.sqrt(n) if n > 1 else 0.0
            steady = stability(records)
            accuracy = np.mean([r["test_accuracy"] for r in records])
            graphs = records[0]["graphs"]
            head = f"**{name}, {method}**: {n} seeds, {graphs} test graphs, test accuracy {accuracy:.3f}.\n\n"
            head += "| importance | precision | ROC-AUC | deletion ↓ | insertion ↑ | fidelity+ ↑ | fidelity− ↓ "
            head += "| sparsity ↑ | stability ↑ | s per graph |\n|---|---|---|---|---|---|---|---|---|---|\n"
            for kind, words in NAMES.items():
                if any(kind not in r["kinds"] for r in records):
                    continue
                rows = np.array([[r["kinds"][kind][m] for m in MEASURES] for r in records])
                spread = half * rows.std(axis=0, ddof=1) if n > 1 else np.zeros(len(MEASURES))
                cells = [
                    f"{m:.3f} ± {s:.3f}" if k < 2 else f"{m:.3f}"
                    for k, (m, s) in enumerate(zip(rows.mean(axis=0), spread, strict=True))
                ]
                seconds = [r["kinds"][kind]["seconds"] for r in records]
                took = "" if seconds[0] is None else f"{np.median(seconds):.3f}"
                head += (
                    f"| {words} | {' | '.join(cells)} | {f'{steady[kind]:.2f}' if kind in steady else ''} | {took} |\n"
                )
            parts.append(head)
    m = result["machine"]
    words = f"asapool {m['asapool']}, torch {m['torch']}, torch_geometric {m['torch_geometric']}, one thread."
    return "\n".join(parts) + f"\nMeans over seeds ± half of a 95% interval over seeds (Student's t). {words}\n"


def write_docs() -> None:
    """Put the tables between the two marks of the page."""
    before, _, rest = PAGE.read_text().partition(MARK)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{MARK}\n{table_of(json.loads(RESULTS.read_text()))}\n{END}{after}")


def main() -> None:
    """Measure what is not there yet."""
    import torch_geometric

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default="asap")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--graphs", type=int, default=60)
    words = parser.parse_args()
    if words.docs:
        write_docs()
        return
    torch.set_num_threads(1)
    result = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {"version": 1, "runs": {}}
    result["machine"] = {
        "asapool": asapool.__version__, "torch": torch.__version__, "torch_geometric": torch_geometric.__version__,
        "python": platform.python_version(), "processor": platform.processor() or platform.machine(),
    }  # fmt: skip
    for seed in words.seeds.split(","):
        for name in words.sets.split(","):
            for method in words.methods.split(","):
                key = f"{name}|{method}|{seed}"
                if key in result["runs"]:
                    continue
                began = time.perf_counter()
                result["runs"][key] = measure(name, method, int(seed), words.graphs)
                partial = RESULTS.with_suffix(".partial")
                partial.write_text(json.dumps(result) + "\n")
                partial.replace(RESULTS)
                print(f"{key}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(table_of(result))


if __name__ == "__main__":
    main()
