"""The page of a cross-validation or a comparison: one table, the spread over folds and seeds, then every method."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from asapool.errors import CheckpointError
from asapool.experiments.paper import claim
from asapool.experiments.record import RunRecord
from asapool.experiments.store import Store
from asapool.files import read_json
from asapool.reports.charts import strip_chart
from asapool.reports.method_cards import Named, method_section
from asapool.reports.page import document, section, table, text
from asapool.reports.run_page import facts


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
        return _page(folder, plan, answer, records, Named.read(folder / "graphs.csv"))
    except (OSError, KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"{folder}: its files do not fit together ({type(error).__name__}: {error}). Run the command again"
        ) from None


def _page(
    folder: Path, plan: dict[str, Any], answer: dict[str, Any], records: Sequence[RunRecord], graphs: Named
) -> str:
    by_method = {row["method"]: [r for r in records if r.run.model.method == row["method"]] for row in answer["rows"]}
    data, several = plan["data"], len(answer["rows"]) > 1
    title = f"{data['name']}: {'a comparison of methods' if several else answer['rows'][0]['method']}"
    seeds = ", ".join(map(str, plan["seeds"]))
    about = f"{data['graphs']:,} graphs · {plan['folds']} {plan['protocol']} folds · seeds {seeds}"
    head = f'<header class="top"><h1>{text(title)}</h1><p class="lead">{text(about)}</p></header>'
    body = _headline(answer) + _table(data["name"], answer) + _spread(by_method)
    body += "".join(method_section(method, mine, graphs) for method, mine in by_method.items())
    if answer["failures"]:
        rows = "".join(f"<li>{text(why)}</li>" for why in answer["failures"])
        body += section("Trainings that failed", f"<ul>{rows}</ul>")
    return document(f"asapool: {title}", f"{head}<main>{body}{_settings(folder, plan)}</main>")


def _headline(answer: dict[str, Any]) -> str:
    best = answer["rows"][0]
    rows = [
        ("best method" if len(answer["rows"]) > 1 else "method", best["method"], f"{best['folds']} folds"),
        ("mean test accuracy", percent(best["mean"]), "percent"),
        ("± over seeds", percent(best["over_seeds"]), "what the paper prints"),
        ("± over folds", percent(best["over_folds"]), "within a seed"),
    ]
    return section("At a glance", facts(rows))


def _table(data: str, answer: dict[str, Any]) -> str:
    paper = any(claim(data, row["method"]) for row in answer["rows"])
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
    header += [f"− {answer['reference']}", "p (corrected t)", "p (Holm)", "p (Wilcoxon)"] if answer["tests"] else []
    header += ["the paper", "difference"] if paper else []
    rows = []
    for row in answer["rows"]:
        s = row["scores"]
        cells = [row["method"], *(percent(row[key]) for key in ("mean", "over_seeds", "over_folds", "validation"))]
        cells += [percent(s[key]) for key in ("balanced_accuracy", "roc_auc", "pr_auc")]
        cells += [str(row["folds"]) + (f" ({row['failed']} failed)" if row["failed"] else "")]
        cells.append("–" if row["seconds"] is None else f"{row['seconds']:.1f}")
        test = answer["tests"].get(row["method"])
        if answer["tests"]:
            cells += [""] * 4 if test is None else [
                f"{-100 * test['difference']:+.2f}",
                *(_p(test[key]) for key in ("p_corrected_t", "p_holm", "p_wilcoxon")),
            ]  # fmt: skip
        known = claim(data, row["method"])
        if paper and known is not None:
            gap = "–" if row["mean"] is None else f"{100 * row['mean'] - known.mean:+.2f}"
            cells += [f"{known.mean:.2f} ± {known.deviation:.2f}", gap]
        elif paper:
            cells += ["–", "–"]
        rows.append(cells)
    lead = "Test accuracy and its kin in percent, best method first." + (
        " p values test each method against the first, on the same folds." if answer["tests"] else ""
    )
    return section("All methods" if len(rows) > 1 else "All scores", table(header, rows, "", "numbers"), lead)


def _spread(by_method: Mapping[str, Sequence[RunRecord]]) -> str:
    groups: dict[str, dict[str, list[float]]] = {method: {} for method in by_method}
    for method, records in by_method.items():
        for r in sorted(records, key=lambda r: (r.run.seed, r.run.fold)):  # whatever order they ended in
            if r.test is not None and r.test["accuracy"] is not None:
                groups[method].setdefault(f"seed {r.run.seed}", []).append(r.test["accuracy"])
    groups = {method: seeds for method, seeds in groups.items() if seeds}
    if not groups:
        return ""
    chart = f"<div>{strip_chart(groups, 'test accuracy of every fold', 'test accuracy')}</div>"
    rows = [
        [method, seed.removeprefix("seed "), str(len(v)), percent(float(np.mean(v))), percent(min(v)), percent(max(v))]
        for method, seeds in groups.items()
        for seed, v in seeds.items()
    ]
    every = table(["method", "seed", "folds", "mean", "lowest", "highest"], rows, "By seed, in percent", "numbers")
    lead = "Each dot is a fold, the bar the mean of all."
    return section("Spread over folds and seeds", f'<div class="grid">{chart}{every}</div>', lead)


def _settings(folder: Path, plan: dict[str, Any]) -> str:
    import torch

    import asapool

    told = {key: plan[key] for key in ("data", "folds", "seeds", "protocol", "train", "models")}
    rows = [
        ["folder", str(folder)],
        ["page written by asapool", asapool.__version__],
        ["with torch", torch.__version__],
    ]
    words = text(json.dumps(told, indent=1, ensure_ascii=False))
    every = f"<details><summary>All settings</summary><pre>{words}</pre></details>"
    return section("Settings and versions", table(["", ""], rows, "What it takes to repeat this") + every)


def percent(value: float | None) -> str:
    """Two decimals, or a dash."""
    return "–" if value is None else f"{100 * value:.2f}"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
