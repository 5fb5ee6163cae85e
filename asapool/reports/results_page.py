"""The page of reproduced tables: what was measured, what the paper says, and what became of its claims."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from asapool.errors import CheckpointError
from asapool.experiments.dataset_table import WORDS
from asapool.experiments.paper import PROPERTIES
from asapool.experiments.reproducing import known
from asapool.experiments.verdicts import Verdict, judge
from asapool.insight.drawing.figure import save_figures
from asapool.reports.page import document, section, table, text
from asapool.reports.ratio_figure import NAME as RATIO
from asapool.reports.ratio_figure import ratio_figure
from asapool.reports.results_record import Results, read_results
from asapool.reports.results_table import claims_list, table_section
from asapool.reports.run_page import facts


def results_page(folder: Path) -> str:
    """Read a folder that asapool reproduce wrote, and write its page."""
    results = read_results(folder)
    try:
        return _page(results)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise CheckpointError(
            f"{folder}: its files do not fit together ({type(error).__name__}: {error}). Run the command again"
        ) from None


def write_figures(folder: Path) -> list[Path]:
    """Write the figures of a folder beside its tables, as SVG, PNG and PDF; return their paths."""
    tables = read_results(folder, curves=False).tables
    figures = {made.name: ratio_figure(made) for made in tables if made.name == RATIO}
    return save_figures({name: figure for name, figure in figures.items() if figure is not None}, folder)


def _page(results: Results) -> str:
    names = [*results.fixed, *(made.name for made in results.tables)]
    title = "Results: " + (names[0] if len(names) == 1 else f"{len(names)} tables")
    sections = {"table1": _properties, "table3": _statistics}
    made = {name: sections[name](plain) for name, plain in results.fixed.items()}
    made |= {one.name: table_section(results, one) for one in results.tables}
    order = [name for name in known() if name in made]  # the paper's, then those of other plans
    parts = {name: made[name] for name in (*order, *(other for other in made if other not in order))}
    links = "".join(f'<li><a href="#{text(name)}">{text(name)}</a></li>' for name in parts)
    head = f'<header class="top"><h1>{text(title)}</h1><p class="lead">{text(_about(results))}</p>'
    head += f'<ul class="jump">{links}</ul></header>' if len(parts) > 1 else "</header>"
    verdicts = [verdict for one in results.tables for verdict in judge(one)]
    body = _headline(results, verdicts)
    if verdicts and len(results.tables) > 1:
        lead = "Judged on the seeds that the rows in question have finished; the numbers stand with their tables."
        body += section("The paper's claims in words", claims_list(verdicts, why=False), lead)
    body += "".join(parts.values())
    return document(f"asapool: {title}", f"{head}<main>{body}{_failures(results)}{_machines(results)}</main>")


def _about(results: Results) -> str:
    columns = dict.fromkeys(column for made in results.tables for column in made.columns)
    seeds = max((len(made.seeds) for made in results.tables), default=0)
    if not columns:
        return "Nothing here needs training"
    return f"{', '.join(columns)} · {seeds} {'seed' if seeds == 1 else 'seeds'} · {results.tables[0].folds} folds"


def _headline(results: Results, verdicts: list[Verdict]) -> str:
    done = [record for record in results.records.values() if record.finished]
    cells = [cell for made in results.tables for cell in made.cells]
    words, judged = Counter(verdict.verdict for verdict in verdicts), [c.verdict for c in cells if c.verdict]
    rows = []
    if cells:
        full = sum(cell.finished for cell in cells)
        rows.append(("trainings", f"{len(done):,}", f"{len(results.records) - len(done)} failed"))
        rows.append(("cells finished", f"{full:,}", f"of {len(cells):,}"))
        hours = sum(record.cpu_seconds or 0.0 for record in done) / 3600
        rows.append(("time", f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.1f} min", "of processors"))
    if judged:
        rows.append(("within the paper's ±", str(judged.count("within")), f"of {len(judged)} cells"))
    if verdicts:
        open_ones = f"{words['does not hold']} do not, {len(verdicts) - words['holds'] - words['does not hold']} open"
        rows.append(("claims that hold", str(words["holds"]), open_ones))
    return section("At a glance", facts(rows)) if rows else ""


def _properties(plain: dict[str, Any]) -> str:
    found = plain["findings"]
    rows = []
    for name in PROPERTIES:
        marks = []
        for row in found.values():
            told, holds = row[name]["paper"], row[name]["holds"]
            same = "" if told in (None, holds) else f" (the paper: {'yes' if told else 'no'})"
            marks.append(("✓\u00a0yes" if holds else "–\u00a0no") + same)  # mark and word stay on one line
        rows.append([name, *marks])
    why = [[name, *(row[name]["evidence"] for row in found.values())] for name in PROPERTIES]
    head = ["property", *found]
    measured = f"<details><summary>What was measured</summary>{table(head, why, 'Evidence', 'words')}</details>"
    lead = "Found out by running the pooling layers. " + (
        "The paper's table says the same." if plain["agrees"] else "The paper's table differs where marked."
    )
    return _named("table1", plain, table(head, rows, "") + measured, lead)


def _statistics(plain: dict[str, Any]) -> str:
    rows = []
    for row in plain["rows"]:
        told = row["paper"]
        theirs = "–" if told is None else ", ".join(map(_number, told.values()))
        theirs = f"{row['other']}: {theirs} (other data)" if row["other"] else theirs
        rows.append([row["name"], *map(_number, row["ours"].values()), theirs, row["verdict"] or "–"])
    body = table(["data set", *WORDS.values(), "the paper", "verdict"], rows, "", "numbers")
    return _named("table3", plain, body)


def _named(name: str, plain: dict[str, Any], body: str, lead: str = "") -> str:
    title = f"{plain['title']} ({name})"
    return f'<div id="{name}">{section(title, body, lead)}</div>'


def _failures(results: Results) -> str:
    names: dict[str, str] = {}
    rows = []
    for made in results.tables:
        for cell in made.cells:
            names[json.dumps([cell.column, cell.settings], sort_keys=True)] = cell.row
    for record in results.records.values():
        if not record.finished:
            run = record.run.to_dict()
            key = json.dumps([run["data"], {"model": run["model"], "train": run["train"]}], sort_keys=True)
            row = names.get(key, record.run.model.method)
            told = [str(record.run.seed), str(record.run.fold), str(record.attempts), str(record.failure)]
            rows.append([row, record.run.data, *told])
    head = ["row", "data", "seed", "fold", "attempts", "reason"]
    return section("Trainings that failed", table(head, rows, "The same command tries them again")) if rows else ""


def _machines(results: Results) -> str:
    import asapool

    count: Counter[str] = Counter()
    seconds: dict[str, float] = defaultdict(float)
    for record in results.records.values():
        name = json.dumps(record.machine, sort_keys=True)
        count[name] += 1
        seconds[name] += record.cpu_seconds or 0.0
    rows = []
    for name, trainings in sorted(count.items()):
        machine = json.loads(name)
        told = [str(machine.get(word) or "–") for word in ("cpu", "cores", "system")]
        versions = ", ".join(f"{k} {v}" for k, v in machine.items() if k not in ("cpu", "cores", "system") and v)
        rows.append([*told, versions, f"{trainings:,}", f"{seconds[name] / 60:.1f}"])
    head = ["processor", "cores", "system", "versions", "trainings", "processor minutes"]
    made = table(head, rows, "Where it was trained", "numbers") if rows else ""
    own = [["folder", str(results.folder)], ["page written by asapool", asapool.__version__]]
    return section("Machines and versions", made + table(["", ""], own, "This page"))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
