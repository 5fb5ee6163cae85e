"""The paper's tables by name: their plans, their files, and one call that carries all of it out in a folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asapool.errors import AsapoolError, ConfigError
from asapool.experiments.execute import Engine, OnProgress, OnRecord, execute
from asapool.experiments.plan import Plan, load_graphs, load_plan
from asapool.experiments.plan_file import plan_names, read_plan
from asapool.experiments.record import RunRecord
from asapool.experiments.store import Store
from asapool.files import read_json, write_json

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.table_text import Written

TRAINED = (
    "table2", "table-aggregation", "table-attention", "table-fitness", "table-edges", "figure-ratio", "table-hyper",
)  # fmt: skip
PROPERTIES, STATISTICS = "table1", "table3"  # which need no training
EVERY = 2.0  # seconds between two writings of the tables while trainings end
SHARE = 30  # and at least this many times what one writing takes, so that writing costs about 3 % of one core


def known() -> list[str]:
    """What can be reproduced by name."""
    ours = [PROPERTIES, TRAINED[0], STATISTICS, *TRAINED[1:]]
    return [*ours, *(name for name in plan_names() if name not in ours), "all"]


def names_of(what: str) -> list[str]:
    """The tables that a word stands for: itself, or all of the paper's.

    >>> names_of("table2"), len(names_of("all"))
    (['table2'], 9)
    """
    if what not in known():
        raise ConfigError(f"there is no {what!r} to reproduce. Known are {', '.join(known())}; or use --plan")
    return [PROPERTIES, TRAINED[0], STATISTICS, *TRAINED[1:]] if what == "all" else [what]


def load_plans(
    names: Sequence[str],
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    **options: Any,
) -> list[Plan]:
    """The plans behind some tables, each cut down to those data sets and methods that it knows.

    A word that none of them knows is refused; a plan of which nothing remains is left out.
    """
    # the statistics are about the data sets of the comparison
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
        raise ConfigError("--datasets and --methods leave nothing to do. Leave one of them out")
    return plans


class Tables:
    """The table files of a folder, written again while records come in, but not too often."""

    def __init__(
        self, folder: Path, names: Sequence[str], plans: Sequence[Plan], graphs: Mapping[str, GraphSet],
        records: Mapping[str, RunRecord],
    ) -> None:  # fmt: skip
        from asapool.experiments.dataset_table import table3
        from asapool.experiments.property_table import table1

        self.folder, self.records, self.graphs = folder, records, graphs
        self.trained = [plan for plan in plans if plan.name in names]
        self.fixed: dict[str, Written] = {}
        if PROPERTIES in names:
            self.fixed[PROPERTIES] = table1()
        if STATISTICS in names:
            columns = dict.fromkeys(c for plan in plans if plan.name == TRAINED[0] for c in plan.columns)
            self.fixed[STATISTICS] = table3({column: graphs[column] for column in columns})
        self.names = [name for name in names if name in self.fixed or any(plan.name == name for plan in plans)]
        self.keys = {plan.name: {run.key for run in plan.runs(graphs)} for plan in self.trained}
        self.changed: set[str] = set()
        self.due = 0.0
        for plan in self.trained:
            write_json(folder / f"{plan.name}.plan.json", plan.to_dict())

    def write(self) -> list[Written]:
        """Write all of them; return them in the order of their names."""
        made = {**self.fixed, **{plan.name: self._made(plan) for plan in self.trained}}
        tables = [made[name] for name in self.names]
        for table in tables:
            self._write(table)
        self.changed.clear()
        return tables

    def record(self, record: RunRecord) -> None:
        """Take note of a new record, and write the tables that changed if the last time is long enough ago."""
        self.changed |= {name for name, keys in self.keys.items() if record.run.key in keys}
        began = time.monotonic()
        if began < self.due:
            return
        for plan in self.trained:
            if plan.name in self.changed:
                self._write(self._made(plan))
        self.changed.clear()
        self.due = time.monotonic() + max(EVERY, SHARE * (time.monotonic() - began))

    def _made(self, plan: Plan) -> Written:
        from asapool.experiments.tables import make_table

        return make_table(plan, self.records, self.graphs)

    def _write(self, table: Written) -> None:
        from asapool.experiments.tables import write

        write(table, self.folder)


def reproduce(
    names: Sequence[str],
    plans: Sequence[Plan],
    graphs: Mapping[str, GraphSet],
    folder: str | PathLike[str],
    engine: Engine,
    *,
    on_start: Callable[[Store], None] | None = None,
    on_record: OnRecord | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[list[Written], list[RunRecord]]:
    """Train what the folder's store has not finished, and write the tables; return them and all records.

    names: of the tables; plans: what load_plans gave for them; graphs: by column.
    """
    with Store.open(folder) as store:
        tables = Tables(Path(folder), names, plans, graphs, store.records())
        tables.write()
        if on_start is not None:
            on_start(store)

        def told(record: RunRecord) -> None:
            tables.record(record)
            if on_record is not None:
                on_record(record)

        try:
            records = execute(tables.trained, graphs, store, engine, told, on_progress)
        except BaseException:
            with suppress(AsapoolError):  # what stopped us may stop this too, and is the one to be told of
                tables.write()
            raise
        return tables.write(), records


def read_plans(folder: str | PathLike[str]) -> list[Plan]:
    """The plans that were carried out in a folder."""
    return [Plan.from_dict(read_json(path)) for path in sorted(Path(folder).glob("*.plan.json"))]


__all__ = ["Tables", "known", "load_graphs", "load_plans", "names_of", "read_plans", "reproduce"]
