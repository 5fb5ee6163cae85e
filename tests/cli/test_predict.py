"""`asapool predict`, `evaluate` and `methods`: from a trained model to rows for people and programs."""

import csv
import io
import json

import pytest

from asapool.errors import CheckpointError, DataError
from tests.cli.commands import begin, call, finish

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O", "CCCC", "C1CCC1", "CO", "CN", "CS"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("predict")
    rows = "".join(f"m{k},{s},{'ab'[k % 2]}\n" for k, s in enumerate(SMILES))
    (path / "train.csv").write_text(f"id,smiles,label\n{rows}")
    (path / "new.csv").write_text("id,smiles\nn1,CCO\nn2,C1CC\nn3,CCN\n")
    call("train", path / "train.csv", "--epochs", 2, "--hidden", 8, "--out", path / "run", "--val", 0.2, "--test", 0.2)
    return path


def test_rows_go_to_a_file_or_to_standard_output(folder, tmp_path):
    model = folder / "run" / "model.safetensors"
    said = call("predict", model, folder / "train.csv", "-o", tmp_path / "out.csv", "--chunk", 5)
    assert "graphs" in said.stdout
    assert "12" in said.stdout
    printed = call("predict", model, folder / "train.csv").stdout
    assert [row["id"] for row in csv.DictReader(io.StringIO(printed))] == [f"m{k}" for k in range(12)]
    assert (
        (tmp_path / "out.csv").read_text().splitlines()[0] == "graph,id,predicted,p(a),p(b)" == printed.splitlines()[0]
    )


def test_json_in_both_forms(folder, tmp_path):
    model = folder / "run" / "model.safetensors"
    rows = json.loads(call("predict", model, folder / "new.csv", "--skip-invalid", "--json").stdout)
    assert [(row["graph"], row["id"]) for row in rows["predictions"]] == [(0, "n1"), (2, "n3")]
    assert rows["skipped"][0]["line"] == 3
    said = json.loads(
        call("predict", model, folder / "new.csv", "--skip-invalid", "--json", "-o", tmp_path / "o.csv").stdout
    )
    assert said["graphs"] == 2
    assert said["skipped"][0]["line"] == 3
    assert sum(said["predicted"].values()) == 2


def test_a_row_that_cannot_be_read_is_refused_or_told(folder, tmp_path):
    model = folder / "run" / "model.safetensors"
    with pytest.raises(DataError, match="line 3"):
        call("predict", model, folder / "new.csv", "-o", tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()
    said = call("predict", model, folder / "new.csv", "--skip-invalid", "-o", tmp_path / "o.csv")
    assert "skipped line 3" in said.stderr
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_nothing_is_printed_when_nothing_can_be_predicted(folder, tmp_path, json):
    bad, empty = tmp_path / "bad.csv", tmp_path / "empty.csv"
    bad.write_text("id,smiles\nn2,C1CC\n")
    empty.write_text("id,smiles\n")
    for words, says in (((bad,), "line 2"), ((bad, "--skip-invalid"), "none of the 1 rows"), ((empty,), "it has none")):
        code, out, err = finish(begin("predict", folder / "run", *words, *json))
        assert (code, out) == (2, "")
        assert says in err
    assert "skipped line 2" in finish(begin("predict", folder / "run", bad, "--skip-invalid"))[2]


def test_a_run_folder_stands_for_its_model(folder, tmp_path):
    model = folder / "run" / "model.safetensors"
    assert (
        call("predict", folder / "run", folder / "train.csv").stdout
        == call("predict", model, folder / "train.csv").stdout
    )
    assert "balanced accuracy" in call("evaluate", folder / "run", folder / "train.csv").stdout
    with pytest.raises(CheckpointError, match=r"model\.safetensors: there is no such file"):
        call("predict", tmp_path, folder / "new.csv")


def test_evaluate_tells_what_it_took_for_no_class(folder, tmp_path):
    (tmp_path / "told.csv").write_text("smiles,label\nCCO,a\nCCN,NA\nCC,b\n")
    said = call("evaluate", folder / "run", tmp_path / "told.csv", "--json")
    assert json.loads(said.stdout)["graphs"] == 2
    assert "taken for no class: 'NA' (1 rows)" in said.stderr


def test_evaluate_shows_the_scores_and_warns_of_the_training_graphs(folder):
    said = call("evaluate", folder / "run" / "model.safetensors", folder / "train.csv")
    assert "balanced accuracy" in said.stdout
    assert "was trained on" in said.stderr
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
