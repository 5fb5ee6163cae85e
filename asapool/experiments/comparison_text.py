"""The files of a finished cross-validation: every fold, the table, and the table for people."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from asapool.experiments.comparison import SCORES, Comparison, FoldResult
from asapool.files import write_csv, write_json, write_text
from asapool.training.metrics import percent


def write_tables(folder: str | PathLike[str], results: Sequence[FoldResult], answer: Comparison) -> None:
    """Write results.csv (a line per fold), table.json (what --json prints) and table.md into the folder."""
    path = Path(folder)
    header = [
        "method",
        "seed",
        "fold",
        "validation_accuracy",
        *(f"test_{name}" for name in SCORES),
        "best_epoch",
        "failure",
    ]
    write_csv(path / "results.csv", header, map(_line, results))
    write_json(path / "table.json", answer.to_dict())
    write_text(path / "table.md", markdown(answer))


def markdown(answer: Comparison) -> str:
    """The table in Markdown, numbers in percent."""
    names = ["method", "mean", "± over seeds", "± over folds", "seeds", "folds"]
    tested = [f"− {answer.reference}", "p (corrected t)", "p (Holm)", "p (Wilcoxon)"] if answer.tests else []
    lines = [names + tested, ["---"] * (len(names) + len(tested))]
    for row in answer.rows:
        cells = [row.method, percent(row.mean), percent(row.over_seeds), percent(row.over_folds)]
        cells += [str(row.seeds), str(row.folds)]
        test = answer.tests.get(row.method)
        if tested and test is None:
            cells += [""] * 4
        elif test is not None:
            cells += [f"{-100 * test['difference']:+.2f}"]
            cells += [_p(test[name]) for name in ("p_corrected_t", "p_holm", "p_wilcoxon")]
        lines.append(cells)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _line(result: FoldResult) -> list[object]:
    test, val = result.test or {}, result.validation or {}
    scores = [test.get(name) for name in SCORES]
    return [result.method, result.seed, result.fold, val.get("accuracy"), *scores, result.best_epoch, result.failure]


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
