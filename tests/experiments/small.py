"""A small plan on small graphs, and an engine that is a few lines of Python in this process."""

from functools import partial

from asapool.data import load
from asapool.experiments.engines import LocalEngine
from asapool.experiments.fold import run as carry_out
from asapool.experiments.plan import Cell, Plan
from asapool.experiments.record import failed
from asapool.models import ModelConfig
from asapool.training import TrainConfig
from asapool.training.settings import DataConfig

SOURCE = "synthetic:cycles?graphs=40&nodes=6"
TRAIN = TrainConfig(epochs=2, batch_size=16)


def graphs_of(*columns):
    return {column: load(SOURCE).renamed(column) for column in columns or ("cycles",)}


def plan_of(rows=("mlp", "asap"), columns=("cycles",), **settings):
    cells = tuple(
        Cell(row=row, column=column, source=DataConfig(source=SOURCE), train=TRAIN,
             model=ModelConfig(method=row, hidden=4))
        for row in rows
        for column in columns
    )  # fmt: skip
    return Plan(**{"name": "small", "title": "Small", "cells": cells, "seeds": (8971, 7), "folds": 3} | settings)


class Here:
    """Trains in this process; what `breaks` says of a Run and the number of times it was tried is a failure."""

    def __init__(self, breaks=lambda run, attempt: None):
        self.breaks, self.tried, self.closed = breaks, [], False

    def work(self, runs, inputs, on_progress):
        try:
            for run in runs:
                self.tried.append(run.key)
                why = self.breaks(run, self.tried.count(run.key))
                if why is None:
                    yield carry_out(inputs[run.fingerprint], run, partial(on_progress, run), inputs.get(run.splits))
                else:
                    yield failed(run, why, {"cpu": "abacus"})
        finally:
            self.closed = True


def timeless(record):
    """What must be the same on every machine and in every run."""
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in record.history or []]
    return record.run, record.validation, record.test, record.best_epoch, record.probabilities, rows


__all__ = ["Here", "LocalEngine", "graphs_of", "plan_of", "timeless"]
