"""The columns of a table: one list, used for Markdown, CSV, the terminal and the pages.

A new column is one more line here (with its meaning), and a field of TableCell if it needs a new value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from asapool.experiments.summary import SCORES
from asapool.experiments.table_text import number, p_value, signed

if TYPE_CHECKING:
    from asapool.experiments.tables import Table, TableCell


class Column(NamedTuple):
    """One column.

    Args:
        key: Its name in CSV.
        head: Its heading; {row}, {mean} and {reference} are filled in.
        value: Its value in CSV.
        text: Its text; None if the column is for CSV only.
        shown: Whether it is shown in a table.
        wide: Whether it is left out on a terminal, to save space.
    """

    key: str
    head: str
    value: Callable[[TableCell, Table], Any]
    text: Callable[[TableCell, Table], str] | None = None
    shown: Callable[[Table], bool] = lambda table: True
    wide: bool = False


def _field(key: str, head: str = "", shown: Callable[[Table], bool] = lambda table: True) -> Column:
    """A number of the cell, with two decimals."""
    text = (lambda cell, table: number(getattr(cell, key))) if head else None
    return Column(key, head, lambda cell, table: _two(getattr(cell, key)), text, shown)


def _plain(key: str) -> Column:
    """A field of the cell as it is, in CSV only."""
    return Column(key, "", lambda cell, table: getattr(cell, key))


def _score(key: str, head: str) -> Column:
    def value(cell: TableCell) -> float | None:
        return (cell.scores or {}).get(key)

    def known(table: Table) -> bool:
        return table.comparison and (table.headline.factor == 100) == (key in SCORES)

    wide = key not in ("roc_auc", "mae", "r2")
    text = (lambda c, t: number(value(c))) if head else None
    return Column(key, head, lambda c, t: _two(value(c)), text, known, wide)


def _test(
    key: str, name: str, head: str, write: Callable[[float | None], str], shown: Callable[[Table], bool]
) -> Column:
    def value(cell: TableCell) -> float | None:
        return (cell.against or {}).get(name)

    def csv(cell: TableCell, table: Table) -> str:
        return _two(value(cell)) if write is signed else _digits(value(cell))

    return Column(key, head, csv, lambda c, t: write(value(c)), shown)


def _has_paper(table: Table) -> bool:
    return any(cell.paper is not None for cell in table.cells) or not table.comparison


def _tested(table: Table) -> bool:
    return any(cell.against for cell in table.cells)


def _comparison(table: Table) -> bool:
    return table.comparison


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _digits(value: float | None) -> str:
    return "" if value is None else p_value(value)


def trainings(cell: TableCell, table: Table, marks: bool = True) -> str:
    """The number of training runs behind a cell: seeds × folds, or part of them."""
    even = cell.seeds and cell.folds % cell.seeds == 0
    text = f"{cell.seeds} × {cell.folds // cell.seeds}" if even else f"{cell.folds} in {cell.seeds} seeds"
    if marks and not cell.finished:
        text = f"{text if cell.folds else '0'} of {len(table.seeds)} × {table.folds}"
    return text + (f", {cell.failed} failed" if cell.failed else "") if cell.folds or cell.failed or marks else "–"


def verdict_text(cell: TableCell, table: Table) -> str:
    """Whether a cell lies within the paper's ± band, and for how many seeds if some are incomplete."""
    whole = len(cell.complete_seeds(table.folds))
    if cell.verdict is None or whole == cell.seeds:
        return cell.verdict or "–"
    return f"{cell.verdict} ({whole} complete {'seed' if whole == 1 else 'seeds'})"


