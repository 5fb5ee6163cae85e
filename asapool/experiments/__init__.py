"""Experiments: a plan of training runs, executed in processes or on a cluster, kept in a store, summarised as tables.

    Run           the settings of one training run                      RunRecord   its result
    Plan, Cell    the cells of a table                                  Store       records in a folder, append-only
    execute       train the unfinished Runs of a plan with an Engine
    methods_plan, cross_validate      several models on the folds of one data set
    Table, make_table, paired_test    from records to a table

Names are imported on first use, so that modules without torch do not load it.
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

# execute is not listed, because it has the name of its module (asapool.experiments.execute.execute)
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
