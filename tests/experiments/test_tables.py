"""Tables worked out by hand: means, the two deviations, the paper beside them, the paired test, what is missing."""

import csv
import io
import json
import math
from dataclasses import replace

import pytest

from asapool.errors import CheckpointError, DataError
from asapool.experiments import columns
from asapool.experiments.plan import load_plan
from asapool.experiments.rendering import to_csv, to_dict, to_markdown
from asapool.experiments.table_text import write
from asapool.experiments.tables import Table, make_table
from asapool.training.config import TrainConfig
from tests.experiments.made_up import Prints, plan_of, records_of, scores

ASAP = [0.70, 0.72, 0.74, 0.74, 0.76, 0.78]  # seed 1: 72 ± 2, seed 2: 76 ± 2
TOPK = [0.65, 0.67, 0.69, 0.69, 0.71, 0.67]  # 5 below, but 11 in the last fold


def small(values=None, **settings):
    plan = plan_of(("asap", "topk"), **settings)
    records = records_of(plan, values or {("asap", "NCI1"): ASAP, ("topk", "NCI1"): TOPK})
    return make_table(plan, records, Prints(plan.columns))


def test_mean_and_both_deviations_by_hand():
    cell = small().cell("asap", "NCI1")
    assert cell.mean == pytest.approx(74)
    assert cell.over_seeds == pytest.approx(4 / math.sqrt(2), abs=1e-6)  # of 72 and 76
    assert cell.over_folds == pytest.approx(2)
    assert (cell.seeds, cell.folds, cell.expected, cell.failed, cell.finished) == (2, 6, 6, 0, True)
    assert cell.values == ((1, 0, 70), (1, 1, 72), (1, 2, 74), (2, 0, 74), (2, 1, 76), (2, 2, 78))


def test_the_paper_s_band_decides_the_verdict():
    table = small()
    cell = table.cell("asap", "NCI1")  # the paper: 71.48 ± 0.42
    assert (str(cell.paper), cell.difference, cell.verdict) == ("71.48 ± 0.42", pytest.approx(2.52), "outside")
    cell = table.cell("topk", "NCI1")  # the paper: 67.02 ± 2.25; ours 68
    assert (cell.difference, cell.verdict) == (pytest.approx(0.98), "within")
    edge = small({("asap", "NCI1"): [0.719] * 6}).cell("asap", "NCI1")
    assert edge.verdict == "within"  # 71.90 is 71.48 + 0.42
    assert small({("asap", "NCI1"): [0.7191] * 6}).cell("asap", "NCI1").verdict == "outside"


def test_other_data_get_no_verdict():
    cell = small({("asap", "Mutagenicity"): ASAP}, columns=("Mutagenicity",)).cell("asap", "Mutagenicity")
    assert str(cell.paper) == "FRANKENSTEIN 66.26 ± 0.47 (other data)"
    assert (cell.difference, cell.verdict) == (None, None)


def test_rows_are_tested_against_asap_on_the_same_folds():
    table = small()
    assert table.reference == "asap"
    assert table.cell("asap", "NCI1").against is None
    test = table.cell("topk", "NCI1").against
    assert (test["n"], test["difference"]) == (6, pytest.approx(-6))
    # d = 0.05 five times and 0.11: variance 0.0006; n_test/n_train = 1 with three folds
    assert test["t"] == pytest.approx(-0.06 / math.sqrt((1 / 6 + 1) * 0.0006))
    assert test["margin"] == pytest.approx(100 * 2.5706 * math.sqrt((1 / 6 + 1) * 0.0006), rel=1e-4)  # in percent
    assert 0.05 < test["p_corrected_t"] < 0.1
    assert test["p_holm"] == test["p_corrected_t"]  # one test is not adjusted


