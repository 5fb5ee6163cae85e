"""Targets of every kind from every source, through subsets, batches, files, other libraries and splits."""

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from asapool.data import GraphSet, Target, load, read, splits
from asapool.data.descriptors import scaffolds
from asapool.data.jsonlines import write_jsonl
from asapool.data.targets import read_targets
from asapool.errors import ConfigError, DataError
from tests.data.sources import write_tu


def write(path, text):
    path.write_text(text)
    return path


def table(path, columns, rows):
    return write(
        path, ",".join(["smiles", *columns]) + "\n" + "".join(f"{'C' * (k + 1)},{r}\n" for k, r in enumerate(rows))
    )


def test_measured_values_are_recognised_with_a_note(tmp_path):
    reading = read(table(tmp_path / "m.csv", ["logS [mol/l]"], ["-0.77", "", "-3.3", "NA"]))
    graphs = reading.graphs
    assert graphs.target == Target(kind="regression", names=("logS [mol/l]",), units=("mol/l",))
    np.testing.assert_array_equal(graphs.y, [[-0.77], [np.nan], [-3.3], [np.nan]])
    assert graphs.labelled.tolist() == [True, False, True, False]
    assert (reading.unlabelled, reading.missing) == (2, {"NA": 1})
    assert "treated as measured values (regression)" in reading.notes[0]
    assert (graphs.num_classes, graphs.class_names) == (0, ())


def test_whole_numbers_are_classes_up_to_five_of_them_and_task_decides(tmp_path):
    few, many = [str(k % 5) for k in range(12)], [str(k % 6) for k in range(12)]
    assert read(table(tmp_path / "few.csv", ["y"], few)).notes == ()
    assert load(table(tmp_path / "few.csv", ["y"], few)).num_classes == 5
    path = table(tmp_path / "pic50.csv", ["pIC50"], many)
    reading = read(path)
    assert reading.graphs.target.kind == "regression"
    assert "'pIC50' has 6 different numbers" in reading.notes[0]
    chosen = read(path, task="classification")
    assert (chosen.graphs.class_names, chosen.notes) == (tuple("012345"), ())
    assert load(table(tmp_path / "b.csv", ["y"], ["0", "1", "1"]), task="regression").y.tolist() == [[0], [1], [1]]


def test_several_columns_are_several_tasks(tmp_path):
    path = table(tmp_path / "t.csv", ["NR-AR", "SR-p53"], ["0,1", "1,", ",0"])
    for options in ({"target": "NR-AR,SR-p53"}, {"target": ["NR-AR", "SR-p53"]}, {"task": "multilabel"}):
        graphs = load(path, **options)
        assert (graphs.target.kind, graphs.target.names) == ("multilabel", ("NR-AR", "SR-p53"))
        np.testing.assert_array_equal(graphs.y, [[0, 1], [1, np.nan], [np.nan, 0]])
    words = load(table(tmp_path / "w.csv", ["a", "b"], ["no,yes", "yes,No"]), task="multilabel")
    assert (words.y.tolist(), words.target.classes) == ([[0, 1], [1, 0]], ("no", "yes"))
    both = load(table(tmp_path / "r.csv", ["a", "b"], ["1.5,2", ",3"]), target=["a", "b"])
    assert both.target.kind == "regression"
    swapped = load(path, target=["SR-p53", "NR-AR"])
    np.testing.assert_array_equal(swapped.y[:, 0], graphs.y[:, 1])


def test_json_lines_have_targets_of_every_form(tmp_path):
    def lines(*targets):
        return write(tmp_path / "a.jsonl", "\n".join(json.dumps({"nodes": 1, "target": t}) for t in targets))

    np.testing.assert_array_equal(load(lines(1.5, None, 2)).y, [[1.5], [np.nan], [2]])
    np.testing.assert_array_equal(load(lines([1, 2.5], [None, 3])).y, [[1, 2.5], [np.nan, 3]])
    graphs = load(lines({"b": 1.5}, {"a": 2, "b": None}, {"b": 3}))
    assert graphs.target.names == ("b", "a")
    np.testing.assert_array_equal(graphs.y, [[1.5, np.nan], [np.nan, 2], [3, np.nan]])
    with pytest.raises(DataError, match=r"'label' is the class and 'target' a measured value"):
        load(write(tmp_path / "b.jsonl", '{"nodes": 1, "target": 1, "label": 2}'))


