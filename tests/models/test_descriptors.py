"""Descriptors: scaled by the training graphs, read by the head with the readouts, and saved in the checkpoint."""

import numpy as np
import pytest
import torch

from asapool.data import read
from asapool.errors import CheckpointError, ConfigError, DataError, InputError
from asapool.models import ModelConfig, build, checkpoint
from asapool.models.batches import check_extras, cut, graph_channels
from asapool.models.encoders import DescriptorScale
from asapool.training.embeddings import embed


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("descriptors") / "m.csv"
    rows = "".join(f"m{k},{'C' * (k + 1)}O,{'ab'[k % 2]},{k if k != 2 else ''},{10 * k}\n" for k in range(6))
    path.write_text(f"id,smiles,label,mp,ph\n{rows}")
    return path


def test_the_scale_worked_out_by_hand():
    """1, 3 and a gap: mean 2, deviation 1; a constant column keeps its distance from the mean."""
    scale = DescriptorScale(2)
    scale.fit(np.array([[1.0, 7.0], [3.0, 7.0], [np.nan, 7.0]]))
    assert scale.mean.tolist() == [2.0, 7.0]
    assert scale.deviation.tolist() == [1.0, 1.0]
    d = torch.tensor([[5.0, 7.0], [float("nan"), 8.0], [1e9, -1e30]])
    assert scale(d).tolist() == [[3.0, 0.0], [0.0, 1.0], [8.0, -8.0]]


def test_columns_and_rdkit_are_read_in_order_and_gaps_are_reported(table):
    reading = read(table, descriptors="ph, mp", rdkit_descriptors=True)
    graphs = reading.graphs
    assert graphs.recipe["descriptors"]["columns"] == ["ph", "mp"]
    weight = graphs.recipe["descriptors"]["rdkit"].index("amw")
    np.testing.assert_allclose(graphs.descriptors[:2, 0], [0, 10])
    assert graphs.descriptors[0, 2 + weight] == pytest.approx(32.042, abs=1e-3)  # methanol
    assert "'mp' (1 of 6 rows)" in reading.notes[0]
    assert graphs.subset([3]).descriptors[0, 0] == 30
    again = read(table, recipe=graphs.recipe).graphs
    np.testing.assert_array_equal(again.descriptors, graphs.descriptors)
    assert again.fingerprint == graphs.fingerprint != read(table, target="label").graphs.fingerprint


def test_what_cannot_be_read_is_one_sentence(table, tmp_path):
    with pytest.raises(DataError, match=r"there is no column 'pH'.*Did you mean 'ph'"):
        read(table, descriptors="pH")
    text = tmp_path / "t.csv"
    text.write_text("smiles,label,mp\nCCO,a,1\nCC,b,soft\n")
    with pytest.raises(DataError, match="line 3: expected a finite number for the descriptor 'mp', got 'soft'"):
        read(text, descriptors="mp")
    text.write_text("smiles,label,mp,bp\nCCO,a,1,\nCC,b,1e300,NA\n")
    with pytest.raises(DataError, match="line 3: expected a finite number for the descriptor 'mp', got '1e300'"):
        read(text, descriptors="mp")  # not a number in float32
    with pytest.raises(
        DataError, match=r"all entries of the descriptor 'bp' are missing\. Leave it out, or add values"
    ):
        read(text, descriptors="bp", rdkit_descriptors=True)
    graphs = read(table, descriptors="ph").graphs
    new = tmp_path / "new.csv"
    new.write_text("smiles\nCCO\n")
    with pytest.raises(DataError, match="there is no column 'ph', a descriptor that the model reads; the"):
        read(new, recipe=graphs.recipe)
    with pytest.raises(DataError, match="the model needs the descriptor 'ph'"):
        read(["CCO"], recipe=graphs.recipe)
    with pytest.raises(DataError, match="descriptors need a table of molecules"):
        read("synthetic:cycles?graphs=4", descriptors="ph")
    with pytest.raises(ConfigError, match="descriptors must be the name of a column"):
        read(table, descriptors=3)


@pytest.mark.parametrize(("name", "counts"), [("asap", "none"), ("asap+", "wl"), ("asap+", "ecfp"), ("mlp", "none")])
def test_descriptors_are_read_with_the_readouts_and_saved(table, tmp_path, name, counts):
    graphs = read(table, descriptors="ph").graphs
    config = ModelConfig(method=name, hidden=8, **({} if counts == "none" else {"counts": counts}))
    edges = graphs.edge_attr.shape[1]
    model = build(config, graphs.num_features, 2, seed=0, edge_channels=edges, graph_channels=graph_channels(graphs))
    plain = build(config, graphs.num_features, 2, seed=0, edge_channels=edges)
    model.descriptors.fit(graphs.descriptors)
    v = embed(model, graphs)
    assert v.shape[1] == embed(plain, graphs).shape[1] + 1
    np.testing.assert_allclose(v[:, -1], (np.arange(6) - 2.5) / np.sqrt(35 / 12), rtol=1e-6)
    checkpoint.save(tmp_path / "m.safetensors", model, classes=["a", "b"], recipe=graphs.recipe)
    loaded = checkpoint.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(embed(loaded.model, graphs), v)
    with pytest.raises(CheckpointError, match="its graphs have 0 descriptors, the model was trained on 1"):
        check_extras(loaded.model, read(table, target="label").graphs)
    batch = cut(model, graphs, np.arange(6))
    with pytest.raises(InputError, match="graph_attr must hold"):
        model(*batch.inputs, **(model.more(batch) | {"graph_attr": None}))
