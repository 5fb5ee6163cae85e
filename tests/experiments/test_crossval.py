"""Cross-validation: the same folds for all, the same numbers in any number of processes, and nothing is done twice."""

import csv
import json
from dataclasses import replace

import pytest

from asapool import __version__
from asapool.data import load
from asapool.data.splits import authors_folds
from asapool.errors import CheckpointError, ConfigError
from asapool.experiments import Store, Table, cross_validate, methods_plan
from asapool.experiments.crossval import short_name
from asapool.experiments.experiment import identity, read_plans
from asapool.models import ModelConfig
from asapool.training import TrainConfig

MODELS = {name: ModelConfig(method=name, hidden=4) for name in ("asap", "mlp")}
SETTINGS = {"train": TrainConfig(epochs=2, batch_size=16), "folds": 3, "seeds": (8971, 7)}


@pytest.fixture(scope="module")
def graphs():
    return load("synthetic:cycles?graphs=30&nodes=8")


@pytest.fixture(scope="module")
def plan(graphs):
    return methods_plan(graphs, MODELS, **SETTINGS)


def small(graphs, **changes):
    """One cheap method, one seed."""
    return methods_plan(graphs, {"mlp": MODELS["mlp"]}, **SETTINGS | {"seeds": (1,)} | changes)


def timeless(table):
    return [replace(cell, seconds=None) for cell in table.cells]


def runs(plan, graphs, method):
    cell = next(cell for cell in plan.cells if cell.row == method)
    return {(run.seed, run.fold): run for run in plan.runs_of(cell, {graphs.name: graphs})}


def test_all_methods_meet_the_authors_folds(graphs, plan):
    for method in MODELS:
        split = runs(plan, graphs, method)[8971, 2].split(graphs)
        assert split.test.tolist() == authors_folds(graphs, 8971, 2, folds=3).test.tolist()
        assert split.val.tolist() == authors_folds(graphs, 8971, 1, folds=3).test.tolist()  # the fold before


def test_methods_take_turns_and_every_graph_is_tested_once_per_seed(graphs, plan):
    order = [(run.model.method, run.fold) for run in plan.runs({graphs.name: graphs})]
    assert order[:4] == [("asap", 0), ("mlp", 0), ("asap", 1), ("mlp", 1)]
    tested = [i for fold in range(3) for i in runs(plan, graphs, "asap")[7, fold].split(graphs).test]
    assert sorted(tested) == list(range(30))


def test_processes_change_nothing_and_finished_folds_are_not_trained_again(graphs, tmp_path):
    plan = methods_plan(graphs, MODELS, **SETTINGS | {"seeds": (7,)})
    alone = cross_validate(graphs, plan)
    assert [(cell.row, cell.folds) for cell in alone.cells] == [("asap", 3), ("mlp", 3)]
    seen = []
    together = cross_validate(graphs, plan, tmp_path, jobs=2, on_record=seen.append)
    assert timeless(alone) == timeless(together)
    assert len(seen) == 6
    key = runs(plan, graphs, "asap")[7, 1].key
    lines = (tmp_path / "runs.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "runs.jsonl").write_text(
        "".join(line for line in lines if key not in line)
    )  # as if it had been stopped
    seen.clear()
    again = cross_validate(graphs, plan, tmp_path, on_record=seen.append)
    assert timeless(again) == timeless(alone)
    assert [(r.run.model.method, r.run.seed, r.run.fold) for r in seen] == [("asap", 7, 1)]


def test_folds_start_from_different_weights_and_methods_from_the_same_seed(graphs, plan, monkeypatch):
    from asapool.training import new_model

    seeds, built = [], new_model.build

    def watched(model, *args, seed, **options):
        seeds.append((model.method, seed))
        return built(model, *args, seed=seed, **options)

    monkeypatch.setattr(new_model, "build", watched)
    cross_validate(graphs, plan)
    asap, mlp = ([seed for method, seed in seeds if method == name] for name in ("asap", "mlp"))
    assert asap == mlp
    assert len(set(asap)) == 6


def test_a_folder_of_another_plan_or_other_graphs_is_refused(graphs, tmp_path):
    first = small(graphs)
    cross_validate(graphs, first, tmp_path)
    for other, plan in ((graphs, small(graphs, folds=4)), (graphs[:29], first)):
        assert short_name(other, plan) != short_name(graphs, first)
        with pytest.raises(CheckpointError, match="other settings or graphs"):
            cross_validate(other, plan, tmp_path)


def test_a_fold_that_fails_is_counted_with_its_reason_and_is_tried_again(graphs, tmp_path):
    broken = small(graphs, train=TrainConfig(epochs=1, lr=1e30))  # Adam jumps that far in its first step
    seen = []
    [cell] = cross_validate(graphs, broken, tmp_path, on_record=seen.append).cells
    assert all("not a number" in record.failure for record in seen)
    assert [record.run.fold for record in seen] == [0, 1, 2, 0, 1, 2]  # each is tried a second time at the end
    assert (cell.failed, cell.folds, cell.mean) == (3, 0, None)
    cross_validate(graphs, broken, tmp_path)
    assert [record.attempts for record in Store.read(tmp_path).values()] == [4, 4, 4]