def test_a_plan_may_name_the_row_that_the_others_are_tested_against(tmp_path):
    table = small(reference="topk")
    assert table.reference == "topk"
    assert table.cell("topk", "NCI1").against is None
    assert table.cell("asap", "NCI1").against["difference"] == pytest.approx(6)
    rows = "".join(f'[[row]]\nname = "{row}"\n' for row in ("asap", "topk"))
    (tmp_path / "own.toml").write_text(f'[plan]\nreference = "topk"\n[[data]]\nname = "NCI1"\n{rows}')
    assert load_plan(tmp_path / "own.toml").reference == "topk"
    left = load_plan(tmp_path / "own.toml", methods=["asap"])
    assert make_table(left, {}, Prints(left.columns)).reference == "asap"


def test_a_validation_table_has_no_tests():
    table = small(name="table-edges", metric="validation")
    assert table.reference is None
    assert table.cell("topk", "NCI1").against is None
    assert table.cell("asap", "NCI1").mean == pytest.approx(74)  # the validation accuracies, not the test's one half


def test_unfinished_and_failed_trainings_are_marked():
    values = {("asap", "NCI1"): [0.7, 0.8, None, None, None, None], ("topk", "NCI1"): [*TOPK[:3], "no memory"]}
    table = small(values)
    part, three = table.cell("asap", "NCI1"), table.cell("topk", "NCI1")
    assert (part.folds, part.seeds, part.over_seeds, part.verdict) == (2, 1, None, None)
    assert part.difference == pytest.approx(75 - 71.48)
    assert (three.folds, three.failed, three.verdict) == (3, 1, "within")  # one seed is whole: 67.00
    reported = to_markdown(table)
    assert "75.00\\*" in reported
    assert "1 × 2 of 2 × 3" in reported
    assert "1 × 3 of 2 × 3, 1 failed" in reported
    assert "not all training runs of the cell are done" in reported
    assert "not all training runs" not in to_markdown(small())
    published = to_markdown(table, marks=False)  # two of three folds, and one whole seed
    assert "| asap | 75.00\\* |" in published
    assert "| topk | 67.00 |" in published
    assert "mean over fewer than 3 folds" in published
    assert "fewer than" not in to_markdown(small(), marks=False)


def test_the_verdict_rests_on_whole_seeds_and_says_so():
    """The first seed of topk is 67.00, inside 67.02 ± 2.25; a first fold of 95 in the second would bring 74.00."""
    table = small({("topk", "NCI1"): [*TOPK[:3], 0.95]})
    cell = table.cell("topk", "NCI1")
    assert (cell.mean, cell.over_seeds) == (pytest.approx(74), None)
    assert (cell.difference, cell.verdict) == (pytest.approx(-0.02), "within")
    assert "| 67.02 ± 2.25 | −0.02 | within (1 complete seed) |" in to_markdown(table)
    assert "complete seed" not in to_markdown(small())


def test_an_empty_table_is_all_dashes():
    plan = plan_of(("asap", "topk"))
    table = make_table(plan, {}, Prints(plan.columns))
    assert table.cell("asap", "NCI1").mean is None
    assert "| asap | – |" in to_markdown(table)
    assert "0 of 2 × 3" in to_markdown(table)


def test_without_graphs_the_records_say_which_graphs_they_are_of():
    plan = plan_of(("asap",), columns=("NCI1", "DD"))
    records = records_of(plan, {("asap", "NCI1"): ASAP})
    assert make_table(plan, records).cell("asap", "NCI1").mean == pytest.approx(74)
    assert make_table(plan, records).cell("asap", "DD").mean is None
    first = next(iter(records.values()))
    other = replace(first, run=replace(first.run, fingerprint="another"))
    with pytest.raises(DataError, match="two versions"):
        make_table(plan, records | {other.run.key: other})


def test_records_of_other_settings_are_not_counted():
    plan = plan_of(("asap",))
    other = plan_of(("asap", "topk"))
    records = records_of(other, {("topk", "NCI1"): TOPK})
    assert make_table(plan, records, Prints(plan.columns)).cell("asap", "NCI1").folds == 0


