"""The report of reproduced tables: our results, the paper's numbers, and which of its claims hold."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from asapool.errors import CheckpointError
from asapool.experiments.paper import PROPERTIES
from asapool.experiments.paper_tables import WORDS
from asapool.experiments.reproducing import known
from asapool.experiments.verdicts import Verdict, evaluate_claims
from asapool.insight.drawing.figure import save_figures
from asapool.reports.page import Fact, TableView, render
from asapool.reports.plan_figures import plan_figure
from asapool.reports.results_table import Results, read_results, table_view

CLASSES = {
    "within": "right", "outside": "wrong", "holds": "right", "does not hold": "wrong", "not enough runs": "open",
    "too close to call": "open",
}  # fmt: skip


def results_page(folder: Path) -> str:
    """Read a folder written by asapool reproduce, and render its page."""
    results = read_results(folder)
    try:
        return _page(results)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise CheckpointError(
            f"{folder}: its files are inconsistent ({type(error).__name__}: {error}). Run the command again"
        ) from None


def write_figures(folder: Path) -> list[Path]:
    """Write the figures of a folder beside its tables, as SVG, PNG and PDF; return their paths."""
    tables = read_results(folder, curves=False).tables
    figures = {table.name: plan_figure(table) for table in tables}
    return save_figures({name: figure for name, figure in figures.items() if figure is not None}, folder)


def _page(results: Results) -> str:
    sections = {"table1": _properties, "table3": _statistics}
    views = {name: sections[name](plain) for name, plain in results.fixed.items()}
    views |= {one.name: table_view(results, one) for one in results.tables}
    order = [name for name in known() if name in views]  # the paper's, then those of other plans
    names = [*order, *(other for other in views if other not in order)]
    heading = "Results: " + (names[0] if len(names) == 1 else f"{len(names)} tables")
    verdicts = [verdict for one in results.tables for verdict in evaluate_claims(one)]
    return render(
        "results.html", heading=heading, title=f"asapool: {heading}", about=_about(results), classes=CLASSES,
        links=[(name, name) for name in names] if len(names) > 1 else [], headline=_headline(results, verdicts),
        all_claims=verdicts if len(results.tables) > 1 else [], parts=[views[name] for name in names],
        failures=_failures(results), **_machines(results),
    )  # fmt: skip


def _about(results: Results) -> str:
    columns = dict.fromkeys(column for table in results.tables for column in table.columns)
    seeds = max((len(table.seeds) for table in results.tables), default=0)
    if not columns:
        return "These tables need no training"
    return f"{', '.join(columns)} · {seeds} {'seed' if seeds == 1 else 'seeds'} · {results.tables[0].folds} folds"


def _headline(results: Results, verdicts: list[Verdict]) -> list[Fact]:
    done = [record for record in results.records.values() if record.finished]
    cells = [cell for table in results.tables for cell in table.cells]
    words, compared = Counter(verdict.verdict for verdict in verdicts), [c.verdict for c in cells if c.verdict]
    facts = []
    if cells:
        finished = sum(cell.finished for cell in cells)
        facts.append(Fact("training runs", f"{len(done):,}", f"{len(results.records) - len(done)} failed"))
        facts.append(Fact("cells finished", f"{finished:,}", f"of {len(cells):,}"))
        hours = sum(record.cpu_seconds or 0.0 for record in done) / 3600
        facts.append(Fact("processor time", f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.1f} min"))
    if compared:
        facts.append(Fact("within the paper's ±", str(compared.count("within")), f"of {len(compared)} cells"))
    if verdicts:
        open_ones = f"{words['does not hold']} do not, {len(verdicts) - words['holds'] - words['does not hold']} open"
        facts.append(Fact("claims that hold", str(words["holds"]), open_ones))
    return facts


def _properties(plain: dict[str, Any]) -> dict[str, Any]:
    findings = plain["findings"]
    rows = []
    for name in PROPERTIES:
        marks = []
        for row in findings.values():
            paper, holds = row[name]["paper"], row[name]["holds"]
            same = "" if paper in (None, holds) else f" (the paper: {'yes' if paper else 'no'})"
            marks.append(("✓\u00a0yes" if holds else "–\u00a0no") + same)  # no break between mark and word
        rows.append([name, *marks])
    why = [[name, *(row[name]["evidence"] for row in findings.values())] for name in PROPERTIES]
    head = ["property", *findings]
    lead = "Measured by running the pooling layers. " + (
        "The paper's table agrees." if plain["agrees"] else "The paper's table differs where marked."
    )
    evidence = TableView(head, why, "Evidence", "evidence")
    return _fixed("table1", plain, TableView(head, rows, "", ""), lead, evidence)


def _statistics(plain: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for row in plain["rows"]:
        paper = "–" if row["paper"] is None else ", ".join(map(_number, row["paper"].values()))
        paper = f"{row['other']}: {paper} (other data)" if row["other"] else paper
        rows.append([row["name"], *map(_number, row["ours"].values()), paper, row["verdict"] or "–"])
    return _fixed("table3", plain, TableView(["data set", *WORDS.values(), "the paper", "verdict"], rows))


def _fixed(
    name: str, plain: dict[str, Any], table: TableView, lead: str = "", evidence: TableView | None = None
) -> dict[str, Any]:
    title = f"{plain['title']} ({name})"
    return {"name": name, "title": title, "lead": lead, "table": table, "evidence": evidence}


def _failures(results: Results) -> TableView | None:
    names: dict[str, str] = {}
    rows = []
    for table in results.tables:
        for cell in table.cells:
            names[json.dumps([cell.column, cell.settings], sort_keys=True)] = cell.row
    for record in results.records.values():
        if not record.finished:
            run = record.run.to_dict()
            key = json.dumps([run["data"], {"model": run["model"], "train": run["train"]}], sort_keys=True)
            row = names.get(key, record.run.model.method)
            cells = [str(record.run.seed), str(record.run.fold), str(record.attempts), str(record.failure)]
            rows.append([row, record.run.data, *cells])
    head = ["row", "data", "seed", "fold", "attempts", "reason"]
    return TableView(head, rows, "The same command tries them again", "") if rows else None


def _machines(results: Results) -> dict[str, TableView | None]:
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
        parts = [str(machine.get(word) or "–") for word in ("cpu", "cores", "system")]
        versions = ", ".join(f"{k} {v}" for k, v in machine.items() if k not in ("cpu", "cores", "system") and v)
        rows.append([*parts, versions, f"{trainings:,}", f"{seconds[name] / 60:.1f}"])
    head = ["processor", "cores", "system", "versions", "training runs", "processor minutes"]
    page = [["folder", str(results.folder)], ["page written by asapool", asapool.__version__]]
    machines = TableView(head, rows, "Machines used for training") if rows else None
    return {"machines": machines, "page": TableView(["", ""], page, "This page", "")}


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