def test_graph_attributes_of_a_tu_data_set_are_measured_values(tmp_path):
    folder = write_tu(tmp_path, graph_attributes="0.5, 1\n-1.5, 2\n")
    assert load(folder).class_names == ("-1", "1")
    graphs = load(folder, task="regression")
    assert (graphs.y.tolist(), graphs.target.names) == ([[0.5, 1], [-1.5, 2]], ("attribute0", "attribute1"))
    (folder / "TINY_graph_labels.txt").unlink()
    assert load(folder).y.tolist() == graphs.y.tolist()
    assert load(folder, recipe=graphs.recipe).y.tolist() == graphs.y.tolist()


@pytest.fixture
def measured(tmp_path):
    rows = [f"{k / 7:.3f},{'' if k % 3 else k}" for k in range(20)]
    return load(table(tmp_path / "two.csv", ["a", "b"], rows), target=["a", "b"])


def test_targets_survive_subsets_batches_and_files(measured, tmp_path):
    part = measured.subset([5, 3])
    np.testing.assert_array_equal(part.y, measured.y[[5, 3]])
    assert part.target == measured.target
    batch = measured.batch([5, 3])
    assert batch.y.dtype == torch.float32
    np.testing.assert_allclose(batch.y.numpy(), measured.y[[5, 3]], rtol=1e-6)
    measured.save(tmp_path / "a.npz")
    write_jsonl(measured, tmp_path / "a.jsonl")
    for path in (tmp_path / "a.npz", tmp_path / "a.jsonl"):
        again = load(path)
        assert (again.fingerprint, again.target) == (measured.fingerprint, measured.target)
    assert measured.fingerprint != measured.with_fields(target=Target(kind="regression", names=("c", "b"))).fingerprint
    assert measured.summary().targets["b"]["count"] == 7
    assert measured.summary().unlabelled == 0
    assert "regression=2" in repr(measured)


