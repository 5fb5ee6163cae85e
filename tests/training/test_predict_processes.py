"""Predicting in several processes gives the rows of one process, in their order."""

import pytest

from asapool.data.mapped.convert import convert
from asapool.errors import AsapoolError, ConfigError
from asapool.models import ModelConfig, build, checkpoint
from asapool.training.answering import predict_in_processes
from asapool.training.predictions import predict_source

ROWS = [f"{'C' * (1 + k % 5)}O" for k in range(23)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "m.csv").write_text("\n".join(["smiles,label", *(f"{s},{k % 2}" for k, s in enumerate(ROWS))]) + "\n")
    graphs = convert(folder / "m.csv", folder / "m.graphs").graphs
    model = build(ModelConfig(hidden=4, levels=1), graphs.num_features, 2, seed=0).eval()
    checkpoint.save(folder / "model.safetensors", model, classes=graphs.class_names, recipe=graphs.recipe)
    rows = (folder / "m.csv").read_text().splitlines()
    rows[9] = "nonsense,1"
    (folder / "bad.csv").write_text("\n".join(rows) + "\n")
    return folder


def listed(pairs):
    return [(g.places.tolist(), tuple(g.ids), p.round(6).tolist()) for g, p in pairs]


def test_the_order_is_kept(prepared):
    model, readings = prepared / "model.safetensors", []
    for name in ("m.graphs", "bad.csv"):
        options = {"chunk": 4, "skip_invalid": True}
        alone = listed(predict_source(checkpoint.load(model), prepared / name, **options))
        readings.clear()
        shared = listed(predict_in_processes(model, prepared / name, 2, on_reading=readings.append, **options))
        assert shared == alone
    assert [row.line for reading in readings for row in reading.skipped] == [10]


def test_errors_are_those_of_one_process(prepared):
    model = prepared / "model.safetensors"
    with pytest.raises(AsapoolError, match=r"bad\.csv, line 10: 'nonsense'"):
        list(predict_in_processes(model, prepared / "bad.csv", 2, chunk=4))
    with pytest.raises(ConfigError, match="standard input"):
        list(predict_in_processes(model, "-", 2))
