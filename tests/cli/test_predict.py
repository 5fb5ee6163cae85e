"""`asapool predict`, `evaluate` and `methods`: from a trained model to rows for people and programs."""

import csv
import io
import json

import pytest

from asapool.cli._output import terminal_safe, working
from asapool.cli._scores import confusion_text
from asapool.errors import CheckpointError, ConfigError, DataError
from tests.cli.commands import call, fork

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O", "CCCC", "C1CCC1", "CO", "CN", "CS"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("predict")
    rows = "".join(f"m{k},{s},{'ab'[k % 2]}\n" for k, s in enumerate(SMILES))
    (path / "train.csv").write_text(f"id,smiles,label\n{rows}")
    (path / "new.csv").write_text("id,smiles\nn1,CCO\nn2,C1CC\nn3,CCN\n")
    call("train", path / "train.csv", "--epochs", 2, "--hidden", 8, "--out", path / "run", "--val", 0.2, "--test", 0.2,
         "--no-report")  # fmt: skip
    return path


def test_rows_go_to_a_file_or_to_standard_output(folder, tmp_path):
    model = folder / "run" / "model.safetensors"
    output = call("predict", model, folder / "train.csv", "-o", tmp_path / "out.csv", "--chunk", 5)
    assert "graphs" in output.stdout
    assert "12" in output.stdout
    printed = call("predict", model, folder / "train.csv").stdout
    assert [row["id"] for row in csv.DictReader(io.StringIO(printed))] == [f"m{k}" for k in range(12)]
    assert (
        (tmp_path / "out.csv").read_text().splitlines()[0]
        == "graph,id,smiles,predicted,p(a),p(b)"
        == printed.splitlines()[0]
    )


def test_json_in_both_forms(folder, tmp_path):
    model = folder / "run" / "model.safetensors"
    rows = json.loads(call("predict", model, folder / "new.csv", "--skip-invalid", "--json").stdout)
    assert [(row["graph"], row["id"]) for row in rows["predictions"]] == [(0, "n1"), (2, "n3")]
    assert rows["skipped"][0]["line"] == 3
    output = json.loads(
        call("predict", model, folder / "new.csv", "--skip-invalid", "--json", "-o", tmp_path / "o.csv").stdout
    )
    assert output["graphs"] == 2
    assert output["skipped"][0]["line"] == 3
    assert sum(output["predicted"].values()) == 2


