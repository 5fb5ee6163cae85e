"""Keep the results of `asapool reproduce` as compact files under results/, and write docs/results.md from them.

    python -m benchmarks.accuracy --add FOLDER ...   # folders written by `asapool reproduce --out FOLDER`
    python -m benchmarks.accuracy                    # just the page

results/NAME.jsonl contains the training runs on the data set NAME, results/table3.json the statistics of data sets.
Hand-written notes are in results/notes/: PLAN.md is shown below the table of that plan, any other file at the end.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asapool.experiments import paper
from asapool.experiments.compact import read_compact, together, write_compact
from asapool.experiments.filled import MAIN, ORDER, filled_plan
from asapool.experiments.paper_tables import DataRow, StatisticsTable, table1
from asapool.experiments.plan import load_plan
from asapool.experiments.record import RunRecord
from asapool.experiments.rendering import to_markdown
from asapool.experiments.store import Store
from asapool.experiments.table_text import markdown
from asapool.experiments.tables import Table, make_table
from asapool.experiments.verdicts import evaluate_claims
from asapool.files import read_json, write_json, write_text
from asapool.insight import receptive_spans
from benchmarks import cost, figures

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "results.md"
HEAD = """# Results

Does ASAP do what the paper says, and how good is `asap+`? This page is written by `python -m benchmarks.accuracy` from
the training runs in `results/`; [how they were done](#how-it-was-measured) is at the end.
"""
CLAIMS = """## The paper's claims

A claim holds, or does not hold, if a test gives p < 0.05 or a 95 % interval lies on one side. It is "too close to call"
if the training runs cannot decide it, and has "not enough runs" if some of its rows are missing.
"""
COST = """### Accuracy against cost

Processor seconds of one training run on one core, and the number of trained parameters. All were measured on one
machine by `python -m benchmarks.cost` ({cpu}, torch {torch}, commit {commit}); other processors differ.
"""
FORECAST = """What one node at the last level sees, in hops between the two farthest nodes: the forecast of
`asapool.insight.receptive_spans` with random selections, before any training. The first row is the whole chain with
its motifs.
"""
METHOD = """## How it was measured

- **Protocol.** The paper's tables use its authors' protocol: ten plain shuffled folds, validation on the fold before
  the test fold, and the epoch with the best validation accuracy. Nothing was tuned on test folds. Seeds and settings
  are the authors'; the learning rates of the other methods were chosen on validation folds if `table-rates` was run.
- **±** is the standard deviation of the means of the seeds, as in the paper. The deviation over the folds of a seed is
  given too, since it says how far off a single run can be. The paper has 20 seeds × 10 folds; each cell says how
  many we have. Seeds with missing folds count neither in ± nor in a verdict.
- **Verdicts.** "within" means that our mean lies inside the paper's mean ± its deviation.
- **Tests.** p values are from paired tests on the folds that both rows have finished (the corrected resampled t-test,
  with Holm's adjustment within a column).
- **FRANKENSTEIN** is large and not available everywhere. Mutagenicity, the molecules it was made from, was used
  instead; the paper's number is shown beside it as other data, without a verdict.
"""
AGAIN = """## Measure it again

```
asapool results results --merge OUT                                               # reuse the runs in the repository
asapool reproduce table2 --methods asap --seeds 3 -j 2 --data-root DIR --out OUT  # DIR has DD.zip, NCI1.zip, …
asapool reproduce table2 --seeds 1 -j 2 --data-root DIR --out OUT                 # every other method
asapool reproduce table-aggregation --seeds 1 -j 2 --data-root DIR --out OUT      # -attention, -fitness, -edges too
asapool reproduce figure-ratio --seeds 1 -j 2 --data-root DIR --out OUT
asapool reproduce table-rates --seeds 1 -j 2 --data-root DIR --out OUT
asapool reproduce table-semantics --seeds 3 -j 2 --data-root DIR --out OUT
python -m benchmarks.accuracy --add OUT
```

Any of them may be stopped and run again: finished training runs are not repeated. `asapool report OUT` shows all of
them on a page. Without the first line everything is trained again. A run whose scores then differ from those here (on
another processor, say) is refused by `--add`; keep such runs separate with
`python -m benchmarks.accuracy --add OUT --results NEW --page NEW/results.md`.
`python -m benchmarks.cost --data-root DIR` measures the time of every row and counts its parameters.
"""


def add(folders: Sequence[Path], results: Path) -> None:
    """Add the records of stores to the compact files, one per data set, and the statistics of their data sets."""
    new = together(*(Store.read(folder, light=True) for folder in folders))
    by_file: dict[Path, dict[str, RunRecord]] = {}
    for name in sorted({record.run.data for record in new.values()}):
        path = results / f"{_file_name(name)}.jsonl"
        of_data = {key: record for key, record in new.items() if record.run.data == name}
        by_file[path] = together(read_compact(path) if path.exists() else {}, of_data)
    counted = [row for place in (results, *folders) for row in _statistics(place)]
    results.mkdir(parents=True, exist_ok=True)
    for path, records in by_file.items():  # all were read and agree, so every file is written or none
        write_compact(path, records.values())
    if counted:
        rows = {row["name"]: row for row in counted}
        write_json(results / "table3.json", {"rows": [rows[name] for name in sorted(rows)]})


def read(results: Path) -> tuple[list[Table], dict[str, RunRecord]]:
    """The tables that have numbers, in the order of the page, and all training runs."""
    records = together(*(read_compact(path) for path in sorted(results.glob("*.jsonl"))))
    plans = (filled_plan(name, records) for name in ORDER)
    return [make_table(plan, records) for plan in plans if plan is not None], records


def page(results: Path, tables: Sequence[Table], records: Mapping[str, RunRecord]) -> str:
    """The text of docs/results.md."""
    parts = [HEAD, *_claims(tables)]
    for table in tables:
        parts.append(f"## {table.title} (`{table.name}`)\n")
        parts += _figure(f"results-{table.name}")
        parts.append(to_markdown(table, heading=False, marks=False, folded=True))
        if table.name == "pooling-range":
            parts += [FORECAST, _forecast(table)]
        parts += _note(results, table.name)
        if table.name == MAIN:
            known = cost.read_cost(results)["machine"]
            if known:
                parts += [COST.format(**known), *_figure("results-cost"), cost.markdown_table(table, results)]
    left = [name for name in ORDER if name not in {table.name for table in tables}]
    if left:
        parts.append(f"Not measured yet: {', '.join(f'`{name}`' for name in left)}.\n")
    parts += ["## Properties of the pooling methods (`table1`)\n", table1().to_markdown()]
    rows = _statistics(results)
    if rows:
        counted = StatisticsTable(rows=tuple(_counted(row) for row in rows))
        parts += ["## The data sets (`table3`)\n", counted.to_markdown()]
    for path in sorted((results / "notes").glob("*.md")):
        if path.stem not in {table.name for table in tables}:
            parts += _note(results, path.stem)
    parts += [METHOD, AGAIN, _machines(records)]
    return "\n".join(parts)


def _forecast(table: Table) -> str:
    """The forecast of how far each network of the table sees."""
    plan = load_plan(table.name)
    rows = {"the whole chain": {"method": "none", "first_convs": 40}}
    for cell in plan.cells:
        if cell.model.method in ("asap+", "none+"):
            convs = {"first_convs": cell.model.first_convs, "level_convs": cell.model.level_convs}
            rows[cell.row] = {"method": cell.model.method[:-1], "levels": cell.model.levels, **convs}
    columns = {column: plan.sources[column].load() for column in table.columns}
    lines = [
        [name, *(f"{receptive_spans(g.rowptr, g.col, g.ptr, **options)[-1]:.1f}" for g in columns.values())]
        for name, options in rows.items()
    ]
    return markdown(["hops seen", *columns], lines)


def _figure(name: str) -> list[str]:
    """A figure by its name; nothing if there is none."""
    return [f"![{figures.CAPTIONS[name]}](figures/{name}.svg)\n"] if name in figures.CAPTIONS else []


def _claims(tables: Sequence[Table]) -> list[str]:
    """The summary: the verdict on every claim."""
    lines = [
        [v.words, f"**{v.verdict}**", ", ".join(v.decided_on) or "–", f"`{table.name}`"]
        for table in tables
        for v in evaluate_claims(table)
    ]
    return [CLAIMS, markdown(["claim", "verdict", "tested on", "numbers in"], lines)] if lines else []


def _machines(records: Mapping[str, RunRecord]) -> str:
    count: Counter[str] = Counter()
    hours: dict[str, float] = defaultdict(float)
    for record in records.values():
        name = json.dumps(record.machine, sort_keys=True)
        count[name] += 1
        hours[name] += record.cpu_seconds or record.seconds or 0.0
    words = ("cpu", "cores", "system", "python", "torch", "numba", "numpy", "asapool", "commit")
    rows = []
    for name, trainings in sorted(count.items(), key=lambda pair: (-pair[1], pair[0])):
        machine = json.loads(name)
        rows.append([str(trainings), f"{hours[name] / 3600:.1f}", *(str(machine.get(word) or "–") for word in words)])
    return "## Machines\n\n" + (markdown(["training runs", "hours", *words], rows) if rows else "None yet.\n")


def _note(results: Path, name: str) -> list[str]:
    path = results / "notes" / f"{name}.md"
    return [path.read_text(encoding="utf-8").rstrip() + "\n"] if path.is_file() else []


def _statistics(place: Path) -> list[dict[str, Any]]:
    path = place / "table3.json"
    return list(read_json(path)["rows"]) if path.is_file() else []


def _counted(row: Mapping[str, Any]) -> DataRow:
    reported = row["paper"]
    return DataRow(
        name=row["name"], ours=paper.Statistics(**row["ours"]), other=row["other"],
        paper=None if reported is None else paper.Statistics(**reported),
    )  # fmt: skip


def _file_name(data: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in data).lstrip(".")


def main() -> None:
    """Add folders if some are given, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=Path, nargs="+", default=[])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    args = parser.parse_args()
    if args.add:
        add(args.add, args.results)
    tables, records = read(args.results)
    write_text(args.page, page(args.results, tables, records))
    figures.draw(tables, cost.read_cost(args.results)["rows"], args.page.parent / "figures")
    print(args.page)


if __name__ == "__main__":
    main()
