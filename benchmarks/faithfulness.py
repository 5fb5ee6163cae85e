"""How well importance finds known reasons, how faithful it is to the model, and whether it survives retraining.

    python -m benchmarks.faithfulness            train, explain, write results/faithfulness.json
    python -m benchmarks.faithfulness --docs     write the tables of the JSON into docs/explanations.md

Sets with known reasons: nci-alerts (atoms of structural alerts), synthetic:motifs (nodes of the planted motif), and
Mutagenicity (NO2 and NH2 groups of mutagens, as the literature on explanations takes them). One split per set; the
seeds differ in weights, shuffling and dropout. Test graphs that the model answers correctly are explained, for that
class.

Peers on the same models (benchmarks/explainers.py): GNNExplainer (torch_geometric, a mask over nodes, 100 steps),
integrated gradients (captum, 50 steps from zero features; left out where captum is not installed), PGExplainer (trained
on 128 training graphs) and SubgraphX (on the first graphs only, as it is slow; it is given the number of true nodes).
One baseline uses no model: nodes in neighbourhoods whose features are rare in the graph.

A record is kept per set, method and seed, so an interrupted run goes on where it stopped; an
incomplete record is measured again. `--models FOLDER` keeps the trained weights there and uses those it finds.
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
from asapool.insight.importance import KINDS, frozen, typical_features
from asapool.models import GraphModel, build
from asapool.models.batches import edge_channels
from asapool.training import fit, predict, resolve
from benchmarks.explainers import SubgraphX, gnn_explainer, integrated_gradients, trained_pg_explainer

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "faithfulness.json"
PAGE = ROOT / "docs" / "explanations.md"
MARK, END = "<!-- table: from results/faithfulness.json -->\n", "<!-- end of table -->\n"
SETS = {
    "nci-alerts": {"source": "nci-alerts", "split": "scaffold", "epochs": 15, "class": "alert"},
    "synthetic:motifs": {
        "source": "synthetic:motifs?graphs=1200&seed=1",
        "split": "stratified",
        "epochs": 40,
        "class": None,
    },
    "Mutagenicity": {"source": "Mutagenicity", "split": "stratified", "epochs": 30, "class": "0"},
}
SETTINGS = {"counts": "wl", "readout_bound": 0.0}  # of asap+ when the first seeds were measured
SEARCHED = 10  # graphs that SubgraphX explains
SEEDS = (0, 1, 2, 3, 4)
MEASURES = ("precision", "roc_auc", "deletion", "insertion", "fidelity_plus", "fidelity_minus", "sparsity")
NAMES = {
    "random": "random", "atypical": "rare features, no model", "attention": "attention",
    "gradient": "gradient × input", "|gradient|": "gradient, no sign",
    "neighbourhood": "neighbourhood", "substitution": "substitution", "occlusion": "occlusion",
    "|occlusion|": "occlusion, no sign", "gnnexplainer": "GNNExplainer", "integrated": "integrated gradients",
    "|integrated|": "integrated gradients, no sign", "pgexplainer": "PGExplainer", "subgraphx": "SubgraphX",
}  # fmt: skip
PEERS = ("gnnexplainer", "integrated", "|integrated|", "pgexplainer", "subgraphx")
BASELINE = "atypical"
CHOSEN = "substitution"  # on validation graphs of other seeds, see docs/explanations.md
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


def measure(name: str, method: str, seed: int, most: int, models: Path | None = None) -> dict:
    """Train one model, or load its weights from the folder `models`; explain its test graphs, score every kind."""
    about = SETS[name]
    settings, graphs = resolve(
        {
            "data": {"source": about["source"]}, "split": {"kind": about["split"], "seed": 0},
            "model": {"hidden": 64, "method": method} | SETTINGS,
            "train": {"epochs": about["epochs"], "seed": seed, "threads": 1},
        }
    )  # fmt: skip
    graphs = with_truth(graphs)
    split = settings.split.make(graphs)
    model = build(
        settings.model, graphs.num_features, graphs.num_classes, seed=seed, edge_channels=edge_channels(graphs)
    )
    weights = None if models is None else models / f"{name}|{method}|{seed}.pt"
    if weights is not None and weights.is_file():
        model.load_state_dict(torch.load(weights, weights_only=True))
    else:
        fit(model, graphs, split, settings.train)
        if weights is not None:
            weights.parent.mkdir(parents=True, exist_ok=True)
            torch.save(model.state_dict(), weights)
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
        scores, seconds = all_kinds(model, few, graphs.subset(split.train), seed)
        for kind, values in scores.items():
            n = len(values)
            result = faithful(model, few.subset(np.arange(n)), values)
            columns = {m: result[m] for m in MEASURES if m in result}
            columns["precision"] = np.array([precision_at(t, s) for t, s in zip(truths[:n], values, strict=True)])
            columns["roc_auc"] = np.array([roc_auc_score(t, s) for t, s in zip(truths[:n], values, strict=True)])
            means = {m: float(v.mean()) for m, v in columns.items()}
            each = np.round(columns["precision"], 4).tolist()
            record["kinds"][kind] = means | {"seconds": seconds.get(kind), "precisions": each}
        assert not model.training
        steady = importance_of(model, test.subset(np.array(kept)), list(KINDS), test.y[kept])
    record["importance"] = {kind: [np.round(v, 4).tolist() for v in rows] for kind, rows in steady.items()}
    return record


def atypical(graphs: GraphSet, index: int) -> np.ndarray:
    """Mean over j ∈ N[i] of the number of nodes in N[j] whose features are not the typical ones of their degree, (N,).

    These are the nodes that `substitution` changes: what it finds beyond them, it has from the model.
    """
    batch = graphs.batch([index])
    near = np.eye(len(batch.x))
    j, i = batch.edge_index.numpy()
    near[i, j] = 1
    changed = (batch.x != typical_features(batch.x, batch.rowptr.diff())).any(dim=1).numpy()
    return near @ (near @ changed) / near.sum(axis=1)


def all_kinds(model: GraphModel, graphs: GraphSet, train: GraphSet, seed: int) -> tuple[dict, dict]:
    """Every kind of importance of every graph (of the first ones for SubgraphX), and the mean seconds per graph."""
    rng = np.random.default_rng(0)
    scores: dict[str, list[np.ndarray]] = {"random": [rng.random(int(n)) for n in np.diff(graphs.ptr)]}
    seconds: dict[str, float] = {}
    for kind in KINDS:
        began = time.perf_counter()
        scores |= importance_of(model, graphs, [kind], graphs.y)
        seconds[kind] = (time.perf_counter() - began) / len(graphs)
    scores[BASELINE] = [atypical(graphs, i) for i in range(len(graphs))]
    true = [int(graphs.truth[a:b].sum()) for a, b in pairwise(graphs.ptr)]
    with torch.enable_grad():
        pg_explainer = trained_pg_explainer(model, train, seed=seed)
    peers = {
        "gnnexplainer": lambda i: gnn_explainer(model, graphs, i),
        "integrated": lambda i: integrated_gradients(model, graphs, i, int(graphs.y[i])),
        "pgexplainer": lambda i: pg_explainer(graphs, i),
        "subgraphx": lambda i: SubgraphX(model, graphs, i, int(graphs.y[i]), size=true[i], seed=i)(),
    }
    for kind, compute in peers.items():
        began = time.perf_counter()
        values = [compute(i) for i in range(min(len(graphs), SEARCHED) if kind == "subgraphx" else len(graphs))]
        if all(v is not None for v in values):
            scores[kind], seconds[kind] = values, (time.perf_counter() - began) / len(values)
    for kind in ("gradient", "occlusion", "integrated"):
        if kind in scores:
            scores[f"|{kind}|"] = [np.abs(v) for v in scores[kind]]
    return scores, seconds


def stability(records: list[dict]) -> dict[str, float]:
    """Mean rank correlation of the importance of the same graphs over all pairs of seeds."""
    result = {}
    records = [r for r in records if r["importance"]]
    for kind in records[0]["importance"] if records else ():
        values = [
            rank_correlation(np.array(a), np.array(b))
            for one, other in combinations(records, 2)
            for a, b in zip(one["importance"][kind], other["importance"][kind], strict=True)
        ]
        if values:
            result[kind] = float(np.mean(values))
    return result


def complete(record: dict | None) -> bool:
    """Whether a record has every measure of all kinds of ours and of the peers that need no further package."""
    kinds = (*KINDS, BASELINE, "gnnexplainer", "pgexplainer", "subgraphx")
    return record is not None and all(set(MEASURES) <= set(record["kinds"].get(kind, ())) for kind in kinds)


def mean_of_known(rows: np.ndarray) -> np.ndarray:
    """Mean over seeds (rows) of each measure, over those seeds for which it is known; NaN if it never is."""
    known = ~np.isnan(rows)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, rows, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def half_width(values: np.ndarray) -> np.ndarray:
    """Half of the 95 % interval of the mean over seeds (rows), by Student's t; 0 for a single seed."""
    from scipy.stats import t

    n = len(values)
    return t.ppf(0.975, n - 1) / np.sqrt(n) * values.std(axis=0, ddof=1) if n > 1 else np.zeros(values.shape[1:])