def test_a_row_that_cannot_be_read_is_refused_or_reported(folder, tmp_path):
    model = folder / "run" / "model.safetensors"
    with pytest.raises(DataError, match="line 3"):
        call("predict", model, folder / "new.csv", "-o", tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()
    output = call("predict", model, folder / "new.csv", "--skip-invalid", "-o", tmp_path / "o.csv")
    assert "skipped line 3" in output.stderr
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 3


def test_several_smiles_are_a_source_and_several_files_are_not(folder):
    printed = call("predict", folder / "run", "CCO", "c1ccccc1", "[nH]1ccc[cH:1]1").stdout
    assert [row["smiles"] for row in csv.DictReader(io.StringIO(printed))] == ["CCO", "c1ccccc1", "[nH]1ccc[cH:1]1"]
    assert len(call("embed", folder / "run", "CCO", "CCN").stdout.splitlines()) == 3
    with pytest.raises(DataError, match=r"'C\(' is not SMILES that RDKit can read"):
        call("predict", folder / "run", "CCO", "C(")
    for others in (("CCO", folder / "new.csv"), ("CCO", "-"), ("CCO", "missing.csv"), ("CCO", "smiles:CC,C")):
        with pytest.raises(ConfigError, match="expected one source, or several SMILES, got 2 arguments, among them"):
            call("predict", folder / "run", *others)


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_nothing_is_printed_when_nothing_can_be_predicted(folder, tmp_path, json):
    bad, empty = tmp_path / "bad.csv", tmp_path / "empty.csv"
    bad.write_text("id,smiles\nn2,C1CC\n")
    empty.write_text("id,smiles\n")
    for words, says in (((bad,), "line 2"), ((bad, "--skip-invalid"), "none of the 1 rows"), ((empty,), "got none")):
        code, out, err = fork("predict", folder / "run", *words, *json)
        assert (code, out) == (2, "")
        assert says in err
    assert "skipped line 2" in fork("predict", folder / "run", bad, "--skip-invalid")[2]


def hub_files(folder):
    """Two labelled stars of 6 nodes in one file; in another one of 60 nodes between them, whose A^p has 900 entries."""

    def star(name, n, label):
        edges = [[0, k] for k in range(1, n)]
        return json.dumps({"id": name, "nodes": n, "edges": edges, "label": label})

    small = [star(f"s{k}", 6 + k % 3, "ab"[k % 2]) for k in range(12)]
    (folder / "small.jsonl").write_text("\n".join(small) + "\n")
    (folder / "hub.jsonl").write_text("\n".join([small[0], star("hub", 60, "a"), small[1]]) + "\n")


def test_a_graph_with_a_hub_is_refused_by_name_or_left_out(tmp_path, monkeypatch):
    hub_files(tmp_path)
    call("train", tmp_path / "small.jsonl", "--epochs", 1, "--hidden", 8, "--out", tmp_path / "run", "--no-report")
    monkeypatch.setenv("ASAPOOL_MAX_POOLED_EDGES", "899")
    words = ("predict", tmp_path / "run", tmp_path / "hub.jsonl", "-o", tmp_path / "o.csv")
    code, out, err = fork(*words)
    assert (code, out, (tmp_path / "o.csv").exists()) == (2, "", False)
    assert "graph 1: id 'hub' (60 nodes) would have up to 900 pooled edges" in err
    assert "--skip-invalid" in err
    for jobs in (1, 2):
        code, out, err = fork(*words, "--skip-invalid", "-j", jobs)
        assert code == 0
        assert "skipped graph 1: id 'hub' (60 nodes) would have up to 900 pooled edges" in err
        assert [row["id"] for row in csv.DictReader((tmp_path / "o.csv").read_text().splitlines())] == ["s0", "s1"]
    rows = json.loads(fork(*words[:3], "--skip-invalid", "--json")[1])
    assert rows["skipped"][0]["graph"] == 1
    for command in ("evaluate", "embed"):
        assert "id 'hub'" in fork(command, *words[1:3])[2]
        assert fork(command, *words[1:3], "--skip-invalid")[0] == 0
    monkeypatch.setenv("ASAPOOL_MAX_POOLED_EDGES", "900")
    assert fork(*words)[0] == 0


def test_training_names_the_graph_with_a_hub(tmp_path, monkeypatch):
    hub_files(tmp_path)
    small = (tmp_path / "small.jsonl").read_text()
    (tmp_path / "all.jsonl").write_text(small + (tmp_path / "hub.jsonl").read_text().splitlines()[1] + "\n")
    (tmp_path / "split.json").write_text(json.dumps({"train": [*range(6), 12], "val": [6, 7, 8], "test": [9, 10, 11]}))
    words = ("train", tmp_path / "all.jsonl", "--split", tmp_path / "split.json", "--epochs", 1, "--hidden", 8)
    monkeypatch.setenv("ASAPOOL_MAX_POOLED_EDGES", "899")
    code, _, err = fork(*words, "-o", tmp_path / "run")
    assert code == 2
    assert "graph 12: id 'hub' (60 nodes) would have up to 900 pooled edges" in err
    thinned = ("--set", "model.max_neighbours=8", "--set", "model.backend=reference")  # no loops to compile
    assert fork(*words, "-o", tmp_path / "thinned", *thinned)[0] == 0


def test_a_run_folder_stands_for_its_model(folder, tmp_path):
    model = folder / "run" / "model.safetensors"
    assert (
        call("predict", folder / "run", folder / "train.csv").stdout
        == call("predict", model, folder / "train.csv").stdout
    )
    assert "balanced accuracy" in call("evaluate", folder / "run", folder / "train.csv").stdout
    with pytest.raises(CheckpointError, match=r"the folder contains no model\.safetensors"):
        call("predict", tmp_path, folder / "new.csv")


def test_evaluate_tells_what_it_took_for_no_class(folder, tmp_path):
    (tmp_path / "told.csv").write_text("smiles,label\nCCO,a\nCCN,NA\nCC,b\n")
    output = call("evaluate", folder / "run", tmp_path / "told.csv", "--json")
    assert json.loads(output.stdout)["graphs"] == 2
    assert "treated as missing labels: 'NA' (1 rows)" in output.stderr


def test_evaluate_shows_the_scores_and_warns_of_the_training_graphs(folder):
    output = call("evaluate", folder / "run" / "model.safetensors", folder / "train.csv")
    assert "balanced accuracy" in output.stdout
    assert "was trained on" in output.stderr
    scores = json.loads(call("evaluate", folder / "run" / "model.safetensors", folder / "train.csv", "--json").stdout)
    assert scores["graphs"] == 12
    assert sum(map(sum, scores["confusion"])) == 12


def test_what_is_no_model_and_other_graphs_are_refused(folder):
    with pytest.raises(CheckpointError, match="no such file"):
        call("predict", folder / "absent.safetensors", folder / "new.csv")
    with pytest.raises((CheckpointError, DataError)):
        call("predict", folder / "run" / "model.safetensors", "synthetic:cycles?graphs=5")


def test_methods_are_listed():
    assert {m["name"] for m in json.loads(call("methods", "--json").stdout)} >= {"asap", "topk", "mlp", "none"}
    assert "hierarchical" in call("methods").stdout


def test_the_ending_of_out_decides_the_format(folder, tmp_path):
    from pyarrow.parquet import read_table

    words = ("predict", folder / "run", folder / "train.csv", "--chunk", 5, "-o")
    for name in ("o.csv", "o.jsonl", "o.parquet"):
        assert call(*words, tmp_path / name).exit_code == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "o.csv").read_text())))
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    table = read_table(tmp_path / "o.parquet").to_pylist()
    assert [list(row) for row in (rows[0], lines[0], table[0])] == [
        ["graph", "id", "smiles", "predicted", "p(a)", "p(b)"]
    ] * 3
    for row, line, cells in zip(rows, lines, table, strict=True):
        assert (int(row["graph"]), row["id"], row["predicted"]) == (line["graph"], line["id"], line["predicted"])
        assert (cells["graph"], cells["id"], cells["predicted"]) == (line["graph"], line["id"], line["predicted"])
        assert float(row["p(a)"]) == line["p(a)"] == pytest.approx(cells["p(a)"], abs=5.1e-7)


