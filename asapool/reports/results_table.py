"""The part of a page that is about one table: ours beside the paper's, the spread, the curves, the settings."""

from __future__ import annotations

import json
from typing import Any

from asapool.experiments.table_text import behind, choices, full, lead, percent, pm, signed
from asapool.experiments.tables import Table, TableCell
from asapool.experiments.verdicts import Verdict, judge
from asapool.reports.charts import Line, line_chart
from asapool.reports.forest import Mark, forest_chart
from asapool.reports.page import section, table, text
from asapool.reports.ratio_figure import NAME as RATIO
from asapool.reports.ratio_figure import ratio_chart
from asapool.reports.results_record import Results, band

CLASSES = {
    "within": "right", "outside": "wrong", "holds": "right", "does not hold": "wrong", "not enough runs": "open",
    "too close to call": "open",
}  # fmt: skip
MOST = 60  # cells with curves of their own; a grid search has hundreds


def table_section(results: Results, made: Table) -> str:
    """Everything about one table."""
    body = _glance(made)
    if made.choose:
        body += "<ul>" + "".join(f"<li>{text(line)}</li>" for line in choices(made)) + "</ul>"
    if made.name == RATIO:
        body += f'<div class="grid"><div>{ratio_chart(made)}</div></div>'
    claims = claims_list(judge(made))
    body += f'<h3 class="part">What the paper says in words</h3>{claims}' if claims else ""
    body += _charts(made) + _details("Every cell in full", table(*full(made), "", "numbers"))
    body += _curves(results, made) + _settings(made)
    done, all_of_it = sum(cell.folds for cell in made.cells), sum(cell.expected for cell in made.cells)
    told = f"{lead(made)} {done:,} of {all_of_it:,} trainings are done."
    return f'<div id="{text(made.name)}">{section(f"{made.title} ({made.name})", body, told)}</div>'


def verdict_word(word: str | None) -> str:
    """A verdict with its colour; the word itself says it too."""
    return "" if word is None else f'<span class="word {CLASSES[word]}">{text(word)}</span>'


def claims_list(verdicts: list[Verdict], why: bool = True) -> str:
    """Claims in words, each with its verdict and the numbers that it rests on."""
    rows = ""
    for verdict in verdicts:
        told = f"<small>{_why(verdict)}</small>" if why else ""
        rows += f"<li>{verdict_word(verdict.verdict)} {text(verdict.words)}{told}</li>"
    how = " ".join(dict.fromkeys(verdict.how for verdict in verdicts)) if why else ""
    return f'<ul class="claims">{rows}</ul>' + (f'<p class="more">{text(how)}</p>' if how else "") if rows else ""


def _why(verdict: Verdict) -> str:
    lines = [f"{text(f.column)}{' (other data, no say)' if f.other else ''}: {text(f.told)}" for f in verdict.findings]
    return "<br>".join(lines) or "none of the paper's data sets is in the table"