def test_the_order_of_the_records_does_not_matter():
    plan = plan_of(("asap", "topk"))
    records = records_of(plan, {("asap", "NCI1"): ASAP, ("topk", "NCI1"): TOPK})
    turned = dict(reversed(records.items()))
    a, b = (make_table(plan, some, Prints(plan.columns)) for some in (records, turned))
    assert json.dumps(to_dict(a)) == json.dumps(to_dict(b))
    assert to_markdown(a) == to_markdown(b)


def test_the_best_on_validation_is_chosen_and_judged_on_test():
    plan = plan_of(("narrow", "wide", "equal"), name="table-hyper", metric="validation", choose=True)
    values = {("narrow", "NCI1"): [0.6] * 6, ("wide", "NCI1"): ASAP, ("equal", "NCI1"): ASAP}
    table = make_table(plan, records_of(plan, values), Prints(plan.columns))
    assert [cell.chosen for cell in table.cells] == [False, True, False]  # the first of equals
    assert table.cell("wide", "NCI1").test == pytest.approx(50)
    assert table.cell("narrow", "NCI1").test is None
    assert "**74.00 ± 2.83**" in to_markdown(table)
    assert "NCI1: wide has the best validation accuracy, 74.00; its test accuracy is 50.00 ± 0.00" in to_markdown(table)
    assert "the authors chose hidden 128, lr 0.01, dropout 0.0" in to_markdown(table)
    unfinished = make_table(plan, records_of(plan, values | {("narrow", "NCI1"): [0.6]}), Prints(plan.columns))
    assert not any(cell.chosen for cell in unfinished.cells)
    assert "nothing is chosen before all its training runs are done" in to_markdown(unfinished)


def test_a_table_of_test_accuracies_chooses_by_validation_too():
    plan = plan_of(("lucky", "good"), name="mine", choose=True)
    records = records_of(plan, {("lucky", "NCI1"): [0.9] * 6, ("good", "NCI1"): [0.7] * 6})
    for run in plan.runs_of(plan.cells[1], Prints(plan.columns)):
        records[run.key] = replace(records[run.key], validation=scores(0.6))  # those of lucky are one half
    table = make_table(plan, records, Prints(plan.columns))
    assert [cell.chosen for cell in table.cells] == [False, True]
    assert (table.cell("good", "NCI1").validation, table.cell("lucky", "NCI1").validation) == (
        pytest.approx(60),
        pytest.approx(50),
    )
    assert "NCI1: good has the best validation accuracy, 60.00; its test accuracy is 70.00 ± 0.00" in to_markdown(table)
    chosen = list(csv.DictReader(io.StringIO(to_csv(table))))[1]
    assert (chosen["chosen"], chosen["validation"], chosen["test"]) == ("True", "60.00", "70.00")
    assert Table.from_dict(json.loads(json.dumps(to_dict(table)))) == table


def test_the_three_files_say_the_same(tmp_path):
    table = small()
    names = [path.name for path in write(table, tmp_path / "out")]
    assert names == ["table2.md", "table2.csv", "table2.json"]
    again = Table.from_dict(json.loads((tmp_path / "out" / "table2.json").read_text()))
    assert again == table
    lines = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert lines[0] | {"row": "asap", "mean": "74.00", "over_seeds": "2.83", "paper": "71.48"} == lines[0]
    assert (
        lines[1] | {"row": "topk", "verdict": "within", "minus_reference": "-6.00", "minus_reference_margin": "6.80"}
        == lines[1]
    )
    assert "| asap | NCI1 | 74.00 | 2.83 | 2.00 | 2 × 3 | 71.48 ± 0.42 | +2.52 | outside |" in to_markdown(table)
    assert "| topk | NCI1 | 68.00 | 1.41 |" in to_markdown(table)  # seeds 67 and 69


def test_what_is_no_table_is_refused():
    with pytest.raises(CheckpointError, match="not a table of asapool"):
        Table.from_dict({"kind": "table", "cells": [{}]})


