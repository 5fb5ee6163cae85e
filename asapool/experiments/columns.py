"""The columns of a table: one list, used for Markdown, CSV, the terminal and the pages.

A new column is one more line here (with its meaning), and a field of TableCell if it needs a new value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from asapool.experiments.summary import score_names
from asapool.experiments.table_text import number, p_value, signed

if TYPE_CHECKING:
    from asapool.experiments.cells import TableCell
    from asapool.experiments.tables import Table


class Column(NamedTuple):
    """One column.

    Args:
        key: Its name in CSV.
        head: Its heading; {row}, {mean} and {reference} are filled in.
        value: Its value in CSV.
        text: Its text; None if the column is for CSV only.
        shown: Whether it is shown in a table.
        wide: Whether it is left out on a terminal, to save space.
        test: Whether it belongs to a test; pages and terminals show these columns in a table of their own.
    """

    key: str
    head: str
    value: Callable[[TableCell, Table], Any]
    text: Callable[[TableCell, Table], str] | None = None
    shown: Callable[[Table], bool] = lambda table: True
    wide: bool = False
    test: bool = False


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
        return table.comparison and key in score_names(table.headline.name) and key != table.headline.name

    wide = key not in ("roc_auc", "mcc", "mae", "r2")
    text = (lambda c, t: number(value(c))) if head else None
    return Column(key, head, lambda c, t: _two(value(c)), text, known, wide)


def _against(cell: TableCell, name: str) -> float | None:
    return (cell.against or {}).get(name)


def _p_value(name: str, head: str, shown: Callable[[Table], bool]) -> Column:
    """A p value of the test against the reference."""
    return Column(
        name, head, lambda c, t: _digits(_against(c, name)), lambda c, t: p_value(_against(c, name)), shown, test=True
    )


def _against_trivial(key: str, name: str, head: str, write: Callable[[float | None], str]) -> Column:
    def value(cell: TableCell) -> float | None:
        return (cell.against_trivial or {}).get(name)

    def csv(cell: TableCell, table: Table) -> str:
        return _two(value(cell)) if write is signed else _digits(value(cell))

    return Column(key, head, csv, lambda c, t: write(value(c)), lambda t: bool(t.baselines), test=True)


def _interval(cell: TableCell) -> Sequence[float | None] | None:
    return (cell.intervals or {}).get(cell.score)


def span_text(span: Sequence[float | None] | None) -> str:
    """Both ends of an interval, or a dash.

    >>> span_text([71.25, 80]), span_text(None)
    ('71.25 to 80.00', '–')
    """
    return "–" if span is None else f"{number(span[0])} to {number(span[1])}"


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
    Column(
        "interval_low", "95 % interval", lambda c, t: _two((_interval(c) or [None])[0]),
        lambda c, t: span_text(_interval(c)), lambda t: any(map(_interval, t.cells)),
    ),
    Column("interval_high", "", lambda c, t: _two((_interval(c) or [None])[-1])),
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
    Column(
        "minus_reference", "difference to {reference}", lambda c, t: _two(_against(c, "difference")),
        lambda c, t: signed(_against(c, "difference"), _against(c, "margin")), _tested, test=True,
    ),
    Column("minus_reference_margin", "", lambda c, t: _two(_against(c, "margin"))),
    _p_value("p_corrected_t", "p (corrected t)", _tested),
    _p_value("p_holm", "p (Holm)", _tested),
    _p_value("p_wilcoxon", "p (Wilcoxon)", lambda t: _tested(t) and _comparison(t)),
    _against_trivial("minus_trivial", "difference", "difference to trivial", signed),
    _against_trivial("p_trivial", "p_corrected_t", "p (trivial)", p_value),
    _field("validation", "validation", _comparison),
    _score("accuracy", "accuracy"),
    _score("balanced_accuracy", "balanced"),
    _score("roc_auc", "ROC AUC"),
    _score("pr_auc", "PR AUC"),
    _score("mcc", "MCC"),
    _score("f1", "F1"),
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
    "interval_low": "Bootstrap interval of the mean: graphs are drawn with replacement, and all folds scored on them.",
    "trainings": "Finished training runs: seeds × folds.",
    "paper": "The paper's number, over 20 seeds × 10 folds.",
    "difference": "Our mean minus the paper's, in percentage points.",
    "verdict": "Whether our mean lies within the paper's mean ± its deviation.",
    "minus_reference": "Mean minus that of the reference, on the folds that both have finished, in percentage points; "
    "± is the 95 % interval by the corrected t-test.",
    "p_corrected_t": "Paired t-test on the same folds, with Nadeau and Bengio's correction for shared training graphs.",
    "p_holm": "The same after Holm's adjustment for several comparisons; below 0.05 a difference is significant.",
    "p_wilcoxon": "Wilcoxon's signed-rank test on the same folds.",
    "minus_trivial": "Mean minus that of the trivial baseline.",
    "p_trivial": "The corrected paired t-test against the trivial baseline.",
    "accuracy": "Share of graphs whose most probable class is correct, in percent.",
    "mcc": "Matthews correlation, 1 if all is correct and 0 if nothing is learned.",
    "f1": "2·TP / (2·TP + FP + FN) of the second class, or the mean over more than two classes, in percent.",
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


def grid(
    table: Table, marks: bool = True, *, terminal: bool = False, tests: bool | None = None
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the full table, one row per cell.

    Args:
        table: the table.
        marks: Show empty cells, and how many training runs are missing.
        terminal: Leave out some columns.
        tests: Only the columns of the tests, or only the others; None = all.
    """
    methods = all(cell.row == cell.settings["model"]["method"] for cell in table.cells)
    words = {
        "row": "method" if methods else "row",
        "mean": "ours" if _has_paper(table) else "mean",
        "reference": table.reference or "",
    }
    columns = [c for c in COLUMNS if c.text is not None and c.shown(table) and not (terminal and c.wide)]
    columns = [c for c in columns if tests is None or c.key == "row" or c.test == tests]
    head = [column.head.replace("{reference}", words["reference"]) for column in columns]
    head = [words.get(text.strip("{}"), text) for text in head]
    cells = [cell for cell in lines_of(table) if marks or cell.folds or cell.failed or cell.paper]
    if tests:
        cells = [cell for cell in cells if cell.against or cell.against_trivial]
    return head, [[_text(column, cell, table, marks) for column in columns] for cell in cells]


def _text(column: Column, cell: TableCell, table: Table, marks: bool) -> str:
    if column.key == "trainings":
        return trainings(cell, table, marks)
    assert column.text is not None
    return column.text(cell, table)


def task_grid(table: Table) -> tuple[list[str], list[list[str]]] | None:
    """Header and rows of the scores of every task, with their intervals; None for a single task."""
    name, rows = table.headline.name, [cell for cell in lines_of(table) if cell.tasks]
    if not rows:
        return None

    def text(cell: TableCell, task: str) -> str:
        scores = (cell.tasks or {}).get(task, {})
        span = (scores.get("intervals") or {}).get(name)
        return number(scores.get(name)) + (f" ({span_text(span)})" if span else "")

    return ["task", *(cell.row for cell in rows)], [
        [task, *(text(c, task) for c in rows)] for task in rows[0].tasks or ()
    ]
