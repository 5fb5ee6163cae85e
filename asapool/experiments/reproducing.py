"""The paper's tables by name: their plans, and a function that carries them out in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from asapool.errors import ConfigError
from asapool.experiments.execute import Engine
from asapool.experiments.experiment import carry_out
from asapool.experiments.plan import Plan, load_plan
from asapool.experiments.plan_file import plan_names, read_plan
from asapool.experiments.record import RunRecord
from asapool.training.config import AUTHORS_SEEDS, seeds

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.table_text import Written

TRAINED = (
    "table2", "table-aggregation", "table-attention", "table-fitness", "table-edges", "figure-ratio", "table-hyper",
)  # fmt: skip
PROPERTIES, STATISTICS = "table1", "table3"  # these need no training


def known() -> list[str]:
    """What can be reproduced by name."""
    paper = [PROPERTIES, TRAINED[0], STATISTICS, *TRAINED[1:]]
    return [*paper, *(name for name in plan_names() if name not in paper), "all"]


def names_of(what: str) -> list[str]:
    """The tables that a name stands for: itself, or all of the paper's.

    >>> names_of("table2"), len(names_of("all"))
    (['table2'], 9)
    """
    if what not in known():
        raise ConfigError(f"there is no {what!r} to reproduce. Use one of {', '.join(known())}, or --plan")
    return [PROPERTIES, TRAINED[0], STATISTICS, *TRAINED[1:]] if what == "all" else [what]


def load_plans(
    names: Sequence[str],
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    **options: Any,
) -> list[Plan]:
    """The plans of several tables, each restricted to the given data sets and methods that it has.

    A name that none of them has is refused; a plan of which nothing remains is left out.
    """
    # table3 has the statistics of the data sets of table2
    files = [read_plan(TRAINED[0] if name == STATISTICS else name) for name in names if name != PROPERTIES]
    files = list({file.name: file for file in files}.values())
    for word in datasets or ():
        if files and not any(file.has_data(word) for file in files):
            every = dict.fromkeys(name for file in files for name in file.datasets)
            raise ConfigError(f"--datasets: there is no data set {word!r} in the plan. It has {', '.join(every)}")
    for word in methods or ():
        if files and not any(word in file.methods for file in files):
            every = dict.fromkeys(name for file in files for name in file.methods)
            raise ConfigError(f"--methods: there is no method {word!r} in the plan. It has {', '.join(every)}")
    plans = []
    for file in files:
        data = None if datasets is None else [word for word in datasets if file.has_data(word)]
        rows = None if methods is None else [word for word in methods if word in file.methods]
        if data != [] and rows != []:
            plans.append(load_plan(file, datasets=data, methods=rows, **options))
    if files and not plans:
        raise ConfigError("--datasets and --methods leave nothing to do. Leave out one of them")
    return plans


def further_seeds(plans: Sequence[Plan]) -> tuple[int, ...]:
    """The seeds of the plans that continue the authors' twenty; a plan's own list of seeds has none."""
    counts = [len(plan.seeds) for plan in plans if plan.seeds == seeds(len(plan.seeds))]
    return seeds(max(counts, default=0))[len(AUTHORS_SEEDS) :]


def reproduce(
    names: Sequence[str],
    plans: Sequence[Plan],
    graphs: Mapping[str, GraphSet],
    folder: str | PathLike[str],
    engine: Engine,
    **options: Any,
) -> tuple[list[Written], list[RunRecord]]:
    """Train the Runs that are not finished in the folder's store, and write the tables; return them and all records.

    names: of the tables; plans: from load_plans; graphs: by column; options: those of carry_out.
    """
    from asapool.experiments.paper_tables import table1, table3

    fixed: list[Written] = []
    if PROPERTIES in names:
        fixed.append(table1())
    if STATISTICS in names:
        columns = dict.fromkeys(c for plan in plans if plan.name == TRAINED[0] for c in plan.columns)
        fixed.append(table3({column: graphs[column] for column in columns}))
    trained = [plan for plan in plans if plan.name in names]
    return carry_out(trained, graphs, folder, engine, fixed=fixed, order=names, **options)
