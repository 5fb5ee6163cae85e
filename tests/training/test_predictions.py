"""Predictions: in the order of the source, the same in pieces as whole, and bad rows are told, not fatal when asked."""

import csv
import io
import json

import numpy as np
import pytest

from asapool.data import load
from asapool.errors import AsapoolError, CheckpointError, DataError, WriteError
from asapool.models import ModelConfig, build, checkpoint
from asapool.models.ensemble import EnsembleModel
from asapool.training import predict
from asapool.training.embeddings import embed
from asapool.training.prediction_files import print_json, print_predictions, write_predictions
from asapool.training.predictions import evaluate, pieces, predict_source, predict_with_vectors
from tests.graphs import with_random_parameters

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O"]


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "molecules.csv"
    file.write_text("id,smiles,label\n" + "".join(f"m{k},{s},{'ab'[k % 2]}\n" for k, s in enumerate(SMILES)))
    return file


@pytest.fixture
def trained(table, tmp_path):
    graphs = load(table)
    model = build(ModelConfig(hidden=8), graphs.num_features, 2, seed=0)
    checkpoint.save(tmp_path / "m.safetensors", model, classes=graphs.class_names, recipe=graphs.recipe)
    return checkpoint.load(tmp_path / "m.safetensors")


def test_pieces_keep_the_order_and_cover_everything():
    graphs = load("synthetic:cycles?graphs=20&nodes=9")
    cut = pieces(graphs, [5, 3, 3, 19], nodes=10)
    assert np.concatenate(cut).tolist() == [5, 3, 3, 19]
    assert len(cut) > 1
    assert pieces(graphs, []) == []
    assert np.concatenate(pieces(graphs, nodes=1)).tolist() == list(range(20))


def test_the_size_of_the_pieces_does_not_matter(monkeypatch):
    graphs = load("synthetic:motifs?graphs=30")
    model = build(ModelConfig(hidden=8), graphs.num_features, 2, seed=0)
    whole = predict(model, graphs)
    one_by_one = np.concatenate([predict(model, graphs, [i]) for i in range(30)])
    assert np.allclose(whole, one_by_one, atol=1e-6)
    assert np.allclose(whole.sum(1), 1)
    assert predict(model, graphs, [7, 2]) == pytest.approx(whole[[7, 2]], abs=1e-6)


def test_a_file_in_pieces_gives_the_rows_of_the_whole(trained, table):
    def rows(chunk):
        out = io.StringIO()
        print_predictions(out, predict_source(trained, table, chunk=chunk), trained.target)
        return list(csv.DictReader(io.StringIO(out.getvalue())))

    whole, cut = rows(100), rows(2)
    assert [row["id"] for row in cut] == [f"m{k}" for k in range(7)] == [row["id"] for row in whole]
    assert [row["graph"] for row in cut] == [str(k) for k in range(7)]
    for a, b in zip(whole, cut, strict=True):
        assert float(a["p(a)"]) == pytest.approx(float(b["p(a)"]), abs=2e-6)
        assert a["predicted"] == b["predicted"]


def test_sets_are_read_when_they_are_needed(trained, table):
    """A row that cannot be read at the end of the file does not stop the pieces before it: nothing is read ahead."""
    table.write_text(table.read_text() + "bad,this is no molecule,a\n")
    running = predict_source(trained, table, chunk=2)
    assert [len(next(running)[0]) for _ in range(3)] == [2, 2, 2]
    with pytest.raises(DataError, match="line 9"):
        next(running)


def test_unreadable_rows_are_reported_and_left_out(trained, table):
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:3], "bad,C1CC,a", *lines[3:]]) + "\n")
    readings = []
    out = io.StringIO()
    done = print_predictions(
        out, predict_source(trained, table, chunk=3, skip_invalid=True, on_reading=readings.append), trained.target
    )
    assert done.graphs == 7
    assert [row.line for reading in readings for row in reading.skipped] == [4]
    with pytest.raises(DataError, match="line 4"):
        list(predict_source(trained, table))
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert [row["graph"] for row in rows] == ["0", "1", "3", "4", "5", "6", "7"]  # the row that was left out counts


