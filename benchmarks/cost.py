"""The cost of the rows of table2: processor seconds per training run and trained parameters, all on one machine.

    python -m benchmarks.cost --data-root FOLDER    # writes results/cost.json; a few minutes on a quiet machine

A run of the full length takes as many times the difference between one of six epochs and one of two.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asapool.data import GraphSet
from asapool.experiments.fold import run as train
from asapool.experiments.plan import Cell, load_graphs, load_plan
from asapool.experiments.record import machine
from asapool.experiments.run import Run
from asapool.experiments.table_text import markdown
from asapool.experiments.tables import Table
from asapool.files import read_json, write_json
from asapool.training.new_model import new_model

RESULTS = Path(__file__).parents[1] / "results"
SHORT, LONG = 2, 6  # epochs


def measure(data_root: Path) -> dict[str, Any]:
    """Data set → row → parameters and seconds of one training run."""
    torch.set_num_threads(1)
    plan = load_plan("table2", data_root=data_root, seeds=1)
    graphs = load_graphs([plan])
    rows: dict[str, dict[str, Any]] = {}
    for cell in plan.cells:
        every = graphs[cell.column]
        model = new_model(cell.model, every, np.arange(len(every)), cell.train)
        run = plan.runs_of(cell, graphs)[0]
        times = [_seconds(every, run, cell, epochs) for epochs in (SHORT, SHORT, LONG)]  # the first one compiles
        row = {
            "parameters": sum(p.numel() for p in model.parameters()),
            "seconds": (times[2] - times[1]) / (LONG - SHORT) * cell.train.epochs,
        }
        rows.setdefault(cell.column, {})[cell.row] = row
        print(f"{cell.column}, {cell.row}: {row}", flush=True)
    return {"rows": rows, "machine": machine()}


def _seconds(graphs: GraphSet, run: Run, cell: Cell, epochs: int) -> float:
    record = train(graphs, replace(run, train=replace(cell.train, epochs=epochs)), lambda *_: None, None)
    assert record.cpu_seconds is not None, record.failure
    return record.cpu_seconds


def read_cost(results: Path) -> Mapping[str, Any]:
    """What was measured, or nothing."""
    path = results / "cost.json"
    return read_json(path) if path.is_file() else {"rows": {}, "machine": {}}


def markdown_table(table: Table, results: Path) -> str:
    """A row per method with the seconds per run and the parameters of the model, for every data set."""
    known = read_cost(results)["rows"]

    def cell(row: str, column: str) -> str:
        one = known.get(column, {}).get(row)
        return "–" if one is None else f"{one['seconds']:.0f} s · {one['parameters']:,}"

    lines = [[row, *(cell(row, column) for column in table.columns)] for row in table.rows]
    return markdown(["seconds per run · parameters", *table.columns], lines)


def main() -> None:
    """Measure all cells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    write_json(chosen.results / "cost.json", measure(chosen.data_root))


if __name__ == "__main__":
    main()
