"""A table as Markdown, CSV and JSON, with every character that would break it escaped; and the files of all three."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from asapool.experiments import paper
from asapool.experiments.summary import USUAL, headline_named
from asapool.files import csv_writer, write_json, write_text
from asapool.training.config import preset

if TYPE_CHECKING:
    from asapool.experiments.tables import Table, TableCell


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(markdown(["name", "n"], [["a|b", "1"]]), end="")
    | name | n |
    | --- | --- |
    | a\\|b | 1 |
    """
    lines = [list(head), ["---"] * len(head), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(escape(cell) for cell in line)} |\n" for line in lines)


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV; None is an empty cell.

    >>> csv_text(["a", "b"], [[None, "x,y"]])
    'a,b\\n,"x,y"\\n'
    """
    out = io.StringIO(newline="")
    writer = csv_writer(out)
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()


def number(value: float | None) -> str:
    """Two decimals, or a dash.

    >>> number(71.476), number(None)
    ('71.48', '–')
    """
    return "–" if value is None else f"{value:.2f}"


def signed(value: float | None) -> str:
    """Two decimals with their sign, or a dash.

    >>> signed(-0.5), signed(2)
    ('−0.50', '+2.00')
    """
    return "–" if value is None else f"{value:+.2f}".replace("-", "−")


def p_value(value: float | None) -> str:
    """Three digits, or a dash."""
    return "–" if value is None else f"{value:.3g}"


def plus_minus(mean: float | None, deviation: float | None) -> str:
    """A mean with its deviation, as far as they exist.

    >>> plus_minus(73.968, 0.18), plus_minus(73.968, None), plus_minus(None, None)
    ('73.97 ± 0.18', '73.97', '–')
    """
    return number(mean) + ("" if deviation is None else f" ± {deviation:.2f}")


def escape(text: str) -> str:
    """Text that Markdown shows as it is, in one line: names from users must become neither HTML nor a table.

    >>> escape("a|b <script>")
    'a\\\\|b &lt;script>'
    """
    return " ".join(str(text).replace("|", "\\|").replace("<", "&lt;").split())


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
    from asapool.experiments.verdicts import evaluate_claims

    plain = {f.name: getattr(table, f.name) for f in fields(table)}
    plain |= {name: list(plain[name]) for name in ("rows", "columns", "seeds", "versions")}
    plain |= {name: [_plain(cell) for cell in plain[name]] for name in ("cells", "baselines")}
    return {"kind": "table", **plain, "claims": [verdict.to_dict() for verdict in evaluate_claims(table)]}


def to_csv(table: Table) -> str:
    """A line per cell, accuracies in percent."""
    from asapool.experiments.columns import COLUMNS, lines_of

    lines = [[column.value(cell, table) for column in COLUMNS] for cell in lines_of(table)]
    return csv_text([column.key for column in COLUMNS], lines)


def to_markdown(table: Table, *, heading: bool = True, marks: bool = True, folded: bool = False) -> str:
    """The means, every cell in full, and the paper's claims in words.

    Args:
        table: the table.
        heading: begin with the title.
        marks: show of every cell how many trainings of the plan are still missing.
        folded: hide the cells in full until the reader opens them.
    """
    from asapool.experiments.columns import grid
    from asapool.experiments.verdicts import evaluate_claims

    parts = [f"# {escape(table.title)}\n"] if heading else []
    parts.append(f"{lead(table)}\n")
    if not table.comparison:
        rows = [*table.rows, *dict.fromkeys(cell.row for cell in table.baselines)]
        means = [[row, *(_mean(table, row, column, marks) for column in table.columns)] for row in rows]
        parts.append(markdown(["", *table.columns], means))
        if marks and any(0 < c.folds < c.expected for c in table.cells):
            parts.append("\\* not all trainings of the cell are done.\n")
    cells = markdown(*grid(table, marks))
    summary = "<details markdown><summary>Every cell, with deviations and tests</summary>"
    parts.append(f"{summary}\n\n{cells}\n</details>\n" if folded else cells)
    parts += [f"{escape(note)}\n" for note in notes(table)]
    if table.choose:
        parts.append("".join(f"- {line}\n" for line in map(escape, choices(table))))
    found = evaluate_claims(table)
    if found:
        parts.append("The paper's claims about this table:\n")
        parts.append("".join(f"- {v.words}: **{v.verdict}**{f' ({v.numbers})' if v.numbers else ''}\n" for v in found))
        parts.append(" ".join(dict.fromkeys(v.how for v in found)) + "\n")
    return "\n".join(parts)


def lead(table: Table) -> str:
    """One sentence on what the numbers are."""
    kind = {"authors": "plain shuffled", "splits": "published"}.get(table.protocol, table.protocol)
    return (
        f"{table.metric.capitalize()} {table.headline.words}, mean over seeds × folds ({table.folds} {kind} folds); "
        "± is the deviation over the means of the finished seeds, as in the paper."
    )


def notes(table: Table) -> list[str]:
    """What a reader must know before believing the numbers."""
    from asapool.experiments.verdicts import leader, worthless

    sentences = []
    if any(cell.paper is not None for cell in table.cells) and not table.comparable:
        epochs = sorted({cell.settings["train"]["epochs"] for cell in table.cells} - {paper.EPOCHS})
        counts = ", ".join(map(str, epochs))
        sentences.append(
            f"Trained for {counts} epochs, the paper for {paper.EPOCHS}: there is no verdict on its numbers."
        )
    if table.comparison:
        sentences += [result.sentence for column in table.columns if (result := leader(table, column)) is not None]
        sentences += [text for column in table.columns if (text := worthless(table, column)) is not None]
    if len(table.versions) > 1:
        sentences.append(f"The trainings were made by asapool {', '.join(table.versions)}.")
    return sentences


def trainings(cell: TableCell, table: Table, marks: bool = True) -> str:
    """How many trainings a cell is computed from: seeds × folds, or a part of them."""
    even = cell.seeds and cell.folds % cell.seeds == 0
    text = f"{cell.seeds} × {cell.folds // cell.seeds}" if even else f"{cell.folds} in {cell.seeds} seeds"
    if marks and not cell.finished:
        text = f"{text if cell.folds else '0'} of {len(table.seeds)} × {table.folds}"
    return text + (f", {cell.failed} failed" if cell.failed else "") if cell.folds or cell.failed or marks else "–"


def verdict_text(cell: TableCell, table: Table) -> str:
    """Whether a cell lies within the paper's band, and of how many seeds that is where some are incomplete."""
    whole = len(cell.complete_seeds(table.folds))
    if cell.verdict is None or whole == cell.seeds:
        return cell.verdict or "–"
    return f"{cell.verdict} ({whole} complete {'seed' if whole == 1 else 'seeds'})"


