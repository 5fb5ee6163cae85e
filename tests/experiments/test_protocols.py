"""Published splits: their file, their place in a Run's identity, and training runs on them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from asapool.errors import CheckpointError, ConfigError, DataError
from asapool.experiments import cross_validate, methods_plan
from asapool.experiments.execute import execute
from asapool.experiments.plan import Plan, load_graphs, load_plan
from asapool.experiments.protocols import PROTOCOLS, SplitFile
from asapool.experiments.store import Store
from asapool.experiments.tables import make_table
from asapool.models import ModelConfig
from tests.experiments.small import SOURCE, Here, graphs_of, plan_of

TRAIN, VAL = list(range(20)), list(range(20, 30))
COMPARISON = [  # the form of gnn-comparison
    {"test": [30 + k, 39 - k], "model_selection": [{"train": TRAIN, "validation": VAL}]} for k in range(4)
]


def written(path, content):
    path.write_text(json.dumps(content))
    return path


def test_both_forms_of_a_file_are_the_same_splits(tmp_path):
    plain = [{"val": VAL[::-1], "train": TRAIN, "test": fold["test"]} for fold in COMPARISON]
    first, second = (SplitFile.read(written(tmp_path / f"{k}.json", c)) for k, c in enumerate((COMPARISON, plain)))
    assert first.digest == second.digest
    assert first.folds[1] == {"train": TRAIN, "val": VAL, "test": [31, 38]}
    other = SplitFile.read(written(tmp_path / "c.json", COMPARISON[:3]))
    assert other.digest != first.digest


def test_a_protocol_is_a_function_of_graphs_seed_fold_folds_and_options(tmp_path):
    [graphs], file = graphs_of().values(), SplitFile.read(written(tmp_path / "a.json", COMPARISON))
    for name, protocol in PROTOCOLS.items():
        if name == "scaffold":  # for molecules only: tests/experiments/test_other_targets.py
            continue
        split = protocol.split(graphs, 7, 2, 4, {"splits": file})
        assert split.fingerprint == graphs.fingerprint, name
    assert split.test.tolist() == [32, 37]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "has no folds"), ([3], "fold 0: expected an object with train, validation and test"),
        ([{"train": [1], "test": [2]}], "val must be a list"),
        ([{"train": [1.5], "val": [2], "test": [3]}], "train must"),
        ([{"train": [], "val": [2], "test": [3]}], "train is empty"),
        ([{"train": [-1], "val": [2], "test": [3]}], "train"),
        ([{"test": [1], "model_selection": []}], "one entry of model_selection"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_split_file_is_refused(tmp_path, content, says):
    with pytest.raises(DataError, match=says):
        SplitFile.read(written(tmp_path / "bad.json", content))
    (tmp_path / "bad.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match="is not JSON"):
        SplitFile.read(tmp_path / "bad.json")
    with pytest.raises(DataError, match="cannot be read"):
        SplitFile.read(tmp_path / "missing.json")


PLAN = """
plan = {{ name = "published", protocol = "splits", seeds = [1, 2] }}
model = {{ method = "mlp", hidden = 4 }}
train = {{ epochs = 1 }}
[[data]]
name = "cycles"
source = "{source}"
splits = "cycles.json"
"""


def test_a_plan_trains_on_published_splits(tmp_path):
    written(tmp_path / "cycles.json", COMPARISON)
    (tmp_path / "plan.toml").write_text(PLAN.format(source=SOURCE))
    plan = load_plan(tmp_path / "plan.toml")
    assert plan.folds == 4
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    graphs = load_graphs([plan])
    runs = plan.runs(graphs)
    assert {run.splits for run in runs} == {plan.cells[0].splits.digest}
    with Store.open(tmp_path / "out") as store:
        records = execute(plan, graphs, store, Here())
        assert records[0].test["accuracy"] is not None
        assert make_table(plan, store.records()).cells[0].folds == 8
    kept = list(Store.read(tmp_path / "out").values())
    assert [r.probabilities["graphs"] for r in kept[:4]] == [[30, 39], [31, 38], [32, 37], [33, 36]]
    again = Plan.from_dict(plan.to_dict())  # what was kept is path and digest: a changed file is noticed
    written(tmp_path / "cycles.json", COMPARISON[::-1])
    with pytest.raises(CheckpointError, match="its splits have changed since the experiment started"):
        runs[0].split(graphs["cycles"], again.cells[0].splits)
    assert load_plan(tmp_path / "plan.toml", smoke=True).protocol == "authors"


def test_splits_that_do_not_fit_are_refused_before_the_first_training(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.format(source=SOURCE))
    fold = {"train": [0, 1], "val": [2], "test": [40]}
    for bad, says in (
        (fold, "names graph 40, but graphs are 0 to 39"),
        ({**fold, "test": [1]}, "graph 1 is listed twice"),
    ):
        written(tmp_path / "cycles.json", [COMPARISON[0], bad])
        with pytest.raises(DataError, match=f"fold 1: split: .*{says}"):
            load_graphs([load_plan(tmp_path / "plan.toml")])
    file = SplitFile.read(written(tmp_path / "cycles.json", COMPARISON))
    with pytest.raises(ConfigError, match="takes no split file"):
        plan_of(cells=tuple(replace(cell, splits=file) for cell in plan_of().cells))
    with pytest.raises(ConfigError, match="takes a split file"):
        plan_of(protocol="splits")
    run = plan_of().runs(graphs_of())[0]
    with pytest.raises(ConfigError, match="protocol 'authors' takes no split file, got"):
        replace(run, splits=file.digest)
    with pytest.raises(DataError, match="needs the split file with digest"):
        replace(run, protocol="splits", splits="0" * 16).split(graphs_of()["cycles"], file)


def test_a_split_file_of_a_smaller_set_is_refused(tmp_path):
    """All its numbers exist here too, so that only the graphs it never names show the mistake."""
    folds = [{"train": TRAIN, "val": VAL, "test": [*range(30, 38)][k::2]} for k in range(2)]
    written(tmp_path / "cycles.json", folds)
    (tmp_path / "plan.toml").write_text(PLAN.format(source=SOURCE))
    with pytest.raises(DataError, match="names graphs 0 to 37, but cycles has 40"):
        load_graphs([load_plan(tmp_path / "plan.toml")])
    file = SplitFile.read(tmp_path / "cycles.json")
    [graphs] = graphs_of().values()
    with pytest.raises(DataError, match="Give the split file that was made for cycles"):
        cross_validate(graphs, methods_plan(graphs, {"mlp": ModelConfig(method="mlp")}, splits=file), tmp_path / "new")
    assert not (tmp_path / "new").exists()
    unlabelled = replace(graphs, y=np.where(np.arange(40) < 38, graphs.y, -1))
    file.check(unlabelled)  # the last two cannot be in any part
    chosen = [*folds[:1], {**folds[1], "test": [39]}]
    SplitFile.read(written(tmp_path / "chosen.json", chosen)).check(graphs)  # leaves graphs out, but not the last ones


def test_fingerprints_of_graphs_that_are_no_molecules_are_refused_when_a_plan_is_loaded(tmp_path):
    written(tmp_path / "cycles.json", COMPARISON)
    (tmp_path / "plan.toml").write_text(PLAN.format(source=SOURCE).replace('"mlp"', '"ecfp"'))
    with pytest.raises(DataError, match="ECFP needs molecules"):
        load_graphs([load_plan(tmp_path / "plan.toml")])
