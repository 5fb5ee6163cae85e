"""Molecules: values worked out by hand, the columns of a table, rows that cannot be read."""

import subprocess
import sys

import numpy as np
import pytest

from asapool.data import load, molecules, read, stream
from asapool.data.duplicates import duplicates
from asapool.data.loading import read_pieces
from asapool.data.molecule_workers import read_many
from asapool.data.molecules import ATOM_NAMES, BOND_NAMES, atom_features, read_smiles
from asapool.errors import ConfigError, DataError, MissingExtraError
from tests.data.sources import dense


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def named(row, names):
    return {name for name, value in zip(names, row, strict=True) if value == 1}


def test_the_atoms_and_bonds_of_small_molecules(tmp_path):
    graphs = load(write(tmp_path / "m.csv", "smiles,label\nC[NH3+],1\nC1=CC1,0\nc1ccccc1O,0\n"))
    assert graphs.num_features == 36
    assert np.array_equal(graphs.x.sum(axis=1) >= 5, np.ones(len(graphs.x), bool))  # one per many-valued property
    end = {"neighbours=1", "hydrogens>=3", "hybridisation=sp3"}
    assert named(graphs.x[0], ATOM_NAMES) == end | {"element=C", "charge=0"}
    assert named(graphs.x[1], ATOM_NAMES) == end | {"element=N", "charge=1"}
    ring = {"element=C", "neighbours=2", "charge=0", "hydrogens=1", "hybridisation=sp2", "ring"}
    assert named(graphs.x[2], ATOM_NAMES) == ring
    assert "aromatic" in named(graphs.x[5], ATOM_NAMES)
    assert dense(graphs, 1).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    bonds = [named(row, BOND_NAMES) for row in graphs.edge_attr]
    assert bonds[:2] == [{"single"}, {"single"}]
    assert bonds[2:8] == [{"double", "ring"}, {"single", "ring"}, {"double", "ring"}] + [{"single", "ring"}] * 3
    assert bonds.count({"aromatic", "ring"}) == 12
    assert bonds[8:].count({"single"}) == 2
    assert graphs.source_text == ("C[NH3+]", "C1=CC1", "c1ccccc1O")
    assert graphs.ids == ("2", "3", "4")  # lines of the file
    assert graphs.recipe == {
        "version": 1, "kind": "smiles", "smiles": "smiles", "target": "label", "classes": ["0", "1"],
    }  # fmt: skip


def test_odd_elements_charges_and_bonds():
    result = read_smiles(["[U+4]", "[Fe-3]", "C~C", "[NH3]->[Fe]", "C$C", "[2H]O[2H]"])
    x = atom_features(result.codes)
    assert named(x[0], ATOM_NAMES) >= {"element=other", "charge>=2", "neighbours=0"}
    assert "charge<=-2" in named(x[1], ATOM_NAMES)
    assert result.kinds[:, 0].tolist() == [4, 4, 0, 0, 4, 4, 0, 0, 0, 0]  # other, single for dative both ways, other
    assert named(x[-3], ATOM_NAMES) >= {"element=H"}


def test_both_ways_to_list_bonds_agree(monkeypatch):
    smiles = ["CC(=O)Oc1ccccc1C(=O)O", "C1CC2CCC1C2", "C", "[Na+].[Cl-]", "C#N"]
    by_matrix = read_smiles(smiles)
    monkeypatch.setattr(molecules, "LARGE", 0)
    by_list = read_smiles(smiles)
    for name in ("rows", "atoms", "codes", "bonds", "ends", "kinds"):
        assert np.array_equal(getattr(by_matrix, name), getattr(by_list, name))


def test_several_processes_give_the_same():
    smiles = ["CCO", "C(C", "c1ccccc1", "", "N", "C1CC1", "O=C=O"]
    one, two = read_many(smiles, 1), read_many(smiles, 3)
    for name in one._fields[:-1]:
        assert np.array_equal(getattr(one, name), getattr(two, name))
        assert getattr(one, name).dtype == getattr(two, name).dtype
    assert one.failed == two.failed
    assert [row for row, _ in one.failed] == [1, 3]