def choices(table: Table) -> list[str]:
    """What was chosen per data set, beside the authors' choice."""
    lines = []
    for column in table.columns:
        best = next((c for c in table.cells if c.column == column and c.chosen), None)
        if best is None:
            lines.append(f"{column}: nothing is chosen before all its trainings are done")
            continue
        label = headline_named(best.score).label
        line = f"{column}: {best.row} has the best validation {label}, {number(best.validation)}; "
        line += f"its test {label} is {plus_minus(best.test, best.test_over_seeds)}"
        theirs, settings = paper.nearest(column, "asap"), preset(column)
        if theirs is not None:
            own = {**settings["model"], **settings["train"]}
            line += f" (paper {theirs}; the authors chose hidden {own['hidden']}, lr {own['lr']}, "
            line += f"dropout {own['attention_dropout']})"
        lines.append(line)
    return lines


def _mean(table: Table, row: str, column: str, marks: bool) -> str:
    cell = table.cell(row, column)
    if cell is None or cell.mean is None:
        return "–"
    text = plus_minus(cell.mean, cell.over_seeds) + (r"\*" if marks and not cell.finished else "")
    return f"**{text}**" if cell.chosen else text


def _plain(cell: TableCell) -> dict[str, Any]:
    plain = {f.name: getattr(cell, f.name) for f in fields(cell) if f.name != "score" or cell.score != USUAL}
    return plain | {
        "paper": None if cell.paper is None else cell.paper._asdict(),
        "values": [list(value) for value in cell.values],
        "runs": list(cell.runs),
    }
