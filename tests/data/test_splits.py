"""Splits: the authors' folds to the letter, proportions, scaffolds, files, and refusals."""

import json

import numpy as np
import pytest
from sklearn.model_selection import KFold

from asapool.data import Split, Target, load, splits
from asapool.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def graphs():
    return load("synthetic:cycles?graphs=60")


@pytest.mark.parametrize("seed", [8971, 85688])
def test_the_authors_folds_are_those_of_their_code(seed):
    n = 103
    tests = [test for _, test in KFold(10, shuffle=True, random_state=seed).split(np.zeros(n))]
    vals = [tests[i - 1] for i in range(10)]
    for fold in range(10):
        train = [i for i in range(n) if i not in set(tests[fold]) | set(vals[fold])]
        split = splits.authors_folds(n, seed, fold)
        assert split.train.tolist() == train
        assert split.val.tolist() == vals[fold].tolist()
        assert split.test.tolist() == tests[fold].tolist()


def test_stratified_folds_cover_everything_once_in_proportion(graphs):
    every = [splits.stratified_folds(graphs, 3, fold, 5) for fold in range(5)]
    assert sorted(i for split in every for i in split.test.tolist()) == list(range(60))
    for fold, split in enumerate(every):
        assert graphs.y[split.test].tolist().count(0) == 6
        assert np.array_equal(split.val, every[fold - 1].test)
        assert len(split.train) == 36


def test_one_stratified_split(graphs):
    split = splits.stratified_split(graphs, seed=1, val=0.1, test=0.2)
    counts = [np.bincount(graphs.y[part]).tolist() for part in (split.train, split.val, split.test)]
    assert counts == [[21, 21], [3, 3], [6, 6]]
    assert splits.stratified_split(graphs, seed=1, val=0.1, test=0.2).to_json() == split.to_json()
    assert splits.stratified_split(graphs, seed=2, val=0.1, test=0.2).to_json() != split.to_json()