def test_the_files_of_a_finished_one(graphs, plan, tmp_path):
    table = cross_validate(graphs, plan, tmp_path)
    assert Table.from_dict(json.loads((tmp_path / "cv.json").read_text())) == table
    lines = list(csv.DictReader((tmp_path / "results.csv").read_text().splitlines()))
    assert len(lines) == 12
    assert lines[0]["version"] == __version__
    text = (tmp_path / "cv.md").read_text()
    assert "| method | mean | ± over seeds | ± over folds |" in text
    assert "| majority class | 50.00 |" in text
    rows = list(csv.DictReader((tmp_path / "graphs.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == list(graphs.ids)
    assert [row["class"] for row in rows] == [graphs.class_names[c] for c in graphs.y]
    assert read_plans(tmp_path) == [plan]


def as_0_1_0(folder, graphs, plan):
    """Turn a folder into one that asapool 0.1.0 left behind: plan.json, no table files, lines without checksums."""
    facts = {graphs.name: {"graphs": len(graphs), "fingerprint": graphs.fingerprint}}
    for path in folder.glob("cv.*"):
        path.unlink()
    (folder / "plan.json").write_text(json.dumps(identity(plan, facts)))
    lines = []
    for line in (folder / "runs.jsonl").read_text().splitlines():
        plain = json.loads(line)
        plain.pop("checksum")
        plain["version"], plain["machine"]["asapool"] = 1, "0.1.0"
        lines.append(json.dumps(plain))
    (folder / "runs.jsonl").write_text("\n".join(lines) + "\n")
    return lines


def test_a_folder_of_0_1_0_resumes(graphs, tmp_path):
    plan = small(graphs)
    whole = cross_validate(graphs, plan, tmp_path)
    lines = as_0_1_0(tmp_path, graphs, plan)
    assert read_plans(tmp_path)[0].cells[0].model == plan.cells[0].model
    (tmp_path / "runs.jsonl").write_text("\n".join(lines[:2]) + "\n")
    seen = []
    again = cross_validate(graphs, plan, tmp_path, on_record=seen.append, mix_versions=True)
    assert len(seen) == 1
    assert timeless(again) == timeless(whole)
    with pytest.raises(CheckpointError, match="other settings or graphs"):
        cross_validate(graphs, small(graphs, folds=4), tmp_path)


def test_versions_are_not_mixed_unless_asked_for(graphs, tmp_path, monkeypatch):
    from asapool.experiments import experiment

    plan = small(graphs)
    cross_validate(graphs, plan, tmp_path)
    lines = (tmp_path / "runs.jsonl").read_text().splitlines(keepends=True)
    monkeypatch.setattr(experiment, "__version__", "99.0")
    assert cross_validate(graphs, plan, tmp_path).versions == (__version__,)  # nothing is left to train
    (tmp_path / "runs.jsonl").write_text("".join(lines[:2]))
    with pytest.raises(CheckpointError, match=f"2 of its training runs were made by asapool {__version__}, but"):
        cross_validate(graphs, plan, tmp_path)
    assert (tmp_path / "runs.jsonl").read_text() == "".join(lines[:2])
    assert cross_validate(graphs, plan, tmp_path, mix_versions=True).cells[0].folds == 3


def test_a_name_that_no_folder_can_have_is_made_one(graphs):
    for name in ("n" * 300, "a\0b", "../up", "[/b]"):
        odd = graphs.renamed(name)
        folder = short_name(odd, small(odd))
        assert len(folder.encode()) < 200
        assert not set(folder) & set("\0/")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seeds": ()}, "seeds must be different"), ({"seeds": (1, 1)}, "seeds must be different"),
        ({"folds": 2}, "folds must be at least 3"), ({"protocol": "random"}, "protocol must be one of"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_is_refused(graphs, change, says):
    with pytest.raises(ConfigError, match=says):
        small(graphs, **change)


def test_a_plan_without_a_method_or_with_two_data_sets_is_refused(graphs, tmp_path):
    with pytest.raises(ConfigError, match="nothing to train"):
        methods_plan(graphs, {})
    cells = (*small(graphs).cells, *small(graphs.renamed("others")).cells)
    with pytest.raises(ConfigError, match="a cross-validation has one data set"):
        cross_validate(graphs, replace(small(graphs), cells=cells), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_more_folds_than_graphs_are_refused_before_anything_is_written(graphs, tmp_path):
    with pytest.raises(ConfigError, match="folds must lie between 3 and the 30 graphs"):
        cross_validate(graphs, small(graphs, folds=31), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_folder_of_a_run_is_refused_and_stays_as_it_is(graphs, tmp_path):
    from asapool.training import resolve, start

    chosen, few = resolve({"data": {"source": "synthetic:cycles?graphs=30&nodes=8"}, "train": {"epochs": 1}})
    start(chosen, few, tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(CheckpointError, match=r"run: contains a run of asapool train.* Choose another with --out"):
        cross_validate(graphs, small(graphs), tmp_path / "run")
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    own = tmp_path / "own"  # a folder with settings for a cross-validation is no run
    own.mkdir()
    (own / "config.toml").write_text("")
    assert cross_validate(graphs, small(graphs), own).cells[0].folds == 3