@pytest.mark.parametrize("name", ["o.xlsx", "o", "o.csv.gz"])
def test_another_ending_is_refused_before_any_work(folder, tmp_path, name):
    with pytest.raises(ConfigError, match=r"expected a name that ends in \.csv, \.jsonl or \.parquet"):
        call("predict", "no-model", "no-source", "-o", tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "run", "new.csv", "-o", "new.csv"),
        ("predict", "run", "new.csv", "-o", "link.csv"),
        ("embed", "run", "new.csv", "-o", "new.csv"),
        ("motifs", "run", "new.csv", "-o", "new.csv"),
        ("explain", "run", "graphs.json", "-o", "graphs.json"),
        ("data", "convert", "graphs.jsonl", "graphs.jsonl"),
        ("data", "split", "new.csv", "new.csv"),
    ],
)
def test_the_source_is_never_overwritten(folder, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").symlink_to(folder / "run")
    for name in ("new.csv", "graphs.json", "graphs.jsonl"):
        (tmp_path / name).write_text((folder / "train.csv").read_text())
    (tmp_path / "link.csv").symlink_to(tmp_path / "new.csv")
    before = {file: file.read_bytes() for file in tmp_path.glob("*.*")}
    with pytest.raises(ConfigError, match="is the source, and would be overwritten"):
        call(*words)
    assert before == {file: file.read_bytes() for file in tmp_path.glob("*.*")}


def test_names_cannot_control_the_terminal(tmp_path):
    bad = "\x1b[2Ja\u202eb\x9b1m"
    rows = "".join(f"n{k},{'C' * (k % 5 + 1)}{'ON'[k % 2]},{('ok', bad)[k % 2]}\n" for k in range(12))
    (tmp_path / "m.csv").write_text(f"id,smiles,label\n{rows}")
    run = ("--epochs", 1, "--hidden", 4, "--method", "mlp", "--val", 0.2, "--test", 0.2, "--no-report")
    for words in (
        ("train", tmp_path / "m.csv", *run, "--out", tmp_path / "r"),
        ("evaluate", tmp_path / "r", tmp_path / "m.csv"),
        ("predict", tmp_path / "r", tmp_path / "m.csv", "-o", tmp_path / "o.csv"),
    ):
        done = call(*words)
        assert done.exit_code == 0, done.stderr
        assert not set("\x1b\u202e\x9b") & set(done.stdout + done.stderr), words
    assert bad in (tmp_path / "o.csv").read_text()  # files hold names as they are
    out = io.StringIO()
    out.isatty = lambda: True
    terminal_safe(out).write(f"{bad},1\r\n")
    assert out.getvalue() == "\\x1b[2Ja\\u202eb\\x9b1m,1\n"


def test_brackets_in_a_name_are_not_markup(monkeypatch, capsys):
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes standard error for a terminal
    with working("Reading [/b] [red]x.csv"):
        pass
    assert "Reading [/b] [red]x.csv" in capsys.readouterr().err


def test_a_hundred_classes_are_a_line_that_can_be_read():
    names = [f"class {k}" for k in range(100)]
    matrix = [[7 if a == b else 0 for b in range(100)] for a in range(100)]
    assert confusion_text(names, matrix) == "100 classes; most frequent errors: no errors. --json has the matrix"
    matrix[3][5], matrix[4][0] = 2, 9
    text = "100 classes; most frequent errors: class 4 → class 0 (9), class 3 → class 5 (2). --json has the matrix"
    assert confusion_text(names, matrix) == text
