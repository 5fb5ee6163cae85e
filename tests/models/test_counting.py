"""The counting baselines: what they count, which settings they choose, and that their files are complete."""

from dataclasses import replace

import numpy as np
import pytest

from asapool.data import load
from asapool.data.descriptors import ecfp_counts
from asapool.errors import CheckpointError, DataError
from asapool.models import ModelConfig, build, checkpoint, counting


@pytest.fixture(scope="module")
def graphs():
    return load("synthetic:motifs?graphs=60")


def fitted(graphs, method, **options):
    model = build(ModelConfig(method=method), graphs.num_features, graphs.num_classes)
    model.fit_graphs(graphs, np.arange(40), np.arange(40, 60), seed=0, **options)
    return model


@pytest.fixture(scope="module")
def molecules():
    pytest.importorskip("rdkit")
    from asapool.estimator import pack as read

    texts = ["C" * n + tail for n in range(1, 16) for tail in ("O", "N", "Cl", "C=O")]
    return replace(read(texts, labels="ignored"), y=np.tile([0, 1, 1, 0], 15), class_names=("oxygen", "other"))


def test_wl_tells_motifs_apart_and_chooses_on_validation(graphs):
    model = fitted(graphs, "wl")
    p = model.predict_graphs(graphs, np.arange(60))
    assert np.allclose(p.sum(1), 1)
    assert (p.argmax(1) == graphs.y)[40:].mean() > 0.8
    assert model.array("depth")[0] in counting.DEPTHS
    assert model.array("C")[0] in counting.PENALTIES


def test_wl_answers_one_graph_as_in_a_batch_and_any_empty_list(graphs):
    model = fitted(graphs, "wl")
    together = model.predict_graphs(graphs, np.array([41, 3, 59]))
    assert np.allclose(together[1], model.predict_graphs(graphs, np.array([3]))[0], atol=1e-12)
    assert model.predict_graphs(graphs, np.arange(0)).shape == (0, graphs.num_classes)


def test_wl_without_a_validation_part_uses_its_defaults(graphs):
    model = build(ModelConfig(method="wl"), graphs.num_features, graphs.num_classes)
    model.fit_graphs(graphs, np.arange(60), np.arange(0), seed=0)
    assert (model.array("depth")[0], model.array("scale")[0]) == (3, 1.0)


def test_the_rows_of_a_binary_svm_are_each_others_negative(graphs):
    two = fitted(graphs, "wl")
    if graphs.num_classes == 2:
        assert np.allclose(two.array("coef")[0], -two.array("coef")[1])


def test_a_class_without_training_graphs_is_never_predicted(graphs):
    wider = replace(graphs, class_names=(*graphs.class_names, "never"))
    for method in ("wl", "histogram"):
        model = fitted(wider, method)
        assert model.predict_graphs(wider, np.arange(60))[:, -1].max() < 1e-6


def test_histogram_counts_node_features(graphs):
    model = build(ModelConfig(method="histogram"), graphs.num_features, graphs.num_classes)
    z = model.counts(graphs)
    assert np.allclose(z[7], graphs.x[graphs.ptr[7] : graphs.ptr[8]].sum(0))


def test_ecfp_counts_substructures_of_molecules(molecules):
    counts = ecfp_counts(molecules, radius=0)
    assert counts[0].sum() == 2  # methanol: a carbon and an oxygen
    assert (ecfp_counts(molecules)[0] != 0).sum() >= 3
    model = fitted(molecules, "ecfp")
    right = model.predict_graphs(molecules, np.arange(40, 60)).argmax(1) == molecules.y[40:]
    assert right.mean() > 0.9


def test_ecfp_on_graphs_that_are_not_molecules_is_one_sentence(graphs):
    with pytest.raises(DataError, match="ECFP needs molecules read from SMILES, and these graphs have none"):
        fitted(graphs, "ecfp")


def test_weights_of_graphs_count(graphs):
    heavy = np.where(graphs.y[:40] == 0, 100.0, 0.01)
    p, q = (fitted(graphs, "wl", weight=w).predict_graphs(graphs, np.arange(60)) for w in (None, heavy))
    assert q[:, 0].mean() > p[:, 0].mean()


@pytest.mark.parametrize("method", ["wl", "histogram", "ecfp"])
def test_a_loaded_baseline_answers_to_the_last_bit_and_a_damaged_one_is_refused(molecules, tmp_path, method):
    model, path = fitted(molecules, method), tmp_path / "m.safetensors"
    checkpoint.save(path, model, classes=molecules.class_names, recipe=molecules.recipe)
    loaded = checkpoint.load(path).model
    every = np.arange(len(molecules))
    assert np.array_equal(loaded.predict_graphs(molecules, every), model.predict_graphs(molecules, every))
    again = fitted(molecules, method)
    checkpoint.save(tmp_path / "again", again, classes=molecules.class_names, recipe=molecules.recipe)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    state = {name: value for name, value in model.state_dict().items() if name not in ("bias", "root")}
    model._buffers.clear()
    model._buffers.update(state)
    checkpoint.save(path, model, classes=molecules.class_names, recipe=molecules.recipe)
    with pytest.raises(CheckpointError, match="cannot be rebuilt"):
        checkpoint.load(path)
