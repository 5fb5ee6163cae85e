"""Cross-validation: the same folds for all, the same numbers in any number of processes, and nothing is done twice."""

import json
from dataclasses import replace

import pytest

from asapool.data import load
from asapool.data.splits import authors_folds
from asapool.errors import CheckpointError, ConfigError
from asapool.models import ModelConfig
from asapool.training import Plan, TrainConfig, compare, cross_validate
from asapool.training.crossval import Fold, short_name
from asapool.training.tables import write_tables

PLAN = Plan(
    models={name: ModelConfig(method=name, hidden=4) for name in ("asap", "mlp")},
    train=TrainConfig(epochs=2, batch_size=16),
    folds=3,
    seeds=(8971, 7),
)


@pytest.fixture(scope="module")
def graphs():
    return load("synthetic:cycles?graphs=30&nodes=8")


def timeless(results):
    return [replace(result, seconds=None) for result in results]


def test_all_methods_meet_the_authors_folds(graphs):
    for method in PLAN.models:
        split = PLAN.split(graphs, Fold(method, 8971, 2))
        assert split.test.tolist() == authors_folds(graphs, 8971, 2, folds=3).test.tolist()
        assert split.val.tolist() == authors_folds(graphs, 8971, 1, folds=3).test.tolist()  # the fold before


def test_methods_take_turns_and_every_graph_is_tested_once_per_seed(graphs):
    assert [(t.method, t.fold) for t in PLAN.tasks[:4]] == [("asap", 0), ("mlp", 0), ("asap", 1), ("mlp", 1)]
    tested = [i for f in range(3) for i in PLAN.split(graphs, Fold("asap", 7, f)).test]
    assert sorted(tested) == list(range(30))


def test_processes_change_nothing_and_finished_folds_are_not_trained_again(graphs, tmp_path):
    alone = cross_validate(graphs, PLAN)
    seen = []
    together = cross_validate(graphs, PLAN, tmp_path, jobs=2, on_fold=lambda result, left: seen.append(left))
    assert timeless(alone) == timeless(together)
    assert seen == list(range(11, -1, -1))
    (tmp_path / "folds" / "asap-7-01.json").unlink()  # as if it had been stopped before this one
    seen.clear()
    again = cross_validate(graphs, PLAN, tmp_path, on_fold=lambda result, left: seen.append(result))
    assert timeless(again) == timeless(alone)
    assert [(r.method, r.seed, r.fold) for r in seen] == [("asap", 7, 1)]


def test_folds_start_from_different_weights_and_methods_from_the_same_seed(graphs, monkeypatch):
    from asapool.training import crossval

    seeds = {}
    built = crossval.build

    def watched(*args, seed, **options):
        seeds[task] = seed
        return built(*args, seed=seed, **options)

    monkeypatch.setattr(crossval, "build", watched)
    for task in PLAN.tasks:
        crossval.train_fold(graphs, PLAN, task)
    assert len(set(seeds.values())) == 6
    assert seeds[Fold("asap", 7, 1)] == seeds[Fold("mlp", 7, 1)]


def test_a_folder_of_another_plan_or_other_graphs_is_refused(graphs, tmp_path):
    small = replace(PLAN, seeds=(1,), models={"mlp": ModelConfig(method="mlp", hidden=4)})
    cross_validate(graphs, small, tmp_path)
    for other, plan in ((graphs, replace(small, folds=4)), (graphs[:29], small)):
        assert short_name(other, plan) != short_name(graphs, small)
        with pytest.raises(CheckpointError, match="other settings or graphs"):
            cross_validate(other, plan, tmp_path)


def test_a_fold_that_fails_is_one_row_with_its_reason_and_is_tried_again(graphs, tmp_path):
    plan = replace(PLAN, seeds=(1,), models={"mlp": ModelConfig(method="mlp", hidden=4)})
    broken = replace(plan, train=TrainConfig(epochs=1, lr=1e30))  # Adam jumps that far in its first step
    results = cross_validate(graphs, broken, tmp_path)
    assert all("not a number" in r.failure for r in results)
    assert not list((tmp_path / "folds").iterdir())
    answer = compare(results, 3)
    assert answer.rows[0].failed == 3
    assert answer.rows[0].mean is None
    assert len(answer.failures) == 3


def test_the_files_of_a_finished_one(graphs, tmp_path):
    results = cross_validate(graphs, PLAN, tmp_path)
    answer = compare(results, PLAN.folds)
    write_tables(tmp_path, results, answer)
    assert json.loads((tmp_path / "table.json").read_text()) == answer.to_dict()
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 1 + 12
    assert (tmp_path / "table.md").read_text().startswith("| method | mean | ± over seeds | ± over folds |")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"models": {}}, "no method"), ({"seeds": ()}, "seeds must be different"),
        ({"seeds": (1, 1)}, "seeds must be different"),
        ({"folds": 2}, "folds must be at least 3"), ({"protocol": "random"}, "protocol must be one of"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_is_refused(change, says):
    with pytest.raises(ConfigError, match=says):
        replace(PLAN, **change)


def test_more_folds_than_graphs_are_refused_before_anything_is_written(graphs, tmp_path):
    with pytest.raises(ConfigError, match="folds must lie between 3 and the 30 graphs"):
        cross_validate(graphs, replace(PLAN, folds=31), tmp_path / "new")
    assert not (tmp_path / "new").exists()