def test_ids_are_carried_along_as_they_are(trained, tmp_path):
    """Ids that look like counted numbers, and an id that comes twice."""
    file = tmp_path / "new.csv"
    for ids in (["1", "0", "0"], ["0", "1", "2"]):
        file.write_text("id,smiles\n" + "".join(f"{own},CCO\n" for own in ids))
        for chunk in (2, 10):
            out = io.StringIO()
            print_predictions(out, predict_source(trained, file, chunk=chunk), trained.target)
            rows = list(csv.DictReader(io.StringIO(out.getvalue())))
            assert [(row["graph"], row["id"]) for row in rows] == list(zip("012", ids, strict=True))


@pytest.mark.parametrize("rows", ["", "n1,C1CC\n", "n1\n"])
def test_nothing_is_written_before_the_first_graphs_and_none_are_refused(trained, tmp_path, rows):
    file = tmp_path / "new.csv"
    file.write_text(f"id,smiles\n{rows}")
    for write in (print_predictions, print_json):
        out = io.StringIO()
        with pytest.raises(DataError, match=r"new.csv: expected graphs to predict, (got none|none of the 1 rows)"):
            write(out, predict_source(trained, file, skip_invalid=True), trained.target)
        assert out.getvalue() == ""
    if rows:
        with pytest.raises(DataError, match="line 2"):
            print_predictions(out, predict_source(trained, file), trained.target)
        assert out.getvalue() == ""


def test_the_csv_appears_whole_or_not_at_all(trained, table, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("old")
    table.write_text(table.read_text() + "bad,C1CC,a\n")
    with pytest.raises(AsapoolError, match="line 9"):
        write_predictions(target, predict_source(trained, table, chunk=2), trained.target)
    assert target.read_text() == "old"
    assert not list(tmp_path.glob(".out.csv*"))
    with pytest.raises(WriteError, match="cannot be written"):
        write_predictions(table / "x.csv", [], trained.target)


def test_json_is_one_document(trained, table):
    out = io.StringIO()
    print_json(out, predict_source(trained, table, chunk=2), trained.target)
    rows = json.loads(out.getvalue() + "]}")["predictions"]
    assert len(rows) == 7
    assert rows[3]["id"] == "m3"
    assert rows[3]["p(a)"] + rows[3]["p(b)"] == pytest.approx(1, abs=1e-5)


def test_classes_the_model_never_saw_do_not_matter_to_predict_but_to_evaluate(trained, table):
    table.write_text(table.read_text() + "new,CCC,zebra\n")
    assert sum(len(graphs) for graphs, _ in predict_source(trained, table)) == 8
    with pytest.raises(DataError, match="zebra"):
        evaluate(predict_source(trained, table, labels=True), trained.target, "it")


def test_evaluate_scores_by_the_labels_and_refuses_without(trained, table, tmp_path):
    scores = evaluate(predict_source(trained, table, labels=True, chunk=3), trained.target, "it")
    graphs = load(table)
    assert scores["graphs"] == 7
    assert scores["accuracy"] == (predict(trained.model, graphs).argmax(1) == graphs.y).mean()
    bare = tmp_path / "bare.csv"
    bare.write_text("smiles\nCCO\n")
    with pytest.raises(DataError, match="no labels to score by"):
        evaluate(predict_source(trained, bare, labels=True), trained.target, "bare.csv")


def test_graphs_with_other_features_are_refused(trained):
    with pytest.raises((CheckpointError, DataError)):
        list(predict_source(trained, "synthetic:motifs?graphs=5"))


@pytest.mark.parametrize("backend", ["auto", "reference", "dense"])
@pytest.mark.parametrize("method", ["asap+", "none+", "asap", "topk"])
def test_one_pass_gives_the_answers_and_the_vectors_of_two(method, backend):
    graphs = load("synthetic:cycles?graphs=6")
    config = ModelConfig(method=method, hidden=4, backend=backend)
    members = [with_random_parameters(build(config, graphs.num_features, 2, seed=s), seed=s) for s in (0, 1)]
    for model in (members[0], EnsembleModel(members)):
        both = predict_with_vectors(model, graphs)
        assert np.array_equal(both.members.mean(axis=0), predict(model, graphs))
        assert np.array_equal(both.vectors, embed(model, graphs))
        assert not model.training
