"""The page of a cross-validation or a comparison: one table, the spread over folds and seeds, then every method."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asapool.errors import CheckpointError
from asapool.experiments.paper import claim
from asapool.experiments.record import RunRecord
from asapool.experiments.store import Store
from asapool.files import read_json
from asapool.reports.charts import strip_chart
from asapool.reports.method_cards import GraphNames, method_view
from asapool.reports.page import Fact, TableView, render
from asapool.reports.seeds import seed_table
from asapool.training.metrics import percent

SIGNIFICANT = 0.05
MEANING = {
    "mean": "Mean test accuracy over all finished folds, in percent.",
    "± over seeds": "Standard deviation of the means of the seeds, as the paper prints it; needs two finished seeds.",
    "± over folds": "Standard deviation of the folds of a seed, averaged over the seeds.",
    "validation": "Mean validation accuracy of the selected epochs, in percent.",
    "balanced": "Balanced accuracy: the mean over the classes of the share that is predicted correctly, in percent.",
    "ROC AUC": "Area under the ROC curve, in percent.",
    "PR AUC": "Area under the precision-recall curve (average precision), in percent.",
    "folds": "Finished trainings: seeds × folds.",
    "s/fold": "Mean training time per fold, in seconds.",
    "p (corrected t)": "Paired t-test on the same folds, with the correction of Nadeau and Bengio for overlapping "
    "training sets.",
    "p (Holm)": "The same after Holm's adjustment for several comparisons; below 0.05 a difference is significant.",
    "p (Wilcoxon)": "Wilcoxon's signed-rank test on the same folds.",
    "paper": "What the paper reports, over 20 seeds of 10 folds.",
    "difference to paper": "Our mean minus the paper's, in percentage points.",
}


def is_comparison(folder: Path) -> bool:
    """Whether asapool cv or compare worked in the folder."""
    return (folder / "plan.json").is_file()


def comparison_page(folder: Path) -> str:
    """Read plan.json, table.json, graphs.csv and the records, and write their page."""
    if not (folder / "table.json").is_file():
        raise CheckpointError(f"{folder}: the cross-validation is not finished. Give its command again")
    plan, answer = read_json(folder / "plan.json"), read_json(folder / "table.json")
    try:
        records = list(Store.read(folder).values())
        return _page(folder, plan, answer, records, GraphNames.read(folder / "graphs.csv"))
    except (OSError, KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"{folder}: its files do not fit together ({type(error).__name__}: {error}). Run the command again"
        ) from None


def _page(
    folder: Path, plan: dict[str, Any], answer: dict[str, Any], records: Sequence[RunRecord], graphs: GraphNames
) -> str:
    by_method = {row["method"]: [r for r in records if r.run.model.method == row["method"]] for row in answer["rows"]}
    data, several = plan["data"], len(answer["rows"]) > 1
    heading = f"{data['name']}: {'a comparison of methods' if several else answer['rows'][0]['method']}"
    seeds = ", ".join(map(str, plan["seeds"]))
    views = [view for method, own in by_method.items() if (view := method_view(method, own, graphs)) is not None]
    settings = {key: plan[key] for key in ("data", "folds", "seeds", "protocol", "train", "models")}
    return render(
        "comparison.html", heading=heading, title=f"asapool: {heading}",
        about=f"{data['graphs']:,} graphs · {plan['folds']} {plan['protocol']} folds · seeds {seeds}",
        links=[(f"method-{k}", view["name"]) for k, view in enumerate(views, 1)] if several else [],
        glance=_glance(answer), scores=_scores(data["name"], answer), spread=_spread(by_method), methods=views,
        failures=answer["failures"], repeat=_repeat(folder),
        settings=json.dumps(settings, indent=1, ensure_ascii=False),
    )  # fmt: skip


def _glance(answer: dict[str, Any]) -> dict[str, Any]:
    best, several = answer["rows"][0], len(answer["rows"]) > 1
    facts = [
        Fact("highest mean" if several else "method", best["method"], f"{best['folds']} folds"),
        Fact("mean test accuracy, %", percent(best["mean"])),
        Fact("± over seeds", percent(best["over_seeds"]), "what the paper prints"),
        Fact("± over folds", percent(best["over_folds"]), "within a seed"),
    ]
    return {"facts": facts, "lead": _significance(answer) if several else ""}


def _significance(answer: dict[str, Any]) -> str:
    """Whether the reference and the other methods differ, by the adjusted test."""
    clear = [m for m, t in answer["tests"].items() if t["p_holm"] is not None and t["p_holm"] < SIGNIFICANT]
    reference = answer["reference"]
    if not clear:
        return f"No method differs significantly from {reference} (paired test on the same folds, Holm-adjusted, 5 %)."
    names = ", ".join(clear)
    return f"Significantly different from {reference} (paired test on the same folds, Holm-adjusted, 5 %): {names}."


def _scores(data: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The table with all scores, best mean first, and the meaning of its columns."""
    paper, reference, tests = (
        any(claim(data, row["method"]) for row in answer["rows"]),
        answer["reference"],
        answer["tests"],
    )
    gap = f"difference to {reference}"
    header = [
        "method",
        "mean",
        "± over seeds",
        "± over folds",
        "validation",
        "balanced",
        "ROC AUC",
        "PR AUC",
        "folds",
        "s/fold",
    ]
    header += [gap, "p (corrected t)", "p (Holm)", "p (Wilcoxon)"] if tests else []
    header += ["paper", "difference to paper"] if paper else []
    rows = []
    for row in answer["rows"]:
        cells = [row["method"], *(percent(row[key]) for key in ("mean", "over_seeds", "over_folds", "validation"))]
        cells += [percent(row["scores"][key]) for key in ("balanced_accuracy", "roc_auc", "pr_auc")]
        cells += [_trainings(row), "–" if row["seconds"] is None else f"{row['seconds']:.1f}"]
        if tests:
            cells += _tested(tests.get(row["method"]))
        known = claim(data, row["method"])
        if paper:
            far = None if known is None or row["mean"] is None else 100 * row["mean"] - known.mean
            cells += [
                "–" if known is None else f"{known.mean:.2f} ± {known.deviation:.2f}",
                "–" if far is None else f"{far:+.2f}",
            ]
        rows.append(cells)
    meaning = MEANING | {
        gap: f"Mean minus that of {reference} over the folds that both have finished, in percentage points."
    }
    table = TableView(header, rows, "", "numbers wide", [(name, meaning[name]) for name in header if name in meaning])
    lead = "Scores on the test folds in percent, highest mean first."
    if tests:
        lead += f" Tests compare each method with {reference}, the first of the methods given, on the same folds."
    return {"title": "All methods" if len(rows) > 1 else "All scores", "lead": lead, "table": table}