COLUMNS: tuple[Column, ...] = (
    Column("row", "{row}", lambda c, t: c.row, lambda c, t: c.row),
    Column("column", "data", lambda c, t: c.column, lambda c, t: c.column, lambda t: not t.comparison),
    _field("mean", "{mean}"),
    _field("over_seeds", "± over seeds"),
    _field("over_folds", "± over folds"),
    Column("trainings", "seeds × folds", lambda c, t: trainings(c, t), lambda c, t: trainings(c, t)),
    _plain("seeds"),
    _plain("folds"),
    _plain("failed"),
    _plain("expected"),
    Column("paper", "paper", lambda c, t: c.paper[0] if c.paper else "", lambda c, t: str(c.paper or "–"), _has_paper),
    Column("paper_deviation", "", lambda c, t: c.paper.deviation if c.paper else ""),
    Column("paper_data", "", lambda c, t: c.paper.other if c.paper else ""),
    Column("difference", "difference", lambda c, t: _two(c.difference), lambda c, t: signed(c.difference), _has_paper),
    Column("verdict", "verdict", lambda c, t: c.verdict, verdict_text, _has_paper),
    Column("chosen", "", lambda c, t: c.chosen if t.choose else ""),
    _field("test"),
    _field("test_over_seeds"),
    _test("minus_reference", "difference", "difference to {reference}", signed, _tested),
    _test("p_corrected_t", "p_corrected_t", "p (corrected t)", p_value, _tested),
    _test("p_holm", "p_holm", "p (Holm)", p_value, _tested),
    _test("p_wilcoxon", "p_wilcoxon", "p (Wilcoxon)", p_value, lambda t: _tested(t) and _comparison(t)),
    _field("validation", "validation", _comparison),
    _score("balanced_accuracy", "balanced"),
    _score("roc_auc", "ROC AUC"),
    _score("pr_auc", "PR AUC"),
    _score("calibration_error", ""),
    _score("mae", "MAE"),
    _score("r2", "R²"),
    _score("pearson", "Pearson r"),
    _score("spearman", "Spearman ρ"),
    _field("seconds", "s/run", _comparison),
)  # fmt: skip


MEANINGS = {
    "mean": "Mean score over all finished training runs; shares are in percent.",
    "over_seeds": "Standard deviation of the means of the complete seeds, as in the paper; needs two of them.",
    "over_folds": "Standard deviation of the folds of a seed, averaged over the seeds.",
    "trainings": "Finished training runs: seeds × folds.",
    "paper": "The paper's number, over 20 seeds × 10 folds.",
    "difference": "Our mean minus the paper's, in percentage points.",
    "verdict": "Whether our mean lies within the paper's mean ± its deviation.",
    "minus_reference": "Mean minus that of the reference, on the folds that both have finished, in percentage points.",
    "p_corrected_t": "Paired t-test on the same folds, with Nadeau and Bengio's correction for shared training graphs.",
    "p_holm": "The same after Holm's adjustment for several comparisons; below 0.05 a difference is significant.",
    "p_wilcoxon": "Wilcoxon's signed-rank test on the same folds.",
    "validation": "Mean validation score of the selected epochs; shares are in percent.",
    "balanced_accuracy": "Mean over the classes of the accuracy on their graphs, in percent.",
    "roc_auc": "Area under the ROC curve, in percent.",
    "pr_auc": "Area under the precision-recall curve (average precision), in percent.",
    "mae": "Mean absolute error.",
    "r2": "Share of the variance that is explained.",
    "pearson": "Pearson's correlation of measured and predicted values.",
    "spearman": "Correlation of their ranks.",
    "seconds": "Mean time of a training run, in seconds.",
}


def meanings(table: Table) -> list[tuple[str, str]]:
    """Heading and meaning of the columns shown in a table."""
    shown = [c for c in COLUMNS if c.text is not None and c.shown(table)]
    return [(head, MEANINGS[c.key]) for head, c in zip(grid(table)[0], shown, strict=True) if c.key in MEANINGS]


def lines_of(table: Table) -> list[TableCell]:
    """The cells in the order of the lines: those of the plan, then the baselines."""
    return [*table.cells, *table.baselines]


def grid(table: Table, marks: bool = True, *, terminal: bool = False) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the full table, one row per cell.

    Without marks, empty cells are left out; a terminal has fewer columns.
    """
    methods = all(cell.row == cell.settings["model"]["method"] for cell in table.cells)
    words = {
        "row": "method" if methods else "row",
        "mean": "ours" if _has_paper(table) else "mean",
        "reference": table.reference or "",
    }
    shown = [c for c in COLUMNS if c.text is not None and c.shown(table) and not (terminal and c.wide)]
    head = [column.head.replace("{reference}", words["reference"]) for column in shown]
    head = [words.get(text.strip("{}"), text) for text in head]
    cells = [cell for cell in lines_of(table) if marks or cell.folds or cell.failed or cell.paper]
    return head, [[_text(column, cell, table, marks) for column in shown] for cell in cells]


def _text(column: Column, cell: TableCell, table: Table, marks: bool) -> str:
    if column.key == "trainings":
        return trainings(cell, table, marks)
    assert column.text is not None
    return column.text(cell, table)
