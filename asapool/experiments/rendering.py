"""A table as Markdown, CSV and plain data, and the sentences that belong to it."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from asapool.experiments import columns, paper
from asapool.experiments.summary import USUAL, headline_named
from asapool.experiments.table_text import csv_text, escape, markdown, number, plus_minus
from asapool.experiments.verdicts import evaluate_claims, leader, worthless
from asapool.training.config import preset

if TYPE_CHECKING:
    from asapool.experiments.cells import TableCell
    from asapool.experiments.tables import Table


def to_dict(table: Table) -> dict[str, Any]:
    """Plain data, with the verdicts on the paper's claims."""
    plain = {f.name: getattr(table, f.name) for f in fields(table)}
    plain |= {name: list(plain[name]) for name in ("rows", "columns", "seeds", "versions")}
    plain |= {name: [_plain(cell) for cell in plain[name]] for name in ("cells", "baselines")}
    return {"kind": "table", **plain, "claims": [verdict.to_dict() for verdict in evaluate_claims(table)]}


def to_csv(table: Table) -> str:
    """A line per cell, accuracies in percent."""
    lines = [[column.value(cell, table) for column in columns.COLUMNS] for cell in columns.lines_of(table)]
    return csv_text([column.key for column in columns.COLUMNS], lines)


def to_markdown(table: Table, *, heading: bool = True, marks: bool = True, folded: bool = False) -> str:
    """The means, every cell in full, and the paper's claims in words.

    Args:
        table: the table.
        heading: begin with the title.
        marks: show how many training runs of each cell are still missing; otherwise only which means are over fewer
            folds than others.
        folded: hide the full list of cells until the reader opens it.
    """
    parts = [f"# {escape(table.title)}\n"] if heading else []
    parts.append(f"{lead(table)}\n")
    if not table.comparison:
        rows = [*table.rows, *dict.fromkeys(cell.row for cell in table.baselines)]
        means = [[row, *(_mean(table, row, column, marks) for column in table.columns)] for row in rows]
        parts.append(markdown(["", *table.columns], means))
        if marks and any(0 < c.folds < c.expected for c in table.cells):
            parts.append("\\* not all training runs of the cell are done.\n")
        elif any(_few_folds(table, cell) for cell in table.cells):
            parts.append(
                f"\\* mean over fewer than {table.folds} folds, which may be easier or harder than the others: compare "
                "it by the paired differences below.\n"
            )
    cells = markdown(*columns.grid(table, marks))
    summary = "<details markdown><summary>Every cell, with deviations and tests</summary>"
    parts.append(f"{summary}\n\n{cells}\n</details>\n" if folded else cells)
    by_task = columns.task_grid(table)
    if by_task is not None:
        parts.append(f"Mean {table.headline.words} of every task, with 95 % bootstrap intervals:\n")
        parts.append(markdown(*by_task))
    parts += [f"{escape(note)}\n" for note in notes(table)]
    if table.choose:
        parts.append("".join(f"- {line}\n" for line in map(escape, choices(table))))
    verdicts = evaluate_claims(table)
    if verdicts:
        parts.append("The paper's claims about this table:\n")
        parts.append(
            "".join(f"- {v.words}: **{v.verdict}**{f' ({v.numbers})' if v.numbers else ''}\n" for v in verdicts)
        )
        parts.append(" ".join(dict.fromkeys(v.how for v in verdicts)) + "\n")
    return "\n".join(parts)


def lead(table: Table) -> str:
    """A sentence that says what the numbers are."""
    kind = {"authors": "plain shuffled", "splits": "published"}.get(table.protocol, table.protocol)
    return (
        f"{table.metric.capitalize()} {table.headline.words}, mean over seeds × folds ({table.folds} {kind} folds); "
        "± is the deviation over the means of the finished seeds, as in the paper."
    )


def notes(table: Table) -> list[str]:
    """Caveats for the reader of the numbers."""
    sentences = []
    if any(cell.paper is not None for cell in table.cells) and not table.comparable:
        epochs = sorted({cell.settings["train"]["epochs"] for cell in table.cells} - {paper.EPOCHS})
        counts = ", ".join(map(str, epochs))
        sentences.append(
            f"Trained for {counts} epochs instead of the paper's {paper.EPOCHS}, so there is no verdict on its numbers."
        )
    members = {cell.row: cell.settings["ensemble"] for cell in table.cells if "ensemble" in cell.settings}
    for count in sorted(set(members.values())):
        rows = ", ".join(row for row, n in members.items() if n == count)
        sentences.append(f"{rows}: scores of the averaged predictions of {count} models, trained with different seeds.")
    if table.comparison:
        sentences += [result.sentence for column in table.columns if (result := leader(table, column)) is not None]
        sentences += [text for column in table.columns if (text := worthless(table, column)) is not None]
    if len(table.versions) > 1:
        sentences.append(f"The training runs were made by asapool {', '.join(table.versions)}.")
    return sentences


def choices(table: Table) -> list[str]:
    """The chosen row of each data set, and the authors' choice."""
    lines = []
    for column in table.columns:
        best = next((c for c in table.cells if c.column == column and c.chosen), None)
        if best is None:
            lines.append(f"{column}: nothing is chosen before all its training runs are done")
            continue
        label = headline_named(best.score).label
        line = f"{column}: {best.row} has the best validation {label}, {number(best.validation)}; "
        line += f"its test {label} is {plus_minus(best.test, best.test_over_seeds)}"
        reported, settings = paper.nearest(column, "asap"), preset(column)
        if reported is not None:
            chosen = {**settings["model"], **settings["train"]}
            line += f" (paper {reported}; the authors chose hidden {chosen['hidden']}, lr {chosen['lr']}, "
            line += f"dropout {chosen['attention_dropout']})"
        lines.append(line)
    return lines


def _mean(table: Table, row: str, column: str, marks: bool) -> str:
    cell = table.cell(row, column)
    if cell is None or cell.mean is None:
        return "–"
    marked = not cell.finished if marks else _few_folds(table, cell)
    text = plus_minus(cell.mean, cell.over_seeds) + (r"\*" if marked else "")
    return f"**{text}**" if cell.chosen else text


def _few_folds(table: Table, cell: TableCell) -> bool:
    """Whether some folds of a cell are missing in every seed."""
    return cell.folds > 0 and not cell.complete_seeds(table.folds)


def _plain(cell: TableCell) -> dict[str, Any]:
    absent = {
        "score": USUAL,
        "against_trivial": None,
        "undefined": None,
        "intervals": None,
        "tasks": None,
    }  # not in the files of 0.1.0
    values = {f.name: getattr(cell, f.name) for f in fields(cell)}
    plain = {name: value for name, value in values.items() if name not in absent or value != absent[name]}
    return plain | {
        "paper": None if cell.paper is None else cell.paper._asdict(),
        "values": [list(value) for value in cell.values],
        "runs": list(cell.runs),
    }