def test_signs_that_would_break_a_table_are_harmless():
    table = small({("a|<b>", "NCI1"): ASAP}, cells=plan_of(("a|<b>",)).cells, name="mine")
    assert "| a\\|&lt;b> | 74.00 ± 2.83 |" in to_markdown(table)


def test_another_number_of_epochs_has_no_verdict_and_the_table_says_why():
    plan = plan_of(("asap", "topk"))
    short = replace(plan, cells=tuple(replace(cell, train=TrainConfig(epochs=2)) for cell in plan.cells))
    table = make_table(short, records_of(short, {("asap", "NCI1"): ASAP, ("topk", "NCI1"): TOPK}), Prints(plan.columns))
    assert [cell.verdict for cell in table.cells] == [None, None]
    assert table.cell("asap", "NCI1").difference == pytest.approx(2.52)
    text = to_markdown(table)
    assert "Trained for 2 epochs instead of the paper's 100, so there is no verdict on its numbers." in text
    assert "The paper's claims about this table" not in text
    assert table.to_dict()["claims"] == []
    assert "there is no verdict" not in to_markdown(small())


def classes(record, *counts):
    """The record with a test part of so many graphs of each class."""
    confusion = [[count if k == 0 else 0 for k in range(len(counts))] for count in counts]
    return replace(record, test=record.test | {"confusion": confusion})


def test_the_majority_class_is_a_row_of_its_own():
    """Class 0 has 6 of 10, 5 of 10 and 7 of 10 graphs of the folds of seed 1: 60 ± 10."""
    plan = plan_of(("asap", "topk"), comparison=True, name="cv", seeds=(1,))
    records = records_of(plan, {("asap", "NCI1"): ASAP[:3], ("topk", "NCI1"): TOPK[:3]})
    counts = {0: (6, 4), 1: (5, 5), 2: (7, 3)}
    records = {key: classes(record, *counts[record.run.fold]) for key, record in records.items()}
    table = make_table(plan, records, Prints(plan.columns))
    [baseline] = table.baselines
    assert (baseline.row, baseline.mean, baseline.over_folds) == (
        "majority class",
        pytest.approx(60),
        pytest.approx(10),
    )
    assert "| majority class | 60.00 | – | 10.00 | 1 × 3 |" in to_markdown(table)
    assert list(csv.DictReader(io.StringIO(to_csv(table))))[-1]["row"] == "majority class"
    assert Table.from_dict(json.loads(json.dumps(to_dict(table)))) == table
    without = {
        key: replace(r, test={k: v for k, v in r.test.items() if k != "confusion"}) for key, r in records.items()
    }
    assert make_table(plan, without, Prints(plan.columns)).baselines == ()


def test_a_new_column_appears_in_markdown_csv_and_the_terminal(monkeypatch):
    spread = columns.Column("spread", "spread", lambda c, t: len(c.values), lambda c, t: f"{len(c.values)} folds")
    monkeypatch.setattr(columns, "COLUMNS", (*columns.COLUMNS, spread))
    table = small()
    assert "6 folds" in to_markdown(table)
    assert next(csv.DictReader(io.StringIO(to_csv(table))))["spread"] == "6"
    assert columns.grid(table, terminal=True)[1][0][-1] == "6 folds"


def test_a_title_is_text_in_markdown():
    table = small(title="<script>alert(1)</script>", name="mine")
    assert "<script>" not in to_markdown(table)
    assert "# &lt;script>alert(1)" in to_markdown(table)


def test_records_of_two_versions_are_named():
    plan = plan_of(("asap",))
    records = records_of(plan, {("asap", "NCI1"): ASAP})
    first = next(iter(records))
    records[first] = replace(records[first], machine={"asapool": "9.9"})
    table = make_table(plan, records, Prints(plan.columns))
    assert table.versions == ("0.1.0", "9.9")  # records without a version are of 0.1.0
    assert "The training runs were made by asapool 0.1.0, 9.9." in to_markdown(table)
