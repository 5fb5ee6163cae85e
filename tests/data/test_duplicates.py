"""Rows of a table with the same molecule are counted, kept or merged."""

import numpy as np
import pytest

from asapool.data import load, read
from asapool.data.duplicates import duplicates
from asapool.data.mapped.convert import convert
from asapool.errors import ConfigError, DataError

pytest.importorskip("rdkit")


def write(path, text):
    path.write_text(text)
    return path


def test_values_are_averaged_and_the_first_row_stays(tmp_path):
    table = write(tmp_path / "m.csv", "id,smiles,logS\na,OCC,1.5\nb,CCN,2.5\na,CCO,3.5\nc,CCC,\nd,C(C)O,\n")
    reading = read(table, target="logS", task="regression", duplicates="merge", keep_columns=True, labels="optional")
    graphs = reading.graphs
    assert (graphs.ids, graphs.y.ravel()[:2].tolist(), graphs.places.tolist()) == (
        ("a", "b", "c"),
        [2.5, 2.5],
        [0, 1, 3],
    )
    assert np.isnan(graphs.y[2, 0])
    assert reading.unlabelled == 1
    assert reading.columns["smiles"] == ["OCC", "CCN", "CCC"]
    assert reading.notes == (f"{table}: merged 3 rows of 1 molecule; their measured values are averaged",)
    assert duplicates(graphs) == (0, 0, 0)


def test_the_majority_decides_classes_and_a_tie_is_no_label(tmp_path):
    rows = ["CCO,a", "OCC,b", "CCO,a", "CCN,a", "NCC,b", "CCC,b", "C(C)C,", "CC,b", "CF,a"]
    reading = read(write(tmp_path / "m.csv", "smiles,label\n" + "\n".join(rows) + "\n"), duplicates="merge")
    assert reading.graphs.y.tolist() == [0, -1, 1, 1, 0]
    assert reading.unlabelled == 1
    assert reading.notes[0].endswith(
        "merged 7 rows of 3 molecules; the majority decides their labels, and a tie (1 molecule) counts as a missing "
        "one"
    )


def test_every_yes_no_task_is_decided_by_itself(tmp_path):
    rows = ["CCO,1,0", "OCC,1,1", "CCO,0,", "CCN,1,0", "CC,0,1"]
    table = write(tmp_path / "m.csv", "smiles,x,y\n" + "\n".join(rows) + "\n")
    graphs = load(table, target=["x", "y"], task="multilabel", duplicates="merge")
    np.testing.assert_array_equal(graphs.y, [[1, np.nan], [1, 0], [0, 1]])


def test_rows_with_different_descriptors_or_stereo_are_not_the_same(tmp_path):
    table = write(tmp_path / "m.csv", "smiles,pH,y\nCCO,7,1\nCCO,5,2\nOCC,7,3\nF/C=C/F,7,4\nF/C=C\\F,7,6\n")
    graphs = load(table, target="y", task="regression", descriptors="pH", duplicates="merge")
    assert graphs.y.ravel().tolist() == [2, 2, 4, 6]
    kept = load(table, target="y", task="regression", descriptors="pH")
    assert duplicates(kept) == (1, 2, 1)
    assert load(table, target="y", task="regression", duplicates="merge").y.ravel().tolist() == [2, 4, 6]


def test_an_id_of_two_molecules_is_refused_also_after_merging(tmp_path):
    table = write(tmp_path / "m.csv", "id,smiles,label\na,CCO,x\nb,CCN,y\na,OCC,x\n")
    with pytest.raises(DataError, match=r"line 4: id 'a' was used before, in line 2\. .* \(--duplicates merge\)"):
        load(table)
    assert load(table, duplicates="merge").ids == ("a", "b")
    write(table, "id,smiles,label\na,CCO,x\na,CCN,y\nb,OCC,x\n")
    with pytest.raises(DataError, match="id 'a' was used before"):
        load(table, duplicates="merge")


def test_a_converted_set_is_merged_too(tmp_path):
    table = write(tmp_path / "m.csv", "smiles,label\nCCO,x\nCCN,y\nOCC,x\n")
    assert convert(table, tmp_path / "m.graphs", duplicates="merge").graphs.y.tolist() == [0, 1]


def test_sources_without_rows_are_refused(tmp_path):
    load(["CCO", "CCN"]).save(tmp_path / "m.npz")
    for source in ("synthetic:cycles?graphs=6", "nci-alerts", ["CCO", "OCC"], tmp_path / "m.npz"):
        with pytest.raises(DataError, match="only rows of a table of molecules can be merged"):
            load(source, duplicates="merge")
    with pytest.raises(ConfigError, match="duplicates"):
        load(["CCO"], duplicates="drop")


def test_a_set_that_a_tie_leaves_with_a_single_class_is_refused(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,label\nCCO,a\nOCC,b\nCCN,b\nCCC,b\n")
    with pytest.raises(DataError, match="all 2 labelled graphs are of one class"):
        load(tmp_path / "m.csv", duplicates="merge")


def test_an_id_of_two_molecules_is_not_solved_by_merging_again(tmp_path):
    (tmp_path / "m.csv").write_text("id,smiles,label\na,CCO,x\na,OCC,x\na,CCN,y\n")
    with pytest.raises(
        DataError, match=r"line 4: id 'a' was used before, in line 2\. Give every molecule a unique id$"
    ):
        load(tmp_path / "m.csv", duplicates="merge")
