"""The cost of a row of table2: seconds per training run and parameters beside accuracy, as a table and a figure.

python -m benchmarks.cost --data-root FOLDER    # counts the parameters of every model, in results/parameters.json
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from asapool.experiments.cells import TableCell
from asapool.experiments.compact import read_compact, together
from asapool.experiments.plan import load_graphs, load_plan
from asapool.experiments.record import RunRecord
from asapool.experiments.table_text import markdown
from asapool.experiments.tables import Table, make_table
from asapool.files import read_json, write_json
from asapool.insight.drawing.figure import new_figure, save_figures
from asapool.training.new_model import new_model

COLUMNS = ("PROTEINS", "NCI1")  # the data sets on which every method was trained


def seconds(cell: TableCell | None, records: Mapping[str, RunRecord]) -> float | None:
    """Mean processor seconds of the training runs of a cell."""
    taken = [records[key] for key in (cell.runs if cell else ()) if key in records]
    known = [r.cpu_seconds or r.seconds for r in taken if r.cpu_seconds or r.seconds]
    return sum(known) / len(known) if known else None


def count_parameters(data_root: Path) -> dict[str, dict[str, int]]:
    """Data set → row → number of trained parameters."""
    plan = load_plan("table2", data_root=data_root)
    graphs = load_graphs([plan])
    counted: dict[str, dict[str, int]] = {}
    for cell in plan.cells:
        every = graphs[cell.column]
        model = new_model(cell.model, every, np.arange(len(every)), cell.train)
        counted.setdefault(cell.column, {})[cell.row] = sum(p.numel() for p in model.parameters())
    return counted


def markdown_table(table: Table, records: Mapping[str, RunRecord], results: Path) -> str:
    """A row per method with the seconds per run and the parameters of the model, for every data set."""
    path = results / "parameters.json"
    counted = read_json(path) if path.is_file() else {}
    rows = []
    for row in table.rows:
        line = [row]
        for column in table.columns:
            taken, numbers = seconds(table.cell(row, column), records), counted.get(column, {}).get(row)
            words = ["–" if taken is None else f"{taken:.0f} s", "–" if numbers is None else f"{numbers:,}"]
            line.append(" · ".join(words))
        rows.append(line)
    return markdown(["seconds per run · parameters", *table.columns], rows)


def draw(results: Path, path: Path) -> None:
    """One panel per data set: each method at its cost and accuracy."""
    records = together(*(read_compact(file) for file in sorted(results.glob("*.jsonl"))))
    table = make_table(load_plan("table2", datasets=list(COLUMNS)), records)
    figure = new_figure(9, 4)
    for axes, column in zip(figure.subplots(1, len(COLUMNS)), COLUMNS, strict=True):
        for row in table.rows:
            cell = table.cell(row, column)
            cost = seconds(cell, records)
            if cell is None or cell.mean is None or cost is None:
                continue
            axes.plot(cost, cell.mean, "o", color="#c2410c" if row == "asap" else "#0f766e")
            axes.annotate(row, (cost, cell.mean), xytext=(5, 3), textcoords="offset points", fontsize=8)
        axes.set(title=column, xlabel="processor seconds per training", ylabel="test accuracy, %", xscale="log")
        axes.margins(x=0.25, y=0.1)
        axes.spines[["top", "right"]].set_visible(False)
    save_figures({path.stem: figure}, path.parent, kinds=[path.suffix[1:]])


def main() -> None:
    """Count parameters."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results")
    chosen = parser.parse_args()
    write_json(chosen.results / "parameters.json", count_parameters(chosen.data_root))


if __name__ == "__main__":
    main()
