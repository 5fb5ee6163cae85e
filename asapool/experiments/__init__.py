"""Experiments: a plan of trainings, carried out in processes or on a cluster, kept in a store, summed up as tables.

    Run, run      one training: what decides it, and how it is done     RunRecord   what came of it
    Plan, Cell    the cells of a table                                  Store       records in a folder, append-only
    execute       the Runs of a plan that are not finished yet, by an Engine
    methods_plan, cross_validate      several models on the folds of one data set: a plan made on the spot
    Table, make_table, paired_test    many records, one table

Names are looked up when first used, so that a part that needs no torch does not load it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asapool.experiments.compact import merge
    from asapool.experiments.crossval import cross_validate, methods_plan
    from asapool.experiments.engines import InlineEngine, LocalEngine
    from asapool.experiments.plan import Cell, Plan, load_plan
    from asapool.experiments.protocols import SplitFile
    from asapool.experiments.record import RunRecord
    from asapool.experiments.run import Run
    from asapool.experiments.significance import PairedTest, paired_test
    from asapool.experiments.store import Store
    from asapool.experiments.tables import Table, make_table

# execute is not here: it has the name of its module (asapool.experiments.execute.execute)
_HOME = {
    "Cell": "plan",
    "InlineEngine": "engines",
    "LocalEngine": "engines",
    "PairedTest": "significance",
    "Plan": "plan",
    "Run": "run",
    "RunRecord": "record",
    "SplitFile": "protocols",
    "Store": "store",
    "Table": "tables",
    "cross_validate": "crossval",
    "load_plan": "plan",
    "make_table": "tables",
    "merge": "compact",
    "methods_plan": "crossval",
    "paired_test": "significance",
}
__all__ = [
    "Cell",
    "InlineEngine",
    "LocalEngine",
    "PairedTest",
    "Plan",
    "Run",
    "RunRecord",
    "SplitFile",
    "Store",
    "Table",
    "cross_validate",
    "load_plan",
    "make_table",
    "merge",
    "methods_plan",
    "paired_test",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"asapool.experiments.{_HOME[name]}"), name)
    raise AttributeError(f"module 'asapool.experiments' has no attribute {name!r}")
