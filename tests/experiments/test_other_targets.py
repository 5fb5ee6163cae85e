"""Cross-validations of measured values and of yes/no tasks: the score, its direction, the trivial row, the folds."""

import csv
import json

import numpy as np
import pytest

from asapool.data import load
from asapool.data.splits import scaffold_folds
from asapool.data.targets import Target
from asapool.errors import DataError
from asapool.experiments.baselines import _majority
from asapool.experiments.columns import grid, task_grid
from asapool.experiments.crossval import cross_validate, methods_plan
from asapool.experiments.rendering import notes
from asapool.experiments.tables import Table
from asapool.models import ModelConfig
from asapool.models.counting import CountForest
from asapool.reports import report_page
from asapool.training import TrainConfig

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O", "CCCC", "c1ccncc1", "CCS"] * 4


@pytest.fixture(scope="module")
def measured():
    graphs = load(SMILES)
    sizes = np.diff(graphs.ptr).astype(np.float64)
    y = np.stack([sizes + 0.1 * np.sin(np.arange(40))], axis=1)
    return graphs.with_fields(y=y, target=Target(kind="regression", names=("size",)), class_names=(), name="sizes")


@pytest.fixture(scope="module")
def table(measured, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cv")
    models = {name: ModelConfig(method=name) for name in ("majority", "histogram")}
    plan = methods_plan(measured, models, train=TrainConfig(epochs=1), folds=4, protocol="stratified")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CountForest, "trees", 5)
        return cross_validate(measured, plan, folder), folder


def test_the_table_shows_rmse_in_the_unit_of_the_values(table):
    made, folder = table
    assert made.headline.name == "rmse"
    trivial, best = made.cell("trivial baseline", "sizes"), made.cell("histogram", "sizes")
    assert made.cell("majority", "sizes").mean == pytest.approx(trivial.mean)
    assert best.mean < 0.5 < trivial.mean < 3
    assert best.scores["r2"] > 0.8
    assert Table.from_dict(made.to_dict()) == made
    assert "Test RMSE, mean over" in made.to_markdown()
    head, _ = grid(made)
    assert {"MAE", "R²"} <= set(head)
    assert "ROC AUC" not in head
    rows = list(csv.DictReader((folder / "results.csv").read_text().splitlines()))
    assert float(rows[0]["test_rmse"]) > 0
    assert next(csv.reader([(folder / "graphs.csv").read_text().splitlines()[0]])) == [
        "graph", "id", "measured(size)", "text"
    ]  # fmt: skip


def test_the_lowest_error_leads_and_a_worthless_row_is_named(table):
    made, _ = table
    first, second = notes(made)
    assert first.startswith("histogram is ahead of every other row")
    assert second == "Not significantly better than the trivial baseline: majority (corrected paired t-test, p ≥ 0.05)."


def test_the_trivial_row_has_every_score_and_rows_are_tested_against_it(table):
    made, folder = table
    trivial, best = made.cell("trivial baseline", "sizes"), made.cell("histogram", "sizes")
    assert trivial.scores["mae"] > best.scores["mae"]
    assert trivial.scores["r2"] <= 0  # the mean of the training graphs is no better than that of the test graphs
    assert trivial.scores["pearson"] is None
    assert best.undefined is None
    constant = made.cell("majority", "sizes")
    assert (constant.scores["pearson"], list(constant.undefined)) == (None, ["pearson", "spearman"])
    assert constant.undefined["pearson"] == "the model predicts the same value of 'size' for all graphs"
    test = best.against_trivial
    assert test["difference"] == pytest.approx(best.mean - trivial.mean)
    assert test["p_corrected_t"] < 0.05
    stored = {cell["row"]: cell for cell in json.loads((folder / "cv.json").read_text())["cells"]}
    assert stored["histogram"]["against_trivial"] == test
    rows = {row["row"]: row for row in csv.DictReader((folder / "cv.csv").read_text().splitlines())}
    assert float(rows["histogram"]["p_trivial"]) == pytest.approx(test["p_corrected_t"], rel=1e-2)
    assert float(rows["histogram"]["minus_trivial"]) < 0


