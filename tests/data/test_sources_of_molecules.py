"""Molecules from SDF, gzip, standard input, lists and the command line; extended bond features."""

import gzip
import io
import sys

import pytest
from rdkit import Chem

from asapool.data import load, read, stream, tables
from asapool.data.molecules import EXTENDED_NAMES
from asapool.errors import DataError

TABLE = "CompoundID,smiles,y\nA-1,CCO,0\nA-2,c1ccccc1,1\nA-3,CCN,0\n"


@pytest.fixture
def whole(tmp_path):
    (tmp_path / "m.csv").write_text(TABLE)
    return load(tmp_path / "m.csv")


def test_compound_ids_are_ids_and_names_that_repeat_are_not(whole, tmp_path):
    assert (whole.ids, whole.named) == (("A-1", "A-2", "A-3"), True)
    (tmp_path / "n.csv").write_text("Name,smiles,y\na,CCO,0\na,CCC,1\n")
    reading = read(tmp_path / "n.csv")
    assert (reading.graphs.ids, reading.graphs.named) == (("2", "3"), False)
    assert "the names in 'Name' are not unique" in reading.notes[0]


@pytest.mark.parametrize(
    "name",
    ["SampleID", "Sample_ID", "InChIKey", "idx", "Index", "CAS", "CAS number", "CAS-No.", "ChEMBL ID", "ZINC ID",
     "Molecule ChEMBL ID", "PubChem CID", "DTXSID", "Unnamed: 0", ""],
)  # fmt: skip
def test_ids_are_found_as_chemists_name_them(tmp_path, name):
    (tmp_path / "m.csv").write_text(f"{name},smiles,toxic\na,CCO,0\nb,CCC,1\n")
    graphs = load(tmp_path / "m.csv")
    assert (graphs.ids, graphs.named, graphs.recipe["target"]) == (("a", "b"), True, "toxic")


def test_a_second_id_is_not_a_label_and_a_named_target_is_not_an_id(tmp_path):
    (tmp_path / "m.csv").write_text("ID,Name,Canonical SMILES,logP\na,ethanol,CCO,0.5\nb,propane,CCC,1.5\n")
    assert load(tmp_path / "m.csv").target.names == ("logP",)
    assert load(tmp_path / "m.csv", task="regression").target.names == ("logP",)
    (tmp_path / "n.csv").write_text("smiles,index,mass\nCCO,0,1.5\nCCC,1,2.5\n")
    graphs = load(tmp_path / "n.csv", target="index")
    assert (graphs.ids, graphs.y.tolist(), graphs.named) == (("2", "3"), [0, 1], False)


def test_gzipped_tables_are_read_as_they_are(whole, tmp_path, monkeypatch):
    for name, text in (("m.csv.gz", TABLE), ("m.smi.gz", "CCO A-1\nc1ccccc1 A-2\nCCN A-3\n")):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
        again = load(tmp_path / name, labels="optional")
        assert (again.ids, again.name, again.x.tolist()) == (whole.ids, "m", whole.x.tolist())
    assert [len(piece) for piece in stream(tmp_path / "m.csv.gz", chunk=2)] == [2, 1]
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(TABLE.encode())[:-10])
    with pytest.raises(DataError, match=r"cut.csv.gz: cannot be read"):
        load(tmp_path / "cut.csv.gz")
    monkeypatch.setattr(tables, "FREE", 1000)
    (tmp_path / "bomb.smi.gz").write_bytes(gzip.compress(b"C" * 10**7))
    with pytest.raises(DataError, match=r"unpacks to more than the limit"):
        load(tmp_path / "bomb.smi.gz", labels="optional")


