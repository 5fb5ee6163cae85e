"""A Run is plain data with a name of its own; carrying it out gives the numbers of the cross-validation."""

import json
from dataclasses import replace

import numpy as np
import pytest

from asapool.data.splits import authors_folds
from asapool.errors import ConfigError, DataError
from asapool.experiments.fold import run
from asapool.experiments.record import RunRecord, machine, with_checksum
from asapool.experiments.run import Run
from asapool.models import ModelConfig, build
from asapool.training import TrainConfig, fit, predict, score
from tests.experiments.small import TRAIN, graphs_of

GRAPHS = graphs_of()["cycles"]
RUN = Run(
    data="cycles", fingerprint=GRAPHS.fingerprint, model=ModelConfig(hidden=4), train=TRAIN, seed=7, fold=1, folds=3
)


@pytest.fixture(scope="module")
def record():
    return run(GRAPHS, RUN)


def test_the_key_follows_from_the_content_and_from_nothing_else():
    assert len(RUN.key) == 16
    assert Run.from_dict(json.loads(json.dumps(RUN.to_dict()))).key == RUN.key
    assert replace(RUN, train=replace(TRAIN, seed=5, threads=2)) == RUN  # every fold has its own seed, and one thread
    changes = [
        {"seed": 8}, {"fold": 2}, {"folds": 4}, {"data": "other"}, {"fingerprint": "f"}, {"protocol": "stratified"},
        {"model": ModelConfig(hidden=5)}, {"train": replace(TRAIN, lr=0.02)}, {"ensemble": 2},
    ]  # fmt: skip
    assert len({RUN.key, *(replace(RUN, **change).key for change in changes)}) == 1 + len(changes)


def test_the_key_is_the_same_tomorrow():
    """A store is found again by its keys: if this number changes, all stores are lost."""
    fixed = Run(data="d", fingerprint="f", model=ModelConfig(), train=TrainConfig(), seed=1, fold=0)
    assert fixed.key == "ebcb6e07e40842ed"


def test_the_training_s_seed_follows_from_seed_and_fold(record):
    """What the numbers come from, step by step: weights, order and dropout all have the seed of (seed, fold)."""
    split = authors_folds(GRAPHS, 7, 1, folds=3)
    seed = int(np.random.SeedSequence([7, 1]).generate_state(1)[0])
    size = round(float(np.diff(GRAPHS.ptr)[split.train].mean()))
    model = build(RUN.model, GRAPHS.num_features, GRAPHS.num_classes, seed=seed, typical_nodes=size)
    done = fit(model, GRAPHS, split, replace(TRAIN, seed=seed, threads=1))
    for part, result in ((split.val, record.validation), (split.test, record.test)):
        assert score(GRAPHS.y[part], predict(model, GRAPHS, part), GRAPHS.class_names).to_dict() == result
    assert (record.best_epoch, record.epochs, record.stopped) == (done.best_epoch, 2, None)
    assert [row["loss"] for row in record.history] == [epoch.loss for epoch in done.history]


def test_the_record_holds_what_is_needed_to_repeat_and_to_draw_it(record):
    split = RUN.split(GRAPHS)
    assert record.run == RUN
    assert record.probabilities["graphs"] == split.test.tolist()
    rows = record.probabilities["proba"]
    right = sum(row.index(max(row)) == GRAPHS.y[i] for i, row in zip(split.test, rows, strict=True))
    assert right / len(rows) == record.test["accuracy"]
    assert [row["epoch"] for row in record.history] == [1, 2]
    assert record.machine == machine()
    assert {"cpu", "cores", "system", "python", "numpy", "numba", "torch", "torch_geometric", "asapool", "commit"} == {
        *record.machine
    }
    assert record.seconds > 0
    assert record.cpu_seconds > 0


