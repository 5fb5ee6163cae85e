"""Cross-validations of measured values and of yes/no tasks: the score, its direction, the trivial row, the folds."""

import csv

import numpy as np
import pytest

from asapool.data import load
from asapool.data.splits import scaffold_folds
from asapool.data.targets import Target
from asapool.errors import DataError
from asapool.experiments.columns import grid
from asapool.experiments.crossval import cross_validate, methods_plan
from asapool.experiments.rendering import notes
from asapool.experiments.tables import Table
from asapool.models import ModelConfig
from asapool.models.counting import CountForest
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
