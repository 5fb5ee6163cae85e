"""What predictions say about how sure they are: columns per kind of target, from the validation graphs alone."""

import csv
import io
import json
import math

import numpy as np
import pytest

from asapool.data import load
from asapool.data.splits import Split
from asapool.errors import CheckpointError, ConfigError, DataError
from asapool.models import ModelConfig, build, checkpoint
from asapool.training import RunSettings, predict, run
from asapool.training.calibration import conformal_quantile
from asapool.training.embeddings import embed
from asapool.training.trust import Trust, Uncertainty, trust_of
from tests.cli.commands import call

SMILES = [f"{'C' * (k % 6 + 1)}{'ON'[k % 2]}{'C' * (k // 12)}" for k in range(60)]
TARGETS = {
    "classification": ("label", lambda k: "ab"[k % 2]),
    "regression": ("logS [mol/l]", lambda k: str(k % 6 + 0.5)),
    "multilabel": ("t1,t2", lambda k: f"{k % 2},{'' if k % 5 == 0 else (k // 2) % 2}"),
}


@pytest.fixture(scope="module", params=TARGETS)
def trained(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trust")
    names, value = TARGETS[request.param]
    rows = "".join(f"c{k},{s},batch {k % 3},{value(k)}\n" for k, s in enumerate(SMILES))
    (folder / "m.csv").write_text(f"CompoundID,SMILES,plate,{names}\n{rows}")
    tables = {
        "data": {"source": str(folder / "m.csv"), "target": names.split(","), "task": request.param},
        "model": {"method": "asap", "hidden": 4, "levels": 1},
        "train": {"epochs": 2},
        "split": {"val": 0.4, "test": 0.1},
    }
    settings = RunSettings.from_dict(tables)
    run.start(settings, settings.data.load(), folder / "run")
    return request.param, folder


def test_of_many_training_graphs_only_a_sample_is_embedded(monkeypatch):
    """A million embeddings would take gigabytes, and a model file has few of them."""
    graphs, asked = load("synthetic:cycles?graphs=60"), []
    model = build(ModelConfig(hidden=4, levels=1), graphs.num_features, 2, seed=0)
    parts = Split(train=np.arange(10, 60), val=np.arange(10), test=np.zeros(0, np.int64), graphs=60)
    whole = trust_of(model, graphs, parts)
    monkeypatch.setattr("asapool.training.applicability.MOST", 20)
    monkeypatch.setattr("asapool.training.trust.embed", lambda *words: asked.extend(words[2]) or embed(*words))
    few = trust_of(model, graphs, parts)
    assert len(set(asked)) == len(asked) == 20
    assert set(asked) <= set(range(10, 60))
    assert [len(Trust.from_dict(t).references[0].points) for t in (whole, few)] == [50, 20]


def rows_of(*words):
    return list(csv.DictReader(io.StringIO(call("predict", *words).stdout)))


def test_the_columns_follow_from_the_kind_of_target(trained):
    kind, folder = trained
    rows = rows_of(folder / "run", folder / "m.csv", "--coverage", 0.75)
    assert [row["id"] for row in rows] == [f"c{k}" for k in range(60)]
    assert [row["smiles"] for row in rows] == SMILES
    expected = {
        "classification": ["predicted", "p(a)", "p(b)", "calibrated(a)", "calibrated(b)", "set"],
        "regression": ["predicted(logS [mol/l])", "lower(logS [mol/l])", "upper(logS [mol/l])"],
        "multilabel": ["p(t1)", "p(t2)", "calibrated(t1)", "calibrated(t2)", "set(t1)", "set(t2)"],
    }
    assert list(rows[0])[3:] == [*expected[kind], "distance_quantile", "unlike_training"]
    if kind == "classification":
        assert {row["set"] for row in rows} <= {"a", "b", "a | b", ""}
        assert all(abs(float(row["calibrated(a)"]) + float(row["calibrated(b)"]) - 1) < 1e-5 for row in rows)


def test_the_quantile_comes_from_the_validation_graphs(trained):
    kind, folder = trained
    loaded, split = checkpoint.load(folder / "run"), Split.load(folder / "run" / "split.json")
    graphs = load(folder / "m.csv", recipe=loaded.recipe, labels="optional")
    y, p = graphs.y[split.val], predict(loaded.model, graphs, split.val)
    if kind == "classification":
        scores = [1 - p[np.arange(len(y)), y]]
    elif kind == "regression":
        scores = [np.abs(y - p)[:, 0]]
    else:
        scores = [np.where(c == 1, 1 - q, q)[~np.isnan(c)] for c, q in zip(y.T, p.T, strict=True)]
    sure = Uncertainty(loaded, 0.75)
    for task, expected in zip(sure.trust.tasks, scores, strict=True):
        np.testing.assert_allclose(task.scores, np.sort(expected), atol=1e-6)
    np.testing.assert_allclose(sure.quantiles, [conformal_quantile(s, 0.75) for s in scores], atol=1e-6)
    if kind == "regression":
        rows = rows_of(folder / "run", folder / "m.csv", "--coverage", 0.75)
        width = [float(row["upper(logS [mol/l])"]) - float(row["lower(logS [mol/l])"]) for row in rows]
        np.testing.assert_allclose(width, 2 * sure.quantiles[0], rtol=1e-5)
        missed = np.array([abs(float(rows[k]["predicted(logS [mol/l])"]) - graphs.y[k, 0]) for k in split.val])
        inside = (missed <= np.array(width)[split.val] / 2 + 1e-4).sum()
        assert inside >= math.ceil((len(missed) + 1) * 0.75)  # more where molecules are the same


def test_a_coverage_that_the_validation_part_is_too_small_for_holds_everything(trained):
    kind, folder = trained
    done = call("predict", folder / "run", folder / "m.csv", "--coverage", 0.99)
    assert "a coverage of 0.99 needs 99 validation graphs" in done.stderr
    row = next(csv.DictReader(io.StringIO(done.stdout)))
    if kind == "regression":
        assert (row["lower(logS [mol/l])"], row["upper(logS [mol/l])"]) == ("-inf", "inf")
        plain = json.loads(call("predict", folder / "run", folder / "m.csv", "--coverage", 0.99, "--json").stdout)
        assert plain["predictions"][0]["upper(logS [mol/l])"] is None
    else:
        assert {row[name] for name in row if name.startswith("set")} <= {"a | b", "0 | 1"}


def test_columns_of_the_table_are_kept(trained, tmp_path):
    kind, folder = trained
    rows = rows_of(folder / "run", folder / "m.csv", "--keep-columns")
    assert [row["plate"] for row in rows[:3]] == ["batch 0", "batch 1", "batch 2"]
    assert list(rows[0])[:5] == ["graph", "id", "CompoundID", "SMILES", "plate"]
    assert "smiles" not in rows[0]
    from pyarrow.parquet import read_table

    words = ("predict", folder / "run", folder / "m.csv", "--keep-columns", "--chunk", 7, "-o")
    for name in ("o.parquet", "o.jsonl"):
        assert call(*words, tmp_path / name).exit_code == 0
    table = read_table(tmp_path / "o.parquet")
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert table.column_names == list(lines[0]) == list(rows[0])
    assert [line["plate"] for line in lines] == table["plate"].to_pylist() == [row["plate"] for row in rows]
    again = tmp_path / "again.csv"  # a file of predictions as the next input: its columns keep their values
    again.write_text("smiles,predicted,p(a)\nCCO,old,0.5\n")
    if kind == "classification":
        [row] = rows_of(folder / "run", again, "--keep-columns")
        assert (row["predicted (input)"], row["p(a) (input)"]) == ("old", "0.5")
    with pytest.raises(DataError, match="has no columns to keep"):
        call("predict", folder / "run", "CCO", "--keep-columns")


def test_a_model_that_knows_nothing_about_trust_says_so(trained, tmp_path):
    _, folder = trained
    loaded = checkpoint.load(folder / "run")
    checkpoint.save(tmp_path / "m.safetensors", loaded.model, recipe=loaded.recipe, target=loaded.target)
    with pytest.raises(CheckpointError, match="has no uncertainty data"):
        call("predict", tmp_path / "m.safetensors", folder / "m.csv", "--uncertainty")
    with pytest.raises(ConfigError, match="coverage must lie between 0 and 1"):
        call("predict", folder / "run", folder / "m.csv", "--coverage", 90)
    with pytest.raises(ConfigError, match="calibration must be"):
        call("predict", folder / "run", folder / "m.csv", "--uncertainty", "--calibration", "platt")
    steps = {"temperature": 1.0, "isotonic": [[[0.0, 1.0], [0.0]]]}
    broken_tasks = [{"scores": [float("nan")], "calibration": None}, {"scores": [1.0], "calibration": steps}, {}]
    for broken in ({}, {"tasks": "x", "references": []}, *({"tasks": [t], "references": []} for t in broken_tasks)):
        with pytest.raises(CheckpointError, match="uncertainty data of the model are damaged"):
            Trust.from_dict(broken)


def test_without_validation_graphs_there_is_nothing_to_calibrate_on(trained, tmp_path):
    _, folder = trained
    loaded = checkpoint.load(folder / "run")
    tasks = [{"scores": [], "calibration": None}] * loaded.target.tasks
    extra = {"trust": {"tasks": tasks, "references": []}}
    path = tmp_path / "m.safetensors"
    checkpoint.save(path, loaded.model, recipe=loaded.recipe, target=loaded.target, extra=extra)
    with pytest.raises(ConfigError, match="was trained without validation graphs"):
        call("predict", path, folder / "m.csv", "--coverage", 0.9)
    assert call("predict", path, folder / "m.csv", "--uncertainty").exit_code == 0


def test_several_processes_write_the_same_rows(trained):
    kind, folder = trained
    if kind != "regression":
        return  # starting processes takes long, and one kind of target is enough
    words = ("predict", folder / "run", folder / "m.csv", "--coverage", 0.75, "--keep-columns", "--chunk", 20)
    assert call(*words, "-j", 2).stdout == call(*words).stdout


def test_the_library_gives_the_columns_of_the_command(trained):
    import asapool

    _, folder = trained
    rows = rows_of(folder / "run", folder / "m.csv", "--coverage", 0.75)
    columns = asapool.load_model(folder / "run").uncertainty(folder / "m.csv", coverage=0.75)
    assert list(columns) == list(rows[0])[-len(columns) :]
    np.testing.assert_allclose(
        columns["distance_quantile"], [float(row["distance_quantile"]) for row in rows], atol=1e-6
    )


def test_a_run_measures_what_its_answers_cover(trained):
    kind, folder = trained
    conformal = json.loads((folder / "run" / "metrics.json").read_text())["conformal"]
    loaded, split = checkpoint.load(folder / "run"), Split.load(folder / "run" / "split.json")
    assert [level["coverage"] for level in conformal["levels"]] == [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    assert all(0 <= level["covered"] <= 1 for level in conformal["levels"])
    if kind == "regression":
        graphs = load(folder / "m.csv", recipe=loaded.recipe, labels="optional")
        q = conformal_quantile(Uncertainty(loaded, 0.8).trust.tasks[0].scores, 0.8)
        missed = np.abs(graphs.y - predict(loaded.model, graphs))[split.test, 0]
        level = conformal["levels"][3]
        assert level["covered"] == pytest.approx((missed <= q + 1e-6).mean())
        assert level["size"] == pytest.approx(2 * q)