@pytest.mark.parametrize("text", [
    "smiles,label\nCCO,a\nCC,b\n",
    "\ufeffsmiles,label\r\nCCO,a\r\nCC,b\r\n",
    "Label;SMILES\na;CCO\nb;CC\n",
    "label\tsmiles\na\tCCO\nb\tCC\n",
    'smiles,label,note\n"CCO",a,"two\nlines"\n\nCC,b,\n',
    "id,smiles,toxic\nx,CCO,a\ny,CC,b\n",
    "canonical_smiles,activity\nCCO,a\nCC,b\n",
    "sep=;\r\nsmiles;label\r\nCCO;a\r\nCC;b\r\n",
    '\ufeff"sep=|"\nsmiles|label|note\nCCO|a|x,y,z\nCC|b|\n',
])  # fmt: skip
def test_tables_as_people_write_them(tmp_path, text):
    graphs = load(write(tmp_path / "m.csv", text))
    assert (graphs.source_text, graphs.class_names, graphs.y.tolist()) == (("CCO", "CC"), ("a", "b"), [0, 1])


def test_other_tables(tmp_path):
    import pandas as pd

    write(tmp_path / "m.tsv", "smiles\tlabel\nCCO\t1\nCC\t0\n")
    frame = pd.DataFrame({"smiles": ["CCO", "CC"], "label": [1.0, 0.0]})
    frame.to_parquet(tmp_path / "m.parquet")
    tsv, parquet = load(tmp_path / "m.tsv"), load(tmp_path / "m.parquet")
    assert np.array_equal(tsv.x, parquet.x)
    assert tsv.class_names == parquet.class_names == ("0", "1")
    smi = load(write(tmp_path / "m.smi", "CCO first one\nCC\n"), labels="optional")
    assert (smi.ids, smi.y.tolist()) == (("first one", "2"), [-1, -1])