@pytest.mark.parametrize(
    ("n", "val", "test", "sizes"),
    [
        (3, 0.1, 0.1, (1, 1, 1)),
        (40, 0.1, 0.1, (32, 4, 4)),
        (60, 0.1, 0.1, (48, 6, 6)),
        (60, 0.1, 0.2, (42, 6, 12)),
        (150, 0.1, 0.1, (120, 15, 15)),
        (250, 0.1, 0.1, (200, 25, 25)),
        (1000, 0.1, 0.1, (800, 100, 100)),
    ],
)
def test_a_stratified_split_of_measured_values_has_the_sizes_and_the_range_asked_for(n, val, test, sizes):
    y = np.random.default_rng(0).permutation(n).astype(float)[:, None]  # the value is the rank
    graphs = load(f"synthetic:cycles?graphs={n}").with_fields(
        y=y, class_names=(), target=Target(kind="regression", names=("y",))
    )
    for seed in range(3):
        split = splits.stratified_split(graphs, seed, val=val, test=test)
        assert (len(split.train), len(split.val), len(split.test)) == sizes
        strata = min(10, int(min(val, test) * n))
        for part in (split.train, split.val, split.test):
            counts = np.bincount((y[part, 0] * strata // n).astype(int), minlength=strata) if strata else np.ones(1)
            assert counts.min() >= 1
            assert counts.max() - counts.min() <= 1


def test_molecules_with_one_scaffold_stay_together(tmp_path):
    rings = ["c1ccccc1", "C1CCCCC1", "C1CCCC1", "c1ccncc1", "C1CC1"]
    rows = [f"{'C' * k}{ring},{k % 2}" for ring in rings for k in range(4)]
    (tmp_path / "m.csv").write_text("smiles,label\n" + "\n".join(rows) + "\n")
    graphs = load(tmp_path / "m.csv")
    split = splits.scaffold_split(graphs, val=0.2, test=0.2)
    assert [len(split.train), len(split.val), len(split.test)] == [12, 4, 4]
    groups = [{int(i) // 4 for i in part} for part in (split.train, split.val, split.test)]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 5
    with pytest.raises(DataError, match="synthetic:cycles: scaffolds need SMILES, and these graphs have none"):
        splits.scaffold_split(load("synthetic:cycles"))


def test_a_split_is_a_file_that_fits_its_set_only(graphs, tmp_path):
    split = splits.authors_folds(graphs, 5, 2)
    split.save(tmp_path / "s.json")
    back = Split.load(tmp_path / "s.json")
    assert back.to_json() == split.to_json() == json.loads((tmp_path / "s.json").read_text())
    train, val, test = back.apply(graphs)
    assert (len(train), len(val), len(test)) == (48, 6, 6)
    assert test.ids == tuple(graphs.ids[i] for i in split.test)
    other = load("synthetic:cycles?graphs=60&seed=1")
    with pytest.raises(DataError, match=f"made for 60 graphs with fingerprint {graphs.fingerprint}, and synth"):
        back.apply(other)
    with pytest.raises(DataError, match="Make a split for this set"):
        splits.authors_folds(61, 0, 0).check(graphs)
    splits.authors_folds(60, 0, 0).check(graphs)  # drawn for a number: fits any set of that size


def test_splits_made_elsewhere(graphs, tmp_path):
    (tmp_path / "a.json").write_text('{"train": [0, 1], "test": [5]}')
    split = splits.given(graphs, tmp_path / "a.json")
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([0, 1], [], [5])
    assert split.fingerprint == graphs.fingerprint
    (tmp_path / "a.csv").write_text("id,part\n3,train\n4,valid\n5,test\n")
    assert splits.given(graphs, tmp_path / "a.csv").val.tolist() == [4]
    splits.authors_folds(load("synthetic:paths"), 0, 0).save(tmp_path / "other.json")
    with pytest.raises(DataError, match="Make a split for this set"):
        splits.given(graphs, tmp_path / "other.json")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.json", '{"train": [0, 1], "test": [1]}', "graph 1 is listed twice"),
        ("a.json", '{"train": [60]}', "train names graph 60, but graphs are 0 to 59"),
        ("a.json", '{"train": [-1]}', "train names graph -1"),
        ("a.json", '{"train": "all"}', "must be lists of whole numbers"),
        ("a.json", '{"train": [0.5]}', "must be lists of whole numbers"),
        ("a.json", '{"train": [true]}', "must be lists of whole numbers"),
        ("a.json", "[]", "expected a JSON object with train, val and test, got list"),
        ("a.json", "{", "not JSON"),
        ("a.json", '{"format": "asapool-split", "version": 1}', "the split is incomplete"),
        ("a.json", '{"format": "asapool-split", "version": 7}', "not a split that asapool saved"),
        ("a.csv", "id,part\nx,train\n", "line 2: no graph of synthetic:cycles has the id 'x'"),
        ("a.csv", "id,part\n1,sometimes\n", "line 2: part 'sometimes', expected train, val or test"),
        ("a.csv", "id,part\n1\n", "line 2: expected 2 fields, got 1"),
        ("a.csv", "name,part\n1,train\n", r"columns are 'name', 'part'\. Rename the one that holds the ids to 'id'"),
    ],
)
def test_splits_that_are_refused(graphs, tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=sentence):
        splits.given(graphs, tmp_path / name)


def test_settings_that_make_no_sense(graphs):
    with pytest.raises(ConfigError, match="fold must lie in 0 to 9, got 10"):
        splits.authors_folds(graphs, 0, 10)
    with pytest.raises(ConfigError, match="folds must lie between 3 and the 60 graphs, got 61"):
        splits.authors_folds(graphs, 0, 0, 61)
    with pytest.raises(ConfigError, match="val and test must be positive"):
        splits.stratified_split(graphs, 0, val=0.5, test=0.5)
    with pytest.raises(ConfigError, match=r"split\.merge_validation=true trains on the validation part too"):
        splits.stratified_split(graphs, 0, val=0, test=0.1)
    with pytest.raises(DataError, match="class 'cycle' has 2 graphs, too few for 3 folds"):
        splits.stratified_folds(graphs.subset([0, 1, 2, 3, 5]), 0, 0, 3)
    with pytest.raises(DataError, match=r"too few for 3 folds\. Use fewer folds, or merge classes"):
        splits.stratified_folds(graphs.subset([0, 1, 2, 3, 5]), 0, 0, 3)
    with pytest.raises(DataError, match=r"has 2 graphs, too few for three parts\. Add graphs of that class, or merge"):
        splits.stratified_split(graphs.subset([0, 1, 2, 3, 5]), 0)
    with pytest.raises(DataError, match="class 'cycle' has 1 graph, too few for 3 folds"):
        splits.stratified_folds(graphs.subset([0, 1, 3, 5]), 0, 0, 3)
    with pytest.raises(DataError, match="20 graphs have no label"):
        splits.stratified_split(load("synthetic:paths"), 0)
    with pytest.raises(DataError, match=r"gone.json: cannot be read \(No such file"):
        Split.load("gone.json")


def test_a_merged_split_trains_on_the_validation_graphs_too():
    split = splits.authors_folds(20, seed=0, fold=0)
    merged = split.merged()
    assert merged.train.tolist() == sorted([*split.train.tolist(), *split.val.tolist()])
    assert (merged.val.tolist(), merged.test.tolist()) == ([], split.test.tolist())