def test_means_over_folds_have_intervals(table):
    made, _ = table
    best = made.cell("histogram", "sizes")
    assert set(best.intervals) == {"rmse", "mae", "r2", "pearson", "spearman"}
    low, high = best.intervals["rmse"]
    assert 0 < low < best.mean < high < made.cell("trivial baseline", "sizes").mean
    assert f"{low:.2f} to {high:.2f}" in made.to_markdown()
    assert best.tasks is None  # a single task


@pytest.fixture(scope="module")
def two_tasks(measured, tmp_path_factory):
    rings = np.array([float("1" in text) for text in SMILES])
    oxygen = np.array([float("O" in text) for text in SMILES])
    oxygen[::7] = np.nan
    target = Target(kind="multilabel", names=("ring", "oxygen"), classes=("0", "1"))
    graphs = measured.with_fields(y=np.stack([rings, oxygen], axis=1), target=target, class_names=(), name="two")
    models = {name: ModelConfig(method=name) for name in ("majority", "histogram")}
    plan = methods_plan(graphs, models, train=TrainConfig(epochs=1), folds=4, protocol="stratified")
    folder = tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CountForest, "trees", 5)
        return cross_validate(graphs, plan, folder), folder


def test_every_task_has_its_scores_intervals_and_trivial_score(two_tasks):
    made, folder = two_tasks
    cell, trivial = made.cell("histogram", "two"), made.cell("trivial baseline", "two")
    assert set(cell.tasks) == {"ring", "oxygen"}
    low, high = cell.tasks["ring"]["intervals"]["roc_auc"]
    assert low <= cell.tasks["ring"]["roc_auc"] <= high
    assert np.mean([cell.tasks[name]["roc_auc"] for name in cell.tasks]) == pytest.approx(cell.mean)
    assert [scores["roc_auc"] for scores in trivial.tasks.values()] == [50.0, 50.0]
    head, rows = task_grid(made)
    assert head == ["task", "majority", "histogram", "trivial baseline"]
    assert [row[0] for row in rows] == ["ring", "oxygen"]
    assert rows[0][3] == "50.00"
    assert rows[0][2].endswith(f"({low:.2f} to {high:.2f})")
    assert Table.from_dict(made.to_dict()) == made
    assert "| ring |" in made.to_markdown()
    page = report_page(folder)
    assert "Scores of every task" in page
    assert f"({low:.2f} to {high:.2f})" in page  # those of cv.json, not drawn again


def test_always_predicting_the_most_frequent_class_by_hand():
    # class 0 has 5 of 8 graphs; it is right for 3 of 4 and for 2 of 4
    scores = [fold for _, _, fold in _majority([(1, 0, np.array([3, 1])), (1, 1, np.array([2, 2]))])]
    assert [one["accuracy"] for one in scores] == [0.75, 0.5]
    assert [one["balanced_accuracy"] for one in scores] == [0.5, 0.5]
    assert [one["roc_auc"] for one in scores] == [0.5, 0.5]
    assert [one["pr_auc"] for one in scores] == [0.25, 0.5]  # the share of class 1
    assert [one["mcc"] for one in scores] == [0, 0]
    assert [one["f1"] for one in scores] == [0, 0]


def test_scaffold_folds_keep_scaffolds_together_and_cover_every_graph(measured):
    seen = []
    for fold in range(3):
        split = scaffold_folds(measured, seed=1, fold=fold, folds=3)
        seen += split.test.tolist()
        rings = {SMILES[i] for i in split.test} & {SMILES[i] for i in (*split.train, *split.val)}
        assert not {text for text in rings if "1" in text}
        assert len(split.val) > 0
    assert sorted(seen) == list(range(40))
    with pytest.raises(DataError, match="4 scaffolds are too few for 5 folds"):
        scaffold_folds(measured, seed=1, fold=0, folds=5)