def test_sdf_records_are_rows(whole, tmp_path):
    out = io.StringIO()
    writer = Chem.SDWriter(out)
    for title, smiles, y in (row.split(",") for row in TABLE.splitlines()[1:]):
        mol = Chem.MolFromSmiles(smiles)
        mol.SetProp("_Name", title)
        mol.SetProp("y", y)
        writer.write(mol)
    writer.close()
    (tmp_path / "m.sdf").write_text(out.getvalue())
    graphs = load(tmp_path / "m.sdf")
    assert (graphs.ids, graphs.y.tolist(), graphs.class_names) == (whole.ids, whole.y.tolist(), whole.class_names)
    assert [Chem.CanonSmiles(s) for s in graphs.source_text] == [Chem.CanonSmiles(s) for s in whole.source_text]
    assert load(tmp_path / "m.sdf", recipe=whole.recipe).y.tolist() == whole.y.tolist()
    (tmp_path / "bad.sdf").write_text(out.getvalue().replace("V2000", "V9000", 1))
    assert [row.line for row in read(tmp_path / "bad.sdf", skip_invalid=True).skipped] == [1]


@pytest.mark.parametrize("text", [TABLE, "CCO\nc1ccccc1\nCCN\n", '{"nodes": 2, "edges": [[0, 1]]}\n'])
def test_standard_input_is_a_source(text, whole, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    graphs = load("-", labels="optional")
    assert len(graphs) == (1 if text.startswith("{") else 3)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["sdf", "csv", "smi"])
def test_the_content_of_standard_input_says_what_it_is(kind, packed, whole, monkeypatch):
    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)) for smiles in whole.source_text]
    sdf = "".join(f"{title}{block}$$$$\n" for title, block in zip(whole.ids, blocks, strict=True))
    text = {"sdf": sdf, "csv": TABLE, "smi": "CCO A-1\nc1ccccc1 A-2\nCCN A-3\n"}[kind].encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text) if packed else text)))
    assert load("-", labels="optional").ids == whole.ids


def test_what_is_wrong_with_standard_input_is_said_of_it(monkeypatch):
    for content, sentence in (
        (b"smiles,y\nC(,0\n", "^standard input, line 2: "),
        (b"\x1f\x8bno", "cannot be unpacked"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(DataError, match=sentence):
            load("-", labels="optional")


def test_smiles_are_sources_themselves(whole):
    assert load(["CCO", "c1ccccc1", "CCN"]).x.tolist() == whole.x.tolist()
    assert load("smiles:CCO,c1ccccc1,CCN").source_text == whole.source_text
    assert load("c1ccccc1", recipe=whole.recipe).source_text == ("c1ccccc1",)
    with pytest.raises(DataError, match=r"'C\(' is not SMILES"):
        load(["CCO", "C("])
    with pytest.raises(DataError, match=r"graph 1: expected SMILES like the others, got int"):
        load(["CCO", 3])


def test_extended_bond_features_come_after_the_six(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,y\nC/C=C/C,0\nC/C=C\\C,1\nC=CC=C,1\n")
    basic, graphs = load(tmp_path / "m.csv"), load(tmp_path / "m.csv", edge_features="extended")
    assert graphs.edge_attr.shape[1] == len(EXTENDED_NAMES)
    assert (graphs.edge_attr[:, :6] == basic.edge_attr).all()
    conjugated, trans, cis = graphs.edge_attr[:, 6:].T
    assert (trans[:6].sum(), cis[6:12].sum(), trans.sum(), cis.sum()) == (2, 2, 2, 2)  # both directions of one bond
    assert (conjugated[:12].sum(), conjugated[12:].sum()) == (0, 6)
    assert load(tmp_path / "m.csv", recipe=graphs.recipe).edge_attr.tolist() == graphs.edge_attr.tolist()


def test_a_note_on_standard_input_names_it(monkeypatch):
    rows = "".join(f"m{k % 90},{'C' * (k % 9 + 1)},{k % 2}\n" for k in range(100))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"name,smiles,class\n{rows}".encode())))
    [note] = [note for note in read("-").notes if "not unique" in note]
    assert note.startswith("standard input: the names in 'name' are not unique")
