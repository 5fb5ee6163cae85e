"""`asapool data`: the answers on standard output, one sentence on standard error when something is wrong."""

import json
import sys

import pytest

from asapool import data
from asapool.cli import main as cli
from asapool.data import Split, load


def run(capsys, monkeypatch, *words):
    """Run the command as the shell would: its exit code, standard output and standard error."""
    monkeypatch.setattr(sys, "argv", ["asapool", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out = capsys.readouterr()
    return end.value.code or 0, out.out, out.err


@pytest.fixture
def asapool(capsys, monkeypatch):
    return lambda *words: run(capsys, monkeypatch, *words)


def test_info_foresees_what_pooling_will_do(asapool):
    code, out, _ = asapool("data", "info", "synthetic:trees?graphs=20", "--ratio", "0.5", "--levels", "2")
    rows = [line.split() for line in out.splitlines() if line.startswith(("topk", "asap", "input"))]
    assert code == 0
    assert [row[0] + row[1] for row in rows] == ["input0", "topk1", "topk2", "asap1", "asap2"]
    pieces = {(row[0], row[1]): float(row[5]) for row in rows}
    assert pieces["asap", "1"] < pieces["topk", "1"]  # soft edges hold trees together
    assert out.count("\n- ") >= 1
    code, out, _ = asapool("data", "info", "synthetic:trees?graphs=20", "--ratio", "0.5", "--levels", "2", "--json")
    assert len(json.loads(out)["forecast"]["levels"]) == 5


def test_info_shows_the_statistics(asapool):
    code, out, err = asapool("data", "info", "synthetic:motifs?graphs=10")
    lines = dict(line.split(None, 1) if "  " not in line else line.split("  ", 1) for line in out.splitlines())
    assert (code, err) == (0, "")
    assert lines["graphs"].strip() == "10"
    assert lines["mean nodes"].strip() == "25.00"
    assert lines["classes"].strip() == "2 (house: 5, ring: 5)"
    assert lines["ground truth"].strip() == "yes"


def test_info_says_where_the_classes_came_from(asapool, tmp_path):
    (tmp_path / "m.csv").write_text("smiles,Toxic\nC,0\nCC,1\nCCC,?\n")
    code, out, err = asapool("data", "info", tmp_path / "m.csv")
    assert code == 0
    assert any(line.split() == ["label", "column", "Toxic"] for line in out.splitlines())
    assert err.startswith("treated as missing labels: '?' (1 rows)")
    assert json.loads(asapool("data", "info", tmp_path / "m.csv", "--json")[1])["class_column"] == "Toxic"
    (tmp_path / "m.csv").write_text("smiles,Target,Active\nC,0,1\n")
    code, out, err = asapool("data", "info", tmp_path / "m.csv")
    assert (code, out) == (2, "")
    assert "got 'Target' and 'Active'" in err
    assert "--target" in err


def test_info_names_the_columns_that_may_hold_the_labels(asapool, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("smiles,logS,pKa\nCCO,1.5,7\nCCC,2.5,8\n")
    code, out, err = asapool("data", "info", path)
    assert (code, "0 (none)" in out) == (0, True)
    assert "no labels were read; they may be in 'logS', 'pKa'. Say which one holds the classes: target=NAME" in err
    assert "--task regression if they hold measured values" in err
    assert "no labels" not in asapool("data", "info", path, "--target", "logS")[2]


def test_json_is_the_very_object(asapool):
    from dataclasses import asdict

    code, out, _ = asapool("data", "info", "synthetic:motifs?graphs=10", "--json")
    assert code == 0
    assert json.loads(out) == asdict(load("synthetic:motifs?graphs=10").summary())


def test_the_papers_numbers(asapool, shared_datasets):
    code, out, _ = asapool("data", "info", shared_datasets / "PROTEINS.zip")
    assert code == 0
    assert all(number in out for number in ("1113", "39.06", "72.82"))


@pytest.mark.parametrize("suffix", ["npz", "jsonl"])
def test_convert_writes_the_same_graphs(asapool, tmp_path, suffix):
    out_path = tmp_path / f"a.{suffix}"
    code, out, _ = asapool("data", "convert", "synthetic:trees?graphs=6", out_path, "--features", "constant", "--json")
    graphs = load(out_path)
    assert code == 0
    assert graphs.feature_names == ("constant",)
    assert json.loads(out) == {
        "out": str(out_path), "graphs": 6, "bytes": out_path.stat().st_size, "fingerprint": graphs.fingerprint,
    }  # fmt: skip
    assert [p.name for p in tmp_path.iterdir()] == [out_path.name]


def test_convert_refuses_other_formats(asapool, tmp_path):
    code, out, err = asapool("data", "convert", "synthetic:trees", tmp_path / "a.xls")
    assert (code, out) == (2, "")
    assert err.strip().endswith("a.xls: expected a name that ends with .graphs, .npz or .jsonl")


@pytest.mark.parametrize("split", ["authors", "stratified", "stratified-folds"])
def test_split_writes_a_file_for_this_source(asapool, tmp_path, split):
    source = "synthetic:cycles?graphs=60"
    code, out, err = asapool("data", "split", source, tmp_path / "s.json", "--split", split, "--seed", 7, "--fold", 3)
    assert (code, err) == (0, "")
    assert any(line.split() == ["split", split] for line in out.splitlines())
    made = Split.load(tmp_path / "s.json")
    assert len(made.train) + len(made.val) + len(made.test) == 60
    made.check(load(source))


@pytest.mark.parametrize(
    ("old", "new"),
    [("authors", "authors"), ("stratified", "stratified-folds"), ("single", "stratified")],
)
def test_the_old_words_of_data_split_mean_what_they_meant(asapool, tmp_path, old, new):
    words = ("data", "split", "synthetic:cycles?graphs=60", tmp_path / "s.json", "--seed", 7)
    assert asapool(*words, "--split", new)[0] == 0
    expected = (tmp_path / "s.json").read_bytes()
    code, _, err = asapool(*words, "--method", old)
    assert code == 0
    note = f"data split --method is now called --split and takes the same values as in train: write --split {new}\n"
    assert err == note
    assert (tmp_path / "s.json").read_bytes() == expected


def test_the_words_of_split_mean_the_same_in_train_and_data_split(asapool, tmp_path):
    source = "synthetic:cycles?graphs=60"
    for kind in ("stratified", "stratified-folds", "authors"):
        out = tmp_path / kind
        assert asapool("data", "split", source, tmp_path / "s.json", "--split", kind, "--seed", 3)[0] == 0
        train = ("--seed", 3, "--epochs", 1, "--method", "mlp", "--hidden", 4, "--no-report", "--out", out)
        assert asapool("train", source, "--split", kind, *train)[0] == 0
        assert json.loads((out / "split.json").read_text()) == json.loads((tmp_path / "s.json").read_text())


def test_scaffold_and_given_splits(asapool, tmp_path):
    rows = [f"m{k},C1{'C' * (k + 2)}1,{k % 2}\n" for k in range(9)]  # nine scaffolds
    (tmp_path / "m.csv").write_text("id,smiles,label\n" + "".join(rows))
    assert asapool("data", "split", tmp_path / "m.csv", tmp_path / "s.json", "--split", "scaffold")[0] == 0
    (tmp_path / "parts.csv").write_text("id,part\nm0,train\nm1,test\n")
    words = ("data", "split", tmp_path / "m.csv", tmp_path / "g.json")
    for more in (("--split", tmp_path / "parts.csv"), ("--method", "given", "--given", tmp_path / "parts.csv")):
        assert asapool(*words, *more)[0] == 0
        assert Split.load(tmp_path / "g.json").test.tolist() == [1]
    code, _, err = asapool(*words, "--method", "given")
    assert (code, err) == (2, "asapool: --method given needs the split file. Write --split FILE instead\n")


def test_skipped_rows_are_reported_on_standard_error(asapool, tmp_path):
    (tmp_path / "m.csv").write_text("smiles,label\nC,0\nC(,1\nCC,1\n" + "N(,1\n" * 25)
    code, out, err = asapool("data", "info", tmp_path / "m.csv")
    assert (code, out) == (2, "")
    assert "m.csv, line 3: 'C(' is not SMILES" in err
    code, out, err = asapool("data", "info", tmp_path / "m.csv", "--skip-invalid", "--json")
    assert json.loads(out)["graphs"] == 2
    assert "skipped line 3: 'C(' is not SMILES that RDKit can read" in err
    assert "skipped 6 more lines, 26 in all" in err


def test_an_error_is_one_sentence_and_code_2(asapool):
    code, out, err = asapool("data", "info", "gone.csv")
    assert (code, out) == (2, "")
    assert err.startswith("asapool: gone.csv: there is no such file or folder.")
    assert err.count("\n") == 1


def test_an_interruption_is_a_sentence_and_code_130(asapool, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(data, "read", interrupt)
    code, out, err = asapool("data", "info", "synthetic:trees")
    assert (code, out) == (130, "")
    assert err == "asapool: interrupted; no partial files were left behind\n"


def test_version_and_usage(asapool):
    from asapool import __version__

    code, out, err = asapool("--version")
    assert (code, err) == (0, "")
    assert out.startswith(f"asapool {__version__}\ntorch ")
    assert asapool("data", "info")[0] == 2
    assert asapool("data", "nonsense")[0] == 2