def test_an_ensemble_scores_the_mean_of_models_with_different_seeds(record):
    seen = []
    three = run(GRAPHS, replace(RUN, ensemble=3), lambda *epochs: seen.append(epochs))
    assert [epochs for *epochs, _ in seen] == [[done, 6] for done in range(7)]
    split, alone = RUN.split(GRAPHS), []
    for words in ([7, 1], [7, 1, 1], [7, 1, 2]):
        seed = int(np.random.SeedSequence(words).generate_state(1)[0])
        size = round(float(np.diff(GRAPHS.ptr)[split.train].mean()))
        model = build(RUN.model, GRAPHS.num_features, GRAPHS.num_classes, seed=seed, typical_nodes=size)
        fit(model, GRAPHS, split, replace(TRAIN, seed=seed, threads=1))
        alone.append(predict(model, GRAPHS, split.test))
    assert np.ptp(alone, axis=0).max() > 1e-4  # they differ
    mean = np.mean(alone, axis=0)
    assert np.allclose(three.probabilities["proba"], mean, atol=1e-5)
    assert three.test == score(GRAPHS.y[split.test], mean, GRAPHS.class_names).to_dict()
    assert three.history is not None
    assert [row["loss"] for row in three.history] == [row["loss"] for row in record.history]  # of the first


@pytest.mark.parametrize("count", [0, 1001])
def test_an_ensemble_of_no_models_or_too_many_is_refused(count):
    with pytest.raises(ConfigError, match=f"an ensemble has 2 to 1000 members, got {count}"):
        replace(RUN, ensemble=count)


def test_epochs_are_reported_with_their_validation_accuracy(record):
    seen = []
    run(GRAPHS, RUN, lambda *epochs: seen.append(epochs))
    assert [epochs for *epochs, _ in seen] == [[0, 2], [1, 2], [2, 2]]
    assert [score for *_, score in seen] == [None, *(row["val_accuracy"] for row in record.history)]


def test_a_record_is_one_line_and_back(record):
    line = record.to_line()
    assert "\n" not in line
    back = RunRecord.from_line(line)
    assert back.to_line() == line
    assert (back.run, back.test, back.probabilities) == (record.run, record.test, record.probabilities)
    assert back.history[1]["loss"] == pytest.approx(record.history[1]["loss"], abs=1e-6)
    assert back.light().history is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p.pop("machine"), "not a record"), (lambda p: p.update(version=3), "expected a record of version 2"),
        (lambda p: p["run"].update(seed=8), "the line was changed"), (lambda p: p["run"].pop("model"), "not a record"),
        (lambda p: p["run"]["model"].update(hiden=1), "not a record"),
    ],
)  # fmt: skip
def test_another_line_is_refused(record, change, says):
    plain = json.loads(record.to_line())
    del plain["checksum"]
    change(plain)
    with pytest.raises(DataError, match=says):
        RunRecord.from_line(with_checksum(json.dumps(plain)))


def test_no_flipped_bit_passes_for_a_record(record):
    """Every 97th bit of the line; benchmarks/bit_flips.py tries 10,000 in whole stores."""
    line = record.to_line().encode()
    assert RunRecord.from_line(line).run == record.run
    for bit in range(0, 8 * len(line), 97):
        damaged = bytearray(line)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DataError):
            RunRecord.from_line(bytes(damaged))
    spaced = json.dumps(json.loads(line))
    with pytest.raises(DataError, match="the checksum of the line is missing or damaged"):
        RunRecord.from_line(spaced)


def test_a_line_of_0_1_0_has_no_checksum_and_is_read(record):
    plain = json.loads(record.to_line())
    del plain["checksum"]
    assert RunRecord.from_line(json.dumps(plain | {"version": 1})).test == record.test
    with pytest.raises(DataError, match="missing or damaged"):
        RunRecord.from_line(json.dumps(plain))


def test_graphs_of_another_set_are_refused():
    with pytest.raises(DataError, match="Give it the graphs it was planned for"):
        run(GRAPHS[:39], RUN)
    with pytest.raises(ConfigError, match="fold must lie in 0 to 2"):
        replace(RUN, fold=3)
    with pytest.raises(ConfigError, match="protocol must be one of"):
        replace(RUN, protocol="random")


def test_keys_are_those_of_0_1_0():
    """Written down when 0.1.0 was released: a key that changes orphans every record that was ever made."""
    first = Run(
        data="NCI1", fingerprint="f" * 16, model=ModelConfig(method="asap"), train=TrainConfig(), seed=8971, fold=0
    )
    assert first.key == "c18a6588c367dbdc"
    other = replace(first, model=ModelConfig(method="topk", ratio=(0.8, 0.5, 0.5)), train=TrainConfig(clip=1.0, seed=3))
    assert other.key == "7fab4e6d5821317c"
    assert Run.from_dict({**other.to_dict(), "model": {"method": "topk", "ratio": [0.8, 0.5, 0.5]}}) == other
