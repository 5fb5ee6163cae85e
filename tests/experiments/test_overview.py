"""What a store holds, by plan and by settings; two stores side by side; several brought together."""

from dataclasses import replace

import pytest

from asapool.errors import DataError
from asapool.experiments.experiment import read_plans
from asapool.experiments.overview import differences, merge_folders, overview
from asapool.experiments.plan import Plan, load_plan
from asapool.experiments.store import Store
from asapool.files import write_json
from tests.experiments.made_up import Prints, plan_of, records_of


def store_of(folder, plan, values, planned=True):
    with Store.open(folder) as store:
        for record in records_of(plan, values).values():
            store.append(record)
        if planned:
            write_json(folder / f"{plan.name}.plan.json", plan.to_dict())
    return folder


VALUES = {("asap", "NCI1"): [0.5, 0.6, 0.7, 0.7, 0.8, 0.9], ("topk", "NCI1"): [0.4, 0.5, "out of memory"]}
PLAN = plan_of(("asap", "topk"))


def test_a_line_per_cell_with_what_stands_behind_it(tmp_path):
    asap, topk = overview(store_of(tmp_path, PLAN, VALUES)).groups
    assert (asap.data, asap.names, asap.settings) == ("NCI1", ("table2: asap",), "asap, hidden 8")
    assert asap.test == pytest.approx(0.7)
    assert asap.over_seeds == pytest.approx(0.2 / 2**0.5)  # of 0.6 and 0.8
    assert asap.over_folds == pytest.approx(0.1)
    assert (asap.validation, asap.seeds, asap.folds, asap.failed) == (0.5, 2, 6, 0)
    assert (topk.names, topk.seeds, topk.folds, topk.failed) == (("table2: topk",), 1, 2, 1)


def test_one_series_in_two_plans_is_one_line_and_without_plans_it_has_its_settings(tmp_path):
    folder = store_of(tmp_path / "a", PLAN, VALUES)
    again = Plan(**vars(PLAN) | {"name": "x", "cells": (replace(PLAN.cells[0], row="both"),)})
    write_json(folder / "x.plan.json", again.to_dict())
    assert [s.names for s in overview(folder).groups] == [("table2: asap", "x: both"), ("table2: topk",)]
    bare = store_of(tmp_path / "b", PLAN, VALUES, planned=False)
    assert [s.names for s in overview(bare).groups] == [("asap, hidden 8",), ("asap, hidden 9",)]
    result = differences(folder, bare)
    assert [(d.name, d.test["n"]) for d in result] == [("table2: asap", 6), ("table2: topk", 2)]


def test_the_rows_of_a_table_have_the_order_of_its_plan_even_if_another_plan_has_some_of_them(tmp_path):
    folder = store_of(tmp_path, PLAN, VALUES)
    again = Plan(**vars(PLAN) | {"name": "a", "cells": (replace(PLAN.cells[1], row="two"),)})
    write_json(folder / "a.plan.json", again.to_dict())  # read first: its group comes first
    found = overview(folder)
    assert [group.names[-1] for group in found.groups] == ["table2: topk", "table2: asap"]
    rows = {name: [row for row, _ in table] for name, table in found.tables().items()}
    assert rows == {"a": ["two"], "table2": ["asap", "topk"]}
    bare = overview(store_of(tmp_path / "bare", PLAN, VALUES, planned=False)).tables()
    assert [row for row, _ in bare[""]] == ["asap, hidden 8", "asap, hidden 9"]


def test_compact_records_are_named_by_the_plans_of_asapool(tmp_path):
    plan = load_plan("table-edges", datasets=["NCI1"], seeds=2, folds=10)
    absent, present = "absent", "present"
    high = [0.8 + 0.001 * k for k in range(20)]
    values = {(present, "NCI1"): high, (absent, "NCI1"): [one - 0.1 - 0.0005 * k for k, one in enumerate(high)]}
    found = overview(store_of(tmp_path, plan, values, planned=False))
    assert [(table, one.words, one.verdict) for table, one in found.claims] == [
        ("table-edges", "Soft edge weights help", "holds")
    ]
    for row, group in zip(plan.rows, found.groups, strict=True):
        assert ("table-edges", row) in group.rows
    alone = overview(store_of(tmp_path / "alone", plan, {(absent, "NCI1"): high}, planned=False))
    assert (alone.claims, alone.groups[0].rows) == ((), ())  # one row of a plan is no comparison


def test_an_ensemble_is_a_group_of_its_own(tmp_path):
    cells = (PLAN.cells[0], replace(PLAN.cells[0], row="three", ensemble=3))
    plan = Plan(**vars(PLAN) | {"cells": cells})
    values = {("asap", "NCI1"): [0.5, 0.6], ("three", "NCI1"): [0.6, 0.7]}
    one, three = overview(store_of(tmp_path / "a", plan, values)).groups
    assert (one.names, three.names) == (("table2: asap",), ("table2: three",))
    bare = overview(store_of(tmp_path / "b", plan, values, planned=False)).groups
    assert [group.names for group in bare] == [("asap, hidden 8",), ("asap, hidden 8, ensemble of 3",)]


def test_differences_pair_the_trainings_that_both_have(tmp_path):
    first = store_of(tmp_path / "a", PLAN, VALUES)
    better = {("asap", "NCI1"): [0.6, 0.8, 0.7, None, 0.8], ("topk", "NCI1"): [0.4, 0.5, 0.6]}
    deep = tuple(replace(cell, model=replace(cell.model, levels=2)) for cell in PLAN.cells)
    second = store_of(tmp_path / "b", Plan(**vars(PLAN) | {"cells": deep}), better)
    asap, topk = differences(first, second)
    assert (asap.data, asap.name, asap.test["n"]) == ("NCI1", "table2: asap", 4)
    assert asap.test["difference"] == pytest.approx((0.1 + 0.2 + 0.0 + 0.0) / 4)
    assert (topk.name, topk.test["n"]) == ("table2: topk", 2)  # the first has not finished its third
    with pytest.raises(DataError, match="have no cell in common"):
        differences(first, store_of(tmp_path / "c", plan_of(("asap",), ("DD",)), {("asap", "DD"): [0.5]}))


def test_merging_keeps_the_larger_plan(tmp_path):
    one = plan_of(("asap",))
    a = store_of(tmp_path / "a", one, {("asap", "NCI1"): [0.5, 0.6]})
    b = store_of(tmp_path / "b", PLAN, VALUES | {("asap", "NCI1"): [None, None, 0.7]})
    assert merge_folders([a, b], tmp_path / "all") == 2 + 1 + 3
    assert read_plans(tmp_path / "all") == [PLAN]
    assert merge_folders([a, b], tmp_path / "all") == 0
    asap = overview(tmp_path / "all").groups[0]
    assert [value for _, _, value in asap.scores] == [0.5, 0.6, 0.7]
    assert len(PLAN.runs(Prints(["NCI1"]))) == 12
