"""A table as Markdown for people, CSV for spreadsheets and JSON for programs; and the files of all three."""

from __future__ import annotations

from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from asapool.experiments import paper
from asapool.experiments.markup import csv_text, markdown
from asapool.files import write_json, write_text
from asapool.training.presets import preset

if TYPE_CHECKING:
    from asapool.experiments.tables import Table, TableCell

COLUMNS = (
    "row", "column", "mean", "over_seeds", "over_folds", "seeds", "folds", "failed", "expected", "paper",
    "paper_deviation", "paper_data", "difference", "verdict", "chosen", "validation", "test", "test_over_seeds",
    "minus_reference", "p_corrected_t", "p_holm", "p_wilcoxon",
)  # fmt: skip


class Written(Protocol):
    """Anything that becomes three files: a table of accuracies, of properties, of data sets."""

    @property
    def name(self) -> str: ...
    def to_markdown(self) -> str: ...
    def to_csv(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...


def write(table: Written, folder: str | PathLike[str]) -> list[Path]:
    """Write NAME.md, NAME.csv and NAME.json, each whole; return their paths."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    files = [path / f"{table.name}.{kind}" for kind in ("md", "csv", "json")]
    write_text(files[0], table.to_markdown())
    write_text(files[1], table.to_csv())
    write_json(files[2], table.to_dict())
    return files


def to_dict(table: Table) -> dict[str, Any]:
    """Plain data, with the paper's claims in words and what became of them."""
    from asapool.experiments.verdicts import judge

    plain = {f.name: getattr(table, f.name) for f in fields(table)}
    plain |= {name: list(plain[name]) for name in ("rows", "columns", "seeds")}
    plain["cells"] = [_plain(cell) for cell in table.cells]
    return {"kind": "table", **plain, "claims": [verdict.to_dict() for verdict in judge(table)]}


def to_csv(table: Table) -> str:
    """A line per cell, accuracies in percent."""
    lines = []
    for c in table.cells:
        told, test = c.paper, c.against or {}
        lines.append(
            [c.row, c.column, _two(c.mean), _two(c.over_seeds), _two(c.over_folds), c.seeds, c.folds, c.failed,
             c.expected, *((told.mean, told.deviation, told.other) if told else ("", "", "")), _two(c.difference),
             c.verdict, c.chosen if table.choose else "", _two(c.validation), _two(c.test), _two(c.test_over_seeds),
             _two(test.get("difference")), *(_p(test.get(key)) for key in ("p_corrected_t", "p_holm", "p_wilcoxon"))]
        )  # fmt: skip
    return csv_text(COLUMNS, lines)


def to_markdown(table: Table, *, heading: bool = True, marks: bool = True) -> str:
    """Ours at a glance, every cell in full, and the claims in words.

    heading: begin with the title. marks: say of every cell how many trainings of the plan are still missing.
    """
    from asapool.experiments.verdicts import judge

    parts = [f"# {table.title}\n"] if heading else []
    parts.append(f"{lead(table)}\n")
    glance = [[row, *(_glance(table, row, column, marks) for column in table.columns)] for row in table.rows]
    parts.append(markdown(["", *table.columns], glance))
    if marks and any(0 < c.folds < c.expected for c in table.cells):
        parts.append("\\* not all trainings of the cell are done.\n")
    parts.append(markdown(*full(table, marks)))
    if table.choose:
        parts.append("".join(f"- {line}\n" for line in choices(table)))
    found = judge(table)
    if found:
        parts.append("What the paper says in words:\n")
        parts.append("".join(f"- {v.words}: **{v.verdict}**{f' ({v.told})' if v.told else ''}\n" for v in found))
        parts.append(" ".join(dict.fromkeys(v.how for v in found)) + "\n")
    return "\n".join(parts)


def lead(table: Table) -> str:
    """One sentence on what the numbers are."""
    kind = "plain shuffled" if table.protocol == "authors" else table.protocol
    return (
        f"{table.metric.capitalize()} accuracy in percent, mean over seeds × folds ({table.folds} {kind} folds); "
        "± is the deviation over the means of the finished seeds, as in the paper."
    )


def full(table: Table, marks: bool = True) -> tuple[list[str], list[list[str]]]:
    """Head and lines of the long form: a line per cell with all that is known of it.

    Without marks a cell of which nothing is known is left out.
    """
    tested = any(cell.against for cell in table.cells)
    head = ["row", "data", "ours", "± over seeds", "± over folds", "seeds × folds", "paper", "difference", "verdict"]
    head += [f"− {table.reference}", "p (corrected t)", "p (Holm)"] if tested else []
    lines = []
    for c in table.cells:
        if not (marks or c.folds or c.failed or c.paper):
            continue
        line = [c.row, c.column, percent(c.mean), percent(c.over_seeds), percent(c.over_folds), behind(c, table, marks)]
        line += ["–" if c.paper is None else str(c.paper), signed(c.difference), judged(c, table)]
        if tested:
            test = c.against or {}
            line += [signed(test.get("difference")), *(_p(test.get(key)) or "–" for key in ("p_corrected_t", "p_holm"))]
        lines.append(line)
    return head, lines


def behind(cell: TableCell, table: Table, marks: bool = True) -> str:
    """How many trainings stand behind a cell: seeds × folds, or a part of them."""
    even = cell.seeds and cell.folds % cell.seeds == 0
    told = f"{cell.seeds} × {cell.folds // cell.seeds}" if even else f"{cell.folds} in {cell.seeds} seeds"
    if marks and not cell.finished:
        told = f"{told if cell.folds else '0'} of {len(table.seeds)} × {table.folds}"
    return told + (f", {cell.failed} failed" if cell.failed else "") if cell.folds or cell.failed or marks else "–"


def judged(cell: TableCell, table: Table) -> str:
    """Whether a cell lies within the paper's band, and on how much of it that rests where not all of it is whole."""
    whole = len(cell.whole_seeds(table.folds))
    if cell.verdict is None or whole == cell.seeds:
        return cell.verdict or "–"
    return f"{cell.verdict} ({whole} whole {'seed' if whole == 1 else 'seeds'})"


def choices(table: Table) -> list[str]:
    """What was chosen per data set, beside the authors' choice."""
    said = []
    for column in table.columns:
        best = next((c for c in table.cells if c.column == column and c.chosen), None)
        if best is None:
            said.append(f"{column}: nothing is chosen before all its trainings are done")
            continue
        line = f"{column}: {best.row} has the best validation accuracy, {percent(best.validation)}; "
        line += f"its test accuracy is {pm(best.test, best.test_over_seeds)}"
        told, theirs = paper.nearest(column, "asap"), preset(column)
        if told is not None:
            own = {**theirs["model"], **theirs["train"]}
            line += f" (paper {told}; the authors chose hidden {own['hidden']}, lr {own['lr']}, "
            line += f"dropout {own['attention_dropout']})"
        said.append(line)
    return said


def pm(mean: float | None, deviation: float | None) -> str:
    """A mean with its deviation, as far as they are there.

    >>> pm(73.968, 0.18), pm(73.968, None), pm(None, None)
    ('73.97 ± 0.18', '73.97', '–')
    """
    return percent(mean) + ("" if deviation is None else f" ± {deviation:.2f}")


def percent(value: float | None) -> str:
    """Two decimals, or a dash."""
    return "–" if value is None else f"{value:.2f}"


def signed(value: float | None) -> str:
    """Two decimals with their sign, or a dash."""
    return "–" if value is None else f"{value:+.2f}".replace("-", "−")


def _glance(table: Table, row: str, column: str, marks: bool) -> str:
    cell = table.cell(row, column)
    if cell is None or cell.mean is None:
        return "–"
    told = pm(cell.mean, cell.over_seeds) + (r"\*" if marks and not cell.finished else "")
    return f"**{told}**" if cell.chosen else told


def _plain(cell: TableCell) -> dict[str, Any]:
    plain = {f.name: getattr(cell, f.name) for f in fields(cell)}
    told = cell.paper
    return plain | {
        "paper": None if told is None else told._asdict(),
        "values": [list(value) for value in cell.values],
        "runs": list(cell.runs),
    }


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