def test_targets_go_to_pyg_and_networkx_and_back(measured):
    back = load(list(measured))
    np.testing.assert_allclose(back.y, measured.y, rtol=1e-6)
    nx_back = GraphSet.from_networkx(list(measured.iter_networkx()))
    np.testing.assert_array_equal(nx_back.y, measured.y)
    assert nx_back.target.names == ("a", "b")
    one = [
        Data(x=torch.ones(1, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=torch.tensor([v]))
        for v in (0.5, 1.5)
    ]
    assert load(one).y.tolist() == [[0.5], [1.5]]
    assert load([Data(**{**dict(d), "y": torch.tensor([k])}) for k, d in enumerate(one)]).class_names == ("0", "1")


def test_new_data_follow_the_recipe(measured, tmp_path):
    new = load(write(tmp_path / "n.csv", "smiles,b,price\nCCO,2.5,9\n"), recipe=measured.recipe)
    np.testing.assert_array_equal(new.y, [[np.nan, 2.5]])
    assert new.target == measured.target
    assert np.isnan(load(measured, recipe=measured.recipe, labels="ignored").y).all()


BAD = {
    "decimal commas": (
        ['"-0,12"', '"1,5"'],
        {},
        r"line 2: the numbers in 'y' have decimal commas, such as '-0,12'\. R",
    ),
    "some decimal commas": (
        ["3", '"1,5"', "2.5"],
        {},
        r"line 3: .* such as '1,5'\. Read them with decimal=',' \(--decimal ,\), or write .* points, such as 1\.5",
    ),
    "decimal commas in regression": (["3", '"1,5"'], {"task": "regression"}, r"line 3: .* have decimal commas"),
    "text among numbers": (["1.5", "high", "2"], {}, r"m\.csv, line 3: 'y' has the text 'high' among .* as 1.5\."),
    "a limit": (["1", "<0.5", "2"], {}, r"line 3: 'y' has the text '<0.5' among numbers such as 1\. Write a number"),
    "text among many whole numbers": (
        [*"123456", "n/a?"],
        {},
        r"line 8: 'y' has the text 'n/a\?' .* add --task classification \(task='classification'\)",
    ),
    "units": ([f"{k} uM" for k in range(6)], {}, r"line 2: 'y' has the text '0 uM', and a measured value is a plain"),
    "text in regression": (
        ["1.5", "high"],
        {"task": "regression"},
        r"line 3: expected a finite number for 'y', got 'high'",
    ),
    "an infinite value": (["1.5", "inf", "2"], {}, r"line 3: expected a finite number for 'y', got 'inf'"),
    "an overflow": (["1.5", "1e999"], {}, r"line 3: expected a finite number for 'y', got '1e999'"),
    "all missing": (["", "NA"], {"task": "regression"}, r"all entries of 'y' are missing. Leave this column out"),
    "all equal": (["1.5", "1.5"], {}, r"all entries of 'y' are equal, so there is nothing to learn"),
    "not yes or no": (["0", "2"], {"task": "multilabel"}, r"line 3: 'y' has '2', and a yes/no column holds 0 and 1"),
    "measured classes": (["1.5", "2"], {"task": "classification"}, r"expected a class, got the measured value '1.5'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_targets_are_refused_in_one_sentence(tmp_path, case):
    rows, options, sentence = BAD[case]
    with pytest.raises(DataError, match=sentence):
        load(table(tmp_path / "m.csv", ["y"], rows), **options)


def test_text_beside_a_few_whole_numbers_is_a_class(tmp_path):
    assert load(table(tmp_path / "m.csv", ["y"], ["1", "2", "none of both"])).class_names == ("1", "2", "none of both")
    codes = ["1a", "1b", "2a", "2b", "3a", "3b"]
    assert load(table(tmp_path / "m.csv", ["y"], codes)).class_names == tuple(codes)


def test_classes_with_commas_are_classes(tmp_path):
    assert load(table(tmp_path / "m.csv", ["y"], ['"a,b"', '"1,2"', "c"])).class_names == ("1,2", "a,b", "c")


def test_decimal_commas_are_read_if_asked_to(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_text("smiles;logS;pH\nCCO;-0,12;7\nCCN;1,5e-3;6,5\nCCC;;7,25\nCCCl;2;\n")
    graphs = load(path, target="logS", descriptors="pH", decimal=",")
    np.testing.assert_array_equal(graphs.y, [[-0.12], [0.0015], [np.nan], [2]])
    np.testing.assert_array_equal(graphs.descriptors, [[7], [6.5], [7.25], [np.nan]])
    new = read(path, recipe=graphs.recipe, decimal=",", keep_columns=True)
    np.testing.assert_array_equal(new.graphs.y, graphs.y)
    assert new.columns["logS"][0] == "-0,12"  # kept as it was
    with pytest.raises(DataError, match=r"descriptor 'pH', got '6,5'\. Read decimal commas with decimal=','"):
        load(path, target="logS", descriptors="pH")
    path.write_text("smiles;logS\nCCO;-0,12\nCCN;1.234\n")
    with pytest.raises(DataError, match=r"line 3: 'logS' has '1\.234', and with decimal=',' .* a point is not"):
        load(path, decimal=",")  # it may mean 1234
    with pytest.raises(ConfigError, match=r"decimal must be one of '\.', ',', got ';'"):
        load(path, decimal=";")


def test_a_task_that_does_not_exist(tmp_path):
    with pytest.raises(ConfigError, match="task must be one of 'classification'"):
        load("synthetic:cycles", task="ranking")


def labelled(y, kind):
    G = len(y)
    target = Target(kind=kind, names=tuple(f"t{k}" for k in range(np.shape(y)[1])))
    return GraphSet(x=np.ones((G, 1)), ptr=range(G + 1), rowptr=[0] * (G + 1), col=[], y=y, target=target)


def test_folds_are_stratified_by_quantile_or_by_the_rarest_task():
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(size=(100, 1)) * 2)
    values[:3] = np.nan
    numbers = labelled(values, "regression")
    for fold in range(5):
        test = splits.stratified_folds(numbers, 0, fold, 5).test
        low = np.nanmedian(values)
        assert 8 <= (values[test, 0] < low).sum() <= 12  # of twenty graphs
    rare = np.zeros((100, 3))
    rare[:10, 2] = 1
    rare[20:60, 0] = 1
    many = labelled(rare, "multilabel")
    assert all(rare[splits.stratified_folds(many, 0, fold, 5).test, 2].sum() == 2 for fold in range(5))
    for graphs in (numbers, many):
        parts = splits.stratified_split(graphs, 1, val=0.2, test=0.2)
        assert len(parts.train) + len(parts.val) + len(parts.test) == 100
        assert (16 <= len(parts.val) <= 24, 16 <= len(parts.test) <= 24) == (True, True)


def test_a_scaffold_split_depends_on_its_seed_and_has_every_class(tmp_path):
    rings = [
        "c1ccccc1",
        "C1CCCCC1",
        "c1ccncc1",
        "C1CCNCC1",
        "c1ccsc1",
        "c1ccoc1",
        "C1CC1",
        "C1CCC1",
        "C1CCOC1",
        "C1CNC1",
    ]
    rows = [f"{ring}{'C' * k},{int(r == 0)}" for r, ring in enumerate(rings) for k in range(1, 4)] + ["CC,1", "CCC,1"]
    graphs = load(write(tmp_path / "m.csv", "smiles,y\n" + "\n".join(rows)))
    result = [splits.scaffold_split(graphs, 0.2, 0.2, seed=seed) for seed in (0, 0, 1, 2)]
    assert result[0].to_json() == result[1].to_json()
    assert len({tuple(split.test.tolist()) for split in result}) == 3
    for split in result:
        scaffold = [{int(i) // 3 for i in part if i < 30} for part in (split.train, split.val, split.test)]
        assert not scaffold[0] & scaffold[1]
        assert not scaffold[0] & scaffold[2]
        assert set(graphs.y[split.val].tolist()) == {0, 1} or set(graphs.y[split.test].tolist()) == {0, 1}


def test_scaffolds_that_occur_once_are_taken_from_the_end_of_the_file_and_ignore_stereo(tmp_path):
    """As DeepChem takes them: the test part of a file that is sorted by its target is not just the last class."""
    rows = [f"C1{'C' * k}1C,{k}.5" for k in range(2, 12)]
    graphs = load(write(tmp_path / "m.csv", "smiles,y\n" + "\n".join(rows)), task="regression")
    split = splits.scaffold_split(graphs, 0.2, 0.2)
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([4, 5, 6, 7, 8, 9], [2, 3], [0, 1])
    pair = load(["C1CC[C@@H]2CCCC[C@H]2C1", "C1CC[C@H]2CCCC[C@H]2C1"])
    assert len(set(scaffolds(pair))) == 1


def test_a_frequent_scaffold_is_for_training_with_any_seed(tmp_path):
    """Every third molecule has no ring, as in tables of solubility: that group must not become the test part."""
    rings = [f"C1{'C' * k}1" for k in range(2, 32)]
    rows = [f"{ring}{'C' * k},{len(ring) + k}.5" for ring in rings for k in range(1, 3)]
    rows += [f"{'C' * k},{k}.25" for k in range(1, 31)]
    graphs = load(write(tmp_path / "m.csv", "smiles,y\n" + "\n".join(rows)), task="regression")
    for seed in range(6):
        split = splits.scaffold_split(graphs, seed=seed)
        assert (len(split.train), len(split.val), len(split.test)) in [(72, 9, 9), (72, 8, 10)]
        assert set(range(60, 90)) <= set(split.train.tolist())
    same = load(write(tmp_path / "same.csv", "smiles,y\n" + "\n".join(f"{'C' * k},{k}.25" for k in range(1, 31))))
    with pytest.raises(DataError, match=r"no molecule for the .* part: the 30 molecules have 1 scaffold in all, 30 of"):
        splits.scaffold_split(same)


def test_what_several_columns_are_taken_for_is_said():
    values = {"a": ["1.5", "2", None], "b": ["0", "1", "0"]}
    assert read_targets(values, "t").notes == (
        "t: the 2 targets are treated as measured values (regression). --task multilabel (task='multilabel') is for "
        "columns of yes or no",
    )
    assert read_targets(values, "t", task="regression").notes == ()
    binary = {"a": ["yes", "no"], "b": ["no", "yes"]}
    assert read_targets(binary, "t").notes == (
        "t: the 2 targets hold yes or no and are treated as yes/no tasks (multilabel)",
    )


def test_a_note_about_concentrations_and_one_about_names_in_two_cases(tmp_path):
    def notes(name, cells):
        rows = "".join(f"{'C' * (k % 9 + 1)},{cell}\n" for k, cell in enumerate(cells))
        (tmp_path / "t.csv").write_text(f"smiles,{name}\n{rows}")
        return [note.partition("t.csv: ")[2] for note in read(tmp_path / "t.csv").notes]

    assert notes("label", ["Yes", "no", "yes", "no"]) == [
        "the classes 'Yes', 'yes' differ only in case and are kept apart. Correct the file if they are the same class"
    ]
    assert notes("IC50", [10.0**k for k in range(7)])[1].startswith(
        "the values of 'IC50' span several orders of magnitude (1 to 1e+06)"
    )
    assert len(notes("share", [k / 1000 for k in range(1, 1000)])) == 1  # evenly spread: only the kind of task is noted
    assert len(notes("logS", [-6.5, -3.0, 0.001, 2.0, 3.0, 4.0, 5.0])) == 1