def records_of(result: dict, later: bool = False) -> list[tuple[str, str, list[dict]]]:
    """The set, the method and the records of all their seeds, or only of the seeds after the first ones."""
    methods = sorted({key.split("|")[1] for key in result["runs"]}, reverse=True)
    chosen = {key: r for key, r in result["runs"].items() if not later or int(key.split("|")[2]) not in SEEDS}
    groups = [
        (name, method, [r for key, r in chosen.items() if key.startswith(f"{name}|{method}|")])
        for method in methods
        for name in SETS
    ]
    return [group for group in groups if group[2]]


def summary_of(result: dict) -> str:
    """The precision of the chosen kind beside that of every peer on the same graphs, in Markdown."""
    lines = [
        f"| set, method | compared with | graphs | {NAMES[CHOSEN]} | the other | intervals apart | ours is higher in |",
        "|---|---|---|---|---|---|---|",
    ]
    groups = [
        *records_of(result),
        *(
            (name, f"{method}, only seeds from {len(SEEDS)} on", records)
            for name, method, records in records_of(result, True)
        ),
    ]
    for name, method, records in groups:
        for peer in (*PEERS, BASELINE):
            both = [r["kinds"] for r in records if {peer, CHOSEN} <= set(r["kinds"])]
            if not both:
                continue
            counts = [len(kinds[peer]["precisions"]) for kinds in both]
            ours, theirs = (
                np.array([np.mean(kinds[kind]["precisions"][:n]) for kinds, n in zip(both, counts, strict=True)])
                for kind in (CHOSEN, peer)
            )
            cells = " | ".join(f"{v.mean():.3f} ± {half_width(v):.3f}" for v in (ours, theirs))
            apart = (
                "one seed"
                if len(ours) < 2
                else "yes"
                if ours.mean() - half_width(ours) > theirs.mean() + half_width(theirs)
                else "no"
            )
            seeds = f"{(ours > theirs).sum()} of {len(ours)} seeds"
            lines.append(f"| {name}, {method} | {NAMES[peer]} | {min(counts)} | {cells} | {apart} | {seeds} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def table_of(result: dict) -> str:
    """The records in Markdown: means over seeds ± half the 95 % interval of Student's t."""
    summary = summary_of(result)
    parts = [f"Precision of ours and of every peer on the same graphs:\n\n{summary}"] if summary else []
    for name, method, records in records_of(result):
        n = len(records)
        steady = stability(records)
        accuracy = np.mean([r["test_accuracy"] for r in records])
        graphs = sorted({r["graphs"] for r in records})
        count = str(graphs[0]) if len(graphs) == 1 else f"{graphs[0]}–{graphs[-1]}"
        head = f"**{name}, {method}**: {n} seeds, {count} test graphs, test accuracy {accuracy:.3f}.\n\n"
        head += "| importance | precision | ROC-AUC | deletion ↓ | insertion ↑ | fidelity+ ↑ | fidelity− ↓ "
        head += "| sparsity ↑ | stability ↑ | s per graph |\n|---|---|---|---|---|---|---|---|---|---|\n"
        for kind, words in NAMES.items():
            measured = [r["kinds"][kind] for r in records if kind in r["kinds"]]
            if not measured:
                continue
            rows = np.array([[m.get(name, np.nan) for name in MEASURES] for m in measured])
            cells = [
                "" if np.isnan(m) else f"{m:.3f} ± {s:.3f}" if k < 2 else f"{m:.3f}"
                for k, (m, s) in enumerate(zip(mean_of_known(rows), half_width(rows), strict=True))
            ]
            few = min(len(m.get("precisions", ())) or graphs[0] for m in measured)
            label = words if few == graphs[0] else f"{words} (first {few} graphs)"
            label += f" ({len(measured)} seeds)" if len(measured) < n else ""
            seconds = [m["seconds"] for m in measured]
            took = "" if seconds[0] is None else f"{np.median(seconds):.3f}"
            head += f"| {label} | {' | '.join(cells)} | {f'{steady[kind]:.2f}' if kind in steady else ''} | {took} |\n"
        parts.append(head)
    m = result["machine"]
    words = f"asapool {m['asapool']}, torch {m['torch']}, torch_geometric {m['torch_geometric']}, one thread."
    return "\n".join(parts) + f"\nMeans over seeds ± half of a 95 % interval over seeds (Student's t). {words}\n"


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
    parser.add_argument("--methods", default="asap+")
    parser.add_argument("--models", type=Path, help="folder of trained weights")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--graphs", type=int, default=30)
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
                if complete(result["runs"].get(key)):
                    continue
                began = time.perf_counter()
                result["runs"][key] = measure(name, method, int(seed), words.graphs, words.models)
                partial = RESULTS.with_suffix(".partial")
                partial.write_text(json.dumps(result) + "\n")
                partial.replace(RESULTS)
                print(f"{key}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(table_of(result))


if __name__ == "__main__":
    main()