def _glance(made: Table) -> str:
    head = "".join(f'<th scope="col">{text(column)}</th>' for column in made.columns)
    rows = ""
    for row in made.rows:
        cells = "".join(_cell(made.cell(row, column), made) for column in made.columns)
        rows += f'<tr><th scope="row">{text(row)}</th>{cells}</tr>'
    return (
        f'<div class="scroll tall" tabindex="0" role="region" aria-label="{text(made.title)}">'
        '<table class="numbers glance">'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cell(cell: TableCell | None, made: Table) -> str:
    if cell is None:
        return "<td>–</td>"
    body = f"<b>{text(pm(cell.mean, cell.over_seeds))}</b>{' <em>chosen</em>' if cell.chosen else ''}"
    if cell.paper is not None:
        gap = "" if cell.difference is None else f" ({signed(cell.difference)})"
        body += f"<small>paper {text(cell.paper)}{gap} {verdict_word(cell.verdict)}</small>"
    mark = "" if cell.finished else ' class="open"'
    return f"<td>{body}<small{mark}>{text(behind(cell, made))}</small></td>"


def _charts(made: Table) -> str:
    """Per data set: means against the paper's bands, and the folds behind the means."""
    means, spread = "", ""
    for column in made.columns:
        cells = [c for c in made.cells if c.column == column and (c.mean is not None or c.paper is not None)]
        if not any(cell.mean is not None for cell in cells):
            continue
        marks = [Mark(c.row, c.mean, c.over_seeds, None if c.paper is None or c.paper.other else c.paper[:2])
                 for c in cells]  # fmt: skip
        label = f"{made.metric} accuracy, %"
        means += f"<div><h3>{text(column)}</h3>{forest_chart(marks, f'{column}, ours and the paper', label)}</div>"
        dots = [mark._replace(seeds=_by_seed(c), paper=None) for mark, c in zip(marks, cells, strict=True) if c.values]
        spread += f"<div><h3>{text(column)}</h3>{forest_chart(dots, f'{column}, every fold', label)}</div>"
    if not means:
        return ""
    ours = f'<h3 class="part">Ours against the paper\'s band</h3><div class="grid">{means}</div>'
    if made.name == RATIO:
        ours = ""  # the figure shows the same
    return ours + _details("Every fold and seed", f'<div class="grid">{spread}</div>{_seed_table(made)}')


def _by_seed(cell: TableCell) -> tuple[tuple[str, tuple[float, ...]], ...]:
    seeds: dict[int, list[float]] = {}
    for seed, _, value in cell.values:
        seeds.setdefault(seed, []).append(value)
    return tuple((str(seed), tuple(values)) for seed, values in seeds.items())


def _seed_table(made: Table) -> str:
    rows = []
    for cell in made.cells:
        for seed, values in _by_seed(cell):
            mean = sum(values) / len(values)
            numbers = [percent(mean), percent(min(values)), percent(max(values))]
            rows.append([cell.row, cell.column, seed, str(len(values)), *numbers])
    head = ["row", "data", "seed", "folds", "mean", "lowest", "highest"]
    return table(head, rows, "By seed, in percent", "numbers") if rows else ""


def _curves(results: Results, made: Table) -> str:
    """The mean course of every cell's trainings, with their deviation as a band."""
    cells = [cell for cell in made.cells if any(key in results.curves for key in cell.runs)]
    if made.choose:
        cells = [cell for cell in cells if cell.chosen]
    drawn = ""
    for cell in cells[:MOST]:
        some = [results.curves[key] for key in cell.runs if key in results.curves]
        lines = [_course(name, [one[column] for one in some])
                 for name, column in (("training", "loss"), ("validation", "val_loss"))]  # fmt: skip
        accuracy = _course("validation", [100 * one["val_accuracy"] for one in some])
        name = f"{cell.row} on {cell.column}"
        charts = line_chart([s for s in lines if s.x], f"{name}: loss by epoch", "epoch", "loss", whole=True)
        if accuracy.x:
            charts += line_chart([accuracy], f"{name}: accuracy by epoch", "epoch", "accuracy, %", whole=True)
        drawn += f"<div><h3>{text(name)}</h3>{charts}</div>"
    if not drawn:
        return ""
    left = f"<p>The first {MOST} of {len(cells)} cells.</p>" if len(cells) > MOST else ""
    said = '<p class="lead">Mean over all trainings of a cell; the shade is their deviation.</p>'
    return _details("Training curves", f'{said}{left}<div class="grid">{drawn}</div>')


def _course(name: str, curves: list[Any]) -> Line:
    mean, deviation = band(curves)
    return Line(name, list(range(1, len(mean) + 1)), mean.tolist(), band=deviation.tolist())


def _settings(made: Table) -> str:
    """What all cells share, once; and what each has of its own."""
    every = [{f"{part}.{k}": v for part, values in cell.settings.items() for k, v in values.items()}
             for cell in made.cells]  # fmt: skip
    shared = {k: v for k, v in every[0].items() if all(one.get(k) == v for one in every)}
    own = list(dict.fromkeys(k for one in every for k in one if k not in shared))
    body = f"<pre>{text(json.dumps(shared, indent=1, ensure_ascii=False))}</pre>"
    if own:
        both = zip(made.cells, every, strict=True)
        rows = [[cell.row, cell.column, *(str(one.get(k, "–")) for k in own)] for cell, one in both]
        body = table(["row", "data", *own], rows, "Where cells differ", "numbers") + body
    seeds = ", ".join(map(str, made.seeds))
    return _details("Settings", f"<p>Seeds: {text(seeds)}; {made.folds} folds ({text(made.protocol)}).</p>{body}")


def _details(summary: str, body: str) -> str:
    return f"<details><summary>{text(summary)}</summary>{body}</details>"