FIELDS = "expected 2 fields, got 3 (quote fields that contain a separator)"
BAD = {
    "an impossible molecule": (
        "smiles,label\nCC,0\nC(C)(C)(C)(C)C,1\nC(,1\n",
        r"m.csv, line 3: 'C\(C\).*' is not a possible molecule \(Explicit valence.* 2 of 3 molecules cannot be read "
        r"\(lines 3, 4\)\. Correct them, or leave them out with skip_invalid=True"),
    "an empty SMILES": ("smiles,label\n,0\nC,1\n", r"line 2: the SMILES is empty"),
    "no SMILES column": (
        "formula,label\nC,0\n", r"m.csv: no column is called smiles or .* the columns are 'formula', 'label'\. "
        r"Say which one holds the SMILES: smiles=NAME \(--smiles NAME\)"),
    "no obvious target": (
        "smiles,a,b\nC,0,1\n", r"no column is called label or .*'smiles', 'a', 'b'\. .* target=NAME \(--target "
        r"NAME\)\. To predict all of them, add --task multilabel"),
    "two targets": (
        "smiles,Target,Active\nC,0,1\n", r"m.csv: expected one column with the classes, got 'Target' and 'Active'\. "
        r"Say which one holds the classes: target=NAME \(--target NAME\)"),
    "no target at all": ("smiles\nC\n", r"there is no column with the classes. Add one \(in Python, labels="),
    "an empty target": ("smiles,label\nC,\nCC,\n", r"m.csv: there are no class labels"),
    "one class": ("smiles,label\nC,1\nCC,1\n", r"m.csv: all 2 labelled graphs are of one class"),
    "no rows": ("smiles,label\n", r"m.csv: there are column names but no rows"),
    "nothing": ("", r"m.csv: the file is empty"),
    "a field too many": ("smiles,label\nC,1,2\n", r"m.csv, line 2: expected 2 fields, got 3 \(quote fields"),
    "an id twice": ("id,smiles,label\na,C,1\na,CC,0\n", r"m.csv, line 3: id 'a' was used before, in line 2"),
    "a column twice": ("smiles,smiles,label\nC,C,1\n", r"m.csv, line 1: two columns are called 'smiles'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_tables(tmp_path, case):
    text, sentence = BAD[case]
    with pytest.raises(DataError, match=sentence):
        load(write(tmp_path / "m.csv", text))


def test_a_latin_1_table_is_refused_and_can_be_named(tmp_path):
    path = write(tmp_path / "m.csv", "smiles,label\nC,sauer\nCC,süß\n", "latin-1")
    with pytest.raises(DataError, match=r"m.csv, line 3: byte 0xfc is not utf-8 text. Save the file as UTF-8, or name"):
        load(path)
    assert load(path, encoding="latin-1").class_names == ("sauer", "süß")
    spreadsheet = write(tmp_path / "u.csv", "smiles,label\nC,sauer\nCC,süß\n", "utf-16")
    with pytest.raises(DataError, match="such as encoding='utf-16'"):
        load(spreadsheet)
    assert load(spreadsheet, encoding="utf-16").class_names == ("sauer", "süß")
    with pytest.raises(DataError, match="'klingon' is not the name of a text encoding"):
        load(path, encoding="klingon")


def test_columns_by_name(tmp_path):
    path = write(tmp_path / "m.csv", "mol,a,b,key\nC,0,x,k1\nCC,1,x,k2\n")
    graphs = load(path, smiles="mol", target="a", id_column="key")
    assert (graphs.y.tolist(), graphs.ids) == ([0, 1], ("k1", "k2"))
    with pytest.raises(DataError, match=r"m\.csv: there is no column 'c'; the columns are 'mol', 'a', 'b', 'key'"):
        load(path, smiles="mol", target="c")
    with pytest.raises(DataError, match="molecules have fixed atom features, so features='degree' does not"):
        load(path, smiles="mol", target="a", features="degree")


def test_rows_that_cannot_be_read_are_skipped_on_request(tmp_path):
    path = write(tmp_path / "m.csv", "smiles,label\nC,0\nC(,1\nCC,1\nCC,1,1\n")
    reading = read(path, skip_invalid=True)
    graphs, skipped = reading.graphs, reading.skipped
    assert graphs.source_text == ("C", "CC")
    assert sorted(skipped) == [(3, "'C(' is not SMILES that RDKit can read"), (5, FIELDS)]
    with pytest.raises(DataError, match=r"none of the 1 molecules could be read\. Line 2: 'C\(' is not SMILES"):
        load(write(tmp_path / "n.csv", "smiles,label\nC(,0\n"), skip_invalid=True)


def test_rows_keep_their_place_in_the_table(tmp_path):
    """The index of a molecule is that of its row, whichever rows are skipped; empty lines are not rows."""
    path = write(tmp_path / "m.csv", "smiles,label\nC,0\nC(,1\n\nCC,1,1\nCC,1\nCCC,0\n")
    graphs = load(path, skip_invalid=True)
    assert (graphs.places.tolist(), graphs.ids, graphs.named) == ([0, 3, 4], ("2", "6", "7"), False)
    assert graphs.subset([2, 0]).places.tolist() == [4, 0]
    cut = list(stream(path, chunk=2, skip_invalid=True))
    assert np.concatenate([piece.places for piece in cut]).tolist() == [0, 3, 4]
    whole = load(write(tmp_path / "w.csv", "id,smiles,label\na,C,0\n,CC,1\n"))
    assert (whole.places.tolist(), whole.ids, whole.named) == ([0, 1], ("a", "3"), True)


def test_the_lines_of_a_table_that_names_its_separator(tmp_path):
    path = write(tmp_path / "m.csv", "sep=;\nsmiles;label\nC;0\nC(;1\nCC;1\n")
    reading = read(path, skip_invalid=True)
    assert reading.graphs.ids == ("3", "5")
    assert [row.line for row in reading.skipped] == [4]


@pytest.mark.parametrize("word", ["NA", "n/a", "#N/A", "NaN", "nan", "NULL", "None", "?", "-", "<NA>"])
def test_values_for_a_missing_class_are_reported(tmp_path, word):
    reading = read(write(tmp_path / "m.csv", f"smiles,label\nC,0\nCC,{word}\nCCC,1\nCCO, {word}\n"))
    graphs = reading.graphs
    assert (graphs.y.tolist(), graphs.class_names, reading.missing) == ([0, -1, 1, -1], ("0", "1"), {word: 2})


def test_a_known_class_is_never_treated_as_missing(tmp_path):
    recipe = {"version": 1, "kind": "smiles", "smiles": "smiles", "target": "label", "classes": ["none", "some"]}
    reading = read(write(tmp_path / "m.csv", "smiles,label\nC,none\nCC,?\n"), recipe=recipe)
    assert (reading.graphs.y.tolist(), reading.missing) == ([0, -1], {"?": 1})


def test_ids_may_repeat_in_data_to_predict(tmp_path):
    path = write(tmp_path / "m.csv", "id,smiles,label\na,C,0\na,CC,1\n")
    recipe = {"version": 1, "kind": "smiles", "smiles": "smiles", "target": "label", "classes": ["0", "1"]}
    assert load(path, recipe=recipe).ids == ("a", "a")
    for chunk in (1, 10):
        assert [i for piece in stream(path, recipe=recipe, chunk=chunk) for i in piece.ids] == ["a", "a"]


def test_duplicate_molecules_are_counted(tmp_path):
    rows = "OCC,0\nCCO,0\nC,0\nc1ccccc1,1\nC1=CC=CC=C1,0\nCCO,0\n"
    assert duplicates(load(write(tmp_path / "m.csv", f"smiles,label\n{rows}"))) == (2, 5, 1)
    assert duplicates(load("synthetic:cycles?graphs=6")) == (0, 0, 0)


def test_new_molecules_with_the_recipe_of_old_ones(tmp_path):
    old = load(write(tmp_path / "old.csv", "smiles,toxic\nC,no\nCC,yes\n"))
    plain = load(write(tmp_path / "new.csv", "smiles,price\nCO,3.5\n"), recipe=old.recipe)
    assert (plain.y.tolist(), plain.class_names, plain.feature_names) == ([-1], ("no", "yes"), old.feature_names)
    reported = load(write(tmp_path / "new.csv", "smiles,toxic\nCO,yes\n"), recipe=old.recipe)
    assert reported.y.tolist() == [1]
    with pytest.raises(DataError, match=r"new\.csv, line 2: class 'maybe', expected one of 'no', 'yes'"):
        load(write(tmp_path / "new.csv", "smiles,toxic\nCO,maybe\n"), recipe=old.recipe)
    with pytest.raises(DataError, match="the recipe is for sources of kind 'graph', and this one is 'smiles'"):
        load(tmp_path / "new.csv", recipe=load("synthetic:cycles").recipe)
    with pytest.raises(ConfigError, match="features and recipe exclude each other"):
        load(tmp_path / "new.csv", recipe=old.recipe, features="auto")


def test_streaming_a_table(tmp_path):
    path = write(tmp_path / "m.csv", "smiles,label\n" + "C,0\nCC,1\nC(,1\n" * 5)
    recipe = {"version": 1, "kind": "smiles", "smiles": "smiles", "target": "label", "classes": ["0", "1"]}
    readings = list(read_pieces(path, recipe=recipe, chunk=4, skip_invalid=True))
    pieces, skipped = [r.graphs for r in readings], [row for r in readings for row in r.skipped]
    assert [len(piece) for piece in pieces] == [3, 3, 2, 2]
    assert np.concatenate([piece.y for piece in pieces]).tolist() == [0, 1] * 5
    assert [row.line for row in skipped] == [4, 7, 10, 13, 16]
    with pytest.raises(DataError, match="line 4: "):
        list(stream(path, recipe=recipe))
    assert next(stream(path, chunk=2)).y.tolist() == [-1, -1]  # without a recipe the classes are unknown


def test_without_rdkit_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(MissingExtraError, match=r'rdkit is not installed. Run: pip install "asapool\[chem\]"'):
        load(write(tmp_path / "m.csv", "smiles,label\nC,0\n"))


def test_nothing_heavy_is_imported_before_it_is_used():
    code = (
        "import sys, asapool.data, asapool.cli.main\n"
        "heavy = 'torch torch_geometric rdkit pandas networkx numba scipy sklearn pyarrow'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
