"""asapool export: files that give the model's numbers in another runtime, and sentences where that cannot be."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import asapool
from asapool.data import load
from asapool.errors import ConfigError
from asapool.exporting import comparing, export
from asapool.exporting.comparing import compare, has_tie, renumbered
from asapool.exporting.formats import FORMATS, padded_inputs
from asapool.models import ModelConfig, build, checkpoint
from asapool.models.batches import edge_channels
from tests.children import run_python
from tests.cli.commands import call
from tests.graphs import with_random_parameters

ort = pytest.importorskip("onnxruntime")
pytest.importorskip("rdkit")
SMILES = ["CCO", "c1ccccc1C(=O)O", "C", "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "O=[N+]([O-])c1ccccc1", "N#CCCl", "C1CC1.[Na+]"]
ROOT = Path(__file__).parents[2]


def saved(folder, **options):
    """A model file with random weights for molecules."""
    graphs = load(SMILES)
    config = ModelConfig(**{"hidden": 4, "levels": 1, **options})
    model = build(config, graphs.num_features, 2, seed=0, edge_channels=edge_channels(graphs))
    with_random_parameters(model, seed=3)
    path = folder / f"{config.method}.safetensors"
    checkpoint.save(path, model, classes=("a", "b"), recipe=graphs.recipe | {"classes": ["a", "b"]})
    return path


PLUS = {"method": "asap+", "first_convs": 1, "count_buckets": 32, "count_depth": 1, "readout_bound": 0.5}


@pytest.fixture(
    scope="module", params=[{"method": "asap"}, pytest.param(PLUS, marks=pytest.mark.slow)], ids=["asap", "asap+"]
)
def exported(request, tmp_path_factory):
    """A model and its ONNX file, made by the command line."""
    folder = tmp_path_factory.mktemp("onnx")
    path = saved(folder, **request.param)
    done = call("export", path, folder / "m.onnx", "--graphs", 30, "--json")
    assert done.exit_code == 0, done.output
    return path, folder / "m.onnx", json.loads(done.stdout)


def test_the_file_says_how_it_was_checked(exported):
    path, file, done = exported
    assert done["graphs"] == 30
    assert done["source"] == "the NCI molecules that come with rdkit"
    assert done["difference"] <= 1e-5
    assert done["size"] == file.stat().st_size
    held = json.loads(ort.InferenceSession(file).get_modelmeta().custom_metadata_map["asapool"])
    assert held["classes"] == ["a", "b"]
    assert held["recipe"]["kind"] == "smiles"
    assert held["method"] == path.stem


def test_one_molecule_and_padded_batches_give_the_logits_of_the_model(exported):
    path, file, _ = exported
    model, session = asapool.load_model(path), ort.InferenceSession(file)
    graphs = model.read(SMILES)
    for indices in ([2], [3], [0, 6], list(range(7))):
        given = padded_inputs(model.module, graphs, np.array(indices))
        logits = torch.from_numpy(session.run(["logits"], given)[0])
        np.testing.assert_allclose(logits.softmax(1), model.predict_proba(graphs)[indices], atol=2e-6)


def test_the_example_program_needs_neither_asapool_nor_torch(exported):
    path, file, _ = exported
    program = ROOT / "examples" / "onnx_predict.py"
    clean = {"PATH": "/usr/bin:/bin"}
    words = [str(program), str(file), *SMILES]
    blocked = (
        f"import sys, runpy; sys.modules['asapool'] = sys.modules['torch'] = None; sys.argv = {words}; "
        f"runpy.run_path({str(program)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, env=clean, check=True)
    model = asapool.load_model(path)
    for smiles, line, p in zip(SMILES, done.stdout.splitlines(), model.predict_proba(SMILES), strict=True):
        name, _, numbers = line.partition(" ")
        assert name == smiles
        np.testing.assert_allclose(list(eval(numbers).values()), p, atol=3e-6)


def test_a_model_of_a_small_training_exports_too(tmp_path):
    path = saved(tmp_path, method="asap+", backend="reference")  # which `asapool train` chooses for few graphs
    assert export(path, tmp_path / "m.pt2", graphs=6).difference <= 1e-5
    assert checkpoint.load(path).config.backend == "reference"


def test_the_example_program_reads_measured_values_and_yes_no_tasks():
    answer = runpy.run_path(str(ROOT / "examples" / "onnx_predict.py"))["answer"]
    values = {"target": {"kind": "regression", "scale": [2.0, 1.0], "mean": [10.0, -1.0]}}
    assert answer(np.array([0.5, 3.0]), values).tolist() == [11.0, 2.0]
    assert answer(np.array([0.0, np.log(3)]), {"target": {"kind": "multilabel"}}) == pytest.approx([0.5, 0.75])


# benchmarks/export_latency.py exports all that can be
@pytest.mark.parametrize("method", [pytest.param("topk", marks=pytest.mark.slow), "mlp"])
def test_methods_in_onnx(method, tmp_path):
    done = export(saved(tmp_path, method=method), tmp_path / "m.onnx", graphs=12)
    assert done.difference <= 1e-5
    assert done.ties < 12


def test_a_program_of_torch_export_loads_after_import_asapool_alone(tmp_path):
    path = saved(tmp_path, method="asap")
    done = export(path, tmp_path / "m.pt2", graphs=12)
    assert done.difference <= 1e-5
    code = f"""if 1:
        import asapool, torch
        held = {{"asapool.json": ""}}
        program = torch.export.load({str(tmp_path / "m.pt2")!r}, extra_files=held).module()
        x, ptr, rowptr, col = torch.ones(2, 36), torch.tensor([0, 2]), torch.tensor([0, 1, 2]), torch.tensor([1, 0])
        print(program(x, ptr, rowptr, col, weight=torch.ones(2)).tolist(), held["asapool.json"])"""
    ran = run_python(code)
    assert ran.returncode == 0, ran.stderr
    logits, _, held = ran.stdout.partition("]] ")
    model = checkpoint.load(path).model
    expected = model(torch.ones(2, 36), torch.tensor([0, 2]), torch.tensor([0, 1, 2]), torch.tensor([1, 0]))
    np.testing.assert_allclose(json.loads(logits + "]]"), expected.detach(), atol=1e-5)
    assert json.loads(held)["classes"] == ["a", "b"]


@pytest.mark.parametrize(
    ("method", "name", "words"),
    [
        ("set2set", "m.onnx", "layer of torch_geometric"),
        ("sortpool", "m.onnx", "SortPool ranks the rows"),
        ("asap", "m.bin", "must end in .onnx or .pt2"),
        ("asap", "nowhere/m.onnx", "its folder does not exist"),
    ],
)
def test_what_cannot_be_exported_says_why(method, name, words, tmp_path):
    path = saved(tmp_path, method=method)
    with pytest.raises(ConfigError, match=words) as error:
        call("export", path, tmp_path / name)
    assert error.value.exit_code == 2
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("format", FORMATS.values())
def test_counts_and_forests_are_no_networks(format):
    model = build(ModelConfig(method="majority"), 3, 2)
    with pytest.raises(ConfigError, match=r"is not a neural network"):
        format.check(SimpleNamespace(model=model, config=model.config))


def test_a_program_that_differs_is_not_written(tmp_path):
    loaded = checkpoint.load(saved(tmp_path, method="none"))
    graphs = load(SMILES, recipe=loaded.recipe, labels="ignored")
    with pytest.raises(ConfigError, match="differs from the model by"):
        compare(loaded.model, graphs, lambda graphs, indices: np.full((len(indices), 2), 9.0), "these")


def test_a_tie_is_a_graph_whose_logits_depend_on_its_node_numbers(tmp_path):
    loaded = checkpoint.load(saved(tmp_path, method="topk", ratio=3, levels=2, hidden=16))
    graphs = load(["c1ccccc1", "CCO"], recipe=loaded.recipe, labels="ignored")  # three of six equal atoms, or all three
    assert has_tie(loaded.model, graphs, 0)
    assert not has_tie(loaded.model, graphs, 1)
    turned = renumbered(graphs, 1, np.array([2, 0, 1]))  # O, C, C: the bonds are O-C and C-C
    assert turned.col.tolist() == [2, 2, 0, 1]
    assert np.array_equal(turned.x, graphs.x[[8, 6, 7]])


def test_equally_fit_clusters_are_a_tie_even_if_renumbered_nodes_do_not_show_it(tmp_path, monkeypatch):
    monkeypatch.setattr(comparing, "RENUMBERINGS", 0)
    loaded = checkpoint.load(saved(tmp_path, method="asap", ratio=0.5, levels=1, hidden=16))
    graphs = load(["c1ccccc1", "CCO"], recipe=loaded.recipe, labels="ignored")  # three of six equal atoms, two of three
    assert abs(comparing.fitness_margin(loaded.model, graphs, 0)) < 1e-6
    assert comparing.fitness_margin(loaded.model, graphs, 1) > comparing.TOLERANCE
    assert has_tie(loaded.model, graphs, 0)
    assert not has_tie(loaded.model, graphs, 1)
    with pytest.raises(ConfigError, match="cannot be checked: in each of the 1 graphs"):
        compare(
            loaded.model, graphs.subset(np.array([0])), lambda graphs, indices: np.full((len(indices), 2), 9.0), "it"
        )
