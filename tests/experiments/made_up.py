"""Plans and records with accuracies that were written down, not trained."""

from asapool.experiments.plan import Cell, Plan
from asapool.experiments.record import RunRecord
from asapool.experiments.store import Store
from asapool.models import ModelConfig
from asapool.training.config import TrainConfig
from asapool.training.settings import DataConfig

MACHINE = {"cpu": "abacus", "cores": 1, "python": "3.11"}


def scores(accuracy):
    return {
        "graphs": 10, "accuracy": accuracy, "balanced_accuracy": accuracy, "roc_auc": accuracy, "pr_auc": None,
        "calibration_error": 0.1, "majority": 0.5, "confusion": [[1, 0], [0, 1]], "class_names": ["a", "b"],
        "notes": {},
    }  # fmt: skip


def plan_of(rows, columns=("NCI1",), **settings):
    """A plan; rows are names, told apart by the width of their model."""
    cells = tuple(
        Cell(row=row, column=column, source=DataConfig(source=column), train=TrainConfig(),
             model=ModelConfig(hidden=8 + k))
        for k, row in enumerate(rows)
        for column in columns
    )  # fmt: skip
    return Plan(**{"name": "table2", "title": "Made up", "cells": cells, "seeds": (1, 2), "folds": 3} | settings)


def records_of(plan, values):
    """Records by key; values[row, column] lists the accuracies seed by seed, fold by fold; None: not there.

    A text is the reason of a failure. The accuracy that the plan does not show is one half everywhere.
    """
    made = {}
    for cell in plan.cells:
        runs = plan.runs_of(cell, Prints(plan.columns))
        for run, value in zip(runs, values.get((cell.row, cell.column), ()), strict=False):
            if isinstance(value, str):
                made[run.key] = RunRecord(run=run, failure=value, machine=MACHINE)
            elif value is not None:
                ours, rest = scores(value), scores(0.5)
                test, validation = (ours, rest) if plan.metric == "test" else (rest, ours)
                made[run.key] = RunRecord(
                    run=run, test=test, validation=validation, best_epoch=1, epochs=1, seconds=1.0, cpu_seconds=1.0,
                    machine=MACHINE, history=[{"epoch": 1, "lr": 0.1, "loss": 0.6, "val_loss": 0.7,
                                               "val_accuracy": value, "seconds": 0.5}],
                )  # fmt: skip
    return made


class Prints(dict):
    """Stands for the graphs of some columns where only their fingerprints are asked for."""

    def __init__(self, columns):
        super().__init__({column: _Print(f"print of {column}") for column in columns})


class _Print:
    def __init__(self, fingerprint):
        self.fingerprint = fingerprint


def fill(folder, records):
    """A store with these records."""
    with Store.open(folder) as store:
        for record in records:
            store.append(record)
    return folder