def _trainings(row: dict[str, Any]) -> str:
    """How many trainings: seeds × folds where every seed has as many."""
    even = row["seeds"] and row["folds"] % row["seeds"] == 0
    many = f"{row['seeds']} × {row['folds'] // row['seeds']}" if even else str(row["folds"])
    return many + (f" ({row['failed']} failed)" if row["failed"] else "")


def _tested(test: dict[str, Any] | None) -> list[str]:
    if test is None:
        return ["reference", "", "", ""]
    values = (test[key] for key in ("p_corrected_t", "p_holm", "p_wilcoxon"))
    return [f"{-100 * test['difference']:+.2f}", *("–" if p is None else f"{p:.3g}" for p in values)]


def _spread(by_method: Mapping[str, Sequence[RunRecord]]) -> dict[str, Any] | None:
    groups: dict[str, dict[str, list[float]]] = {method: {} for method in by_method}
    for method, records in by_method.items():
        for r in sorted(records, key=lambda r: (r.run.seed, r.run.fold)):  # whatever order they ended in
            if r.test is not None and r.test["accuracy"] is not None:
                groups[method].setdefault(str(r.run.seed), []).append(100 * r.test["accuracy"])
    groups = {method: seeds for method, seeds in groups.items() if seeds}
    if not groups:
        return None
    named = {method: {f"seed {seed}": values for seed, values in seeds.items()} for method, seeds in groups.items()}
    chart = strip_chart(named, "test accuracy of every fold", "test accuracy, %")
    table = seed_table(
        ["method"], [([method], seed, v) for method, seeds in groups.items() for seed, v in seeds.items()]
    )
    return {"chart": chart, "table": table}


def _repeat(folder: Path) -> TableView:
    import torch

    import asapool

    rows = [
        ["folder", str(folder)],
        ["page written by asapool", asapool.__version__],
        ["with torch", torch.__version__],
    ]
    return TableView(["", ""], rows, "What it takes to repeat this", "")
