"""The model file: the same logits come back, the same model gives the same bytes, and damage gets one sentence."""

import json
import os
import pickle
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load as load_tensors
from safetensors.torch import save as pack_tensors

from asapool.data.targets import Target
from asapool.errors import CheckpointError, WriteError
from asapool.models import ModelConfig, build, checkpoint, method_names
from tests.children import run_python
from tests.models.batches import pack, random_graphs
from tests.models.fuzz_checkpoint import fuzz

METHODS = method_names(trainer="gradient", builtin=True)

GRAPHS = [t.float() if t.is_floating_point() else t for t in pack(random_graphs(0, [7, 9, 5], weighted=True))]
RECIPE = {"version": 1, "features": "labels", "labels": [["C", "N", "O", "S"]], "classes": ["no", "yes"]}
WORDS = {"classes": ["no", "yes"], "recipe": RECIPE, "summary": {"epochs": 3, "best": 0.75}, "fingerprint": "abc"}


def made(method="asap", seed=0, **options):
    return build(ModelConfig(method=method, hidden=8, **options), 4, 2, seed, typical_nodes=6)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "options", [{}, {"conv": "sage", "batch_norm": True, "jumping": True, "levels": 3, "ratio": (0.8, 0.5, 2)}]
)
def test_the_same_logits_come_back(method, options, path):
    model = made(method, **options)
    model(*GRAPHS)  # batch norm has seen something
    model.eval()
    checkpoint.save(path, model, **WORDS)
    loaded = checkpoint.load(path)
    assert torch.equal(loaded.model(*GRAPHS), model(*GRAPHS))
    assert (loaded.config, loaded.in_channels) == (model.config, 4)
    assert not loaded.model.training
    assert all(p.requires_grad for p in loaded.model.parameters())


def test_all_metadata_comes_back(path):
    extra = {"class_weights": np.float32([0.5, 1.5]), "note": MappingProxyType({"a": 1})}
    checkpoint.save(path, made(), **WORDS, extra=extra)
    loaded = checkpoint.load(path)
    assert loaded.classes == ("no", "yes")
    assert (loaded.recipe, loaded.summary, loaded.fingerprint) == (RECIPE, WORDS["summary"], "abc")
    assert loaded.extra == {"class_weights": [0.5, 1.5], "note": {"a": 1}}
    assert loaded.versions["torch"] == torch.__version__
    assert loaded.path == path


def test_the_same_model_gives_the_same_bytes_in_another_process(path):
    code = (
        "from asapool.models import ModelConfig, build, checkpoint; "
        "model = build(ModelConfig(hidden=8, batch_norm=True), 4, 2, 0); "
        f"print(checkpoint.to_bytes(model, **{WORDS}).hex())"
    )
    here = checkpoint.to_bytes(made("asap", batch_norm=True), **WORDS)
    assert here == bytes.fromhex(run_python(code).stdout)
    assert here != checkpoint.to_bytes(made("asap", seed=1, batch_norm=True), **WORDS)
    backwards = {**WORDS, "summary": dict(reversed(WORDS["summary"].items()))}
    assert here == checkpoint.to_bytes(made("asap", batch_norm=True), **backwards)


def test_weights_are_float32_for_any_dtype_of_the_model(path):
    checkpoint.save(path, made().double(), **WORDS)
    with safe_open(path, "pt") as file:
        assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.float32}  # noqa: SIM118
    assert path.read_bytes() == checkpoint.to_bytes(made(), **WORDS)


def test_loading_does_not_touch_torchs_generator_or_the_file(path):
    checkpoint.save(path, made(), **WORDS)
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    loaded = checkpoint.load(path)
    assert torch.equal(torch.rand(1), expected)
    before = loaded.model(*GRAPHS)
    path.write_bytes(b"")  # weights that were still mapped to the file would be gone now
    assert torch.equal(loaded.model(*GRAPHS), before)


def test_a_model_is_replaced_whole_or_not_at_all(path, monkeypatch):
    checkpoint.save(path, made(), **WORDS)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match=r"cannot be written.*No space left"):
        checkpoint.save(path, made(seed=1), **WORDS)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_folder_that_does_not_exist_gets_a_sentence(path):
    with pytest.raises(WriteError, match="cannot be written"):
        checkpoint.save(path.parent / "no" / "model.safetensors", made(), **WORDS)


def refused(path, data, words):
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=words) as caught:
        checkpoint.load(path)
    assert "\n" not in str(caught.value)


def test_a_folder_means_the_model_in_it(path):
    checkpoint.save(path, made(), **WORDS)
    assert checkpoint.find(path.parent) == checkpoint.find(path) == path
    assert checkpoint.load(str(path.parent)).path == path


def test_foreign_files_get_a_sentence(path):
    with pytest.raises(CheckpointError, match="there is no such file"):
        checkpoint.load(path)
    with pytest.raises(CheckpointError, match=r"the folder contains no model\.safetensors. Give a run folder"):
        checkpoint.load(path.parent)
    (path.parent / "config.toml").touch()
    with pytest.raises(CheckpointError, match="Finish its training with: asapool train --resume"):
        checkpoint.load(path.parent)
    for odd in ("x" * 5000, "a\0b"):
        with pytest.raises(CheckpointError, match=r"not a valid path|no such file"):
            checkpoint.load(odd)
    refused(path, b"", "not a model of asapool")
    refused(path, b"hello, world", "not a model of asapool")
    refused(path, pickle.dumps({"a": 1}), "not a model of asapool")
    refused(path, pack_tensors({"a": torch.ones(2)}), "a safetensors file, but not a model of asapool")
    torch.save({"a": torch.ones(2)}, path)
    refused(path, path.read_bytes(), "not a model of asapool")


def rewritten(change, weights=None):
    """A model file whose metadata was changed, with the right checksum."""
    model = made()
    data = checkpoint.to_bytes(model, **WORDS)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    words = json.loads(header["__metadata__"]["asapool"])
    words.pop("checksum")
    change(words)
    weights = dict(model.state_dict()) if weights is None else weights
    words["checksum"] = checkpoint.checksum(words, weights)
    return pack_tensors(weights, metadata={"asapool": json.dumps(words)})


def test_files_of_another_asapool_get_a_sentence(path):
    path.write_bytes(rewritten(lambda words: None))
    checkpoint.load(path)
    refused(path, rewritten(lambda words: words.update(format=3)), "has format 3 of a newer asapool.*Update asapool")
    refused(path, rewritten(lambda words: words["config"].update(colour="red")), "model.colour is not a setting")
    refused(path, rewritten(lambda words: words["config"].update(hidden=10**9)), "cannot be rebuilt")
    refused(path, rewritten(lambda words: words.pop("classes")), "cannot be rebuilt")
    refused(path, rewritten(lambda words: words.update(in_channels=5)), "cannot be rebuilt")
    refused(path, rewritten(lambda words: None, {"a": torch.ones(1)}), "cannot be rebuilt")


GOOD = checkpoint.to_bytes(made("topk"), **WORDS)
EXPECTED = made("topk").eval()(*GRAPHS)


def same_or_refused(folder, data):
    """Either a CheckpointError of one line, or exactly the model that was saved; never anything else."""
    path = folder / "damaged.safetensors"
    path.write_bytes(data)
    try:
        loaded, sentence = checkpoint.load(path), None
    except CheckpointError as error:
        loaded, sentence = None, str(error)
    if loaded is None:
        assert "\n" not in sentence
        return False
    assert torch.equal(loaded.model(*GRAPHS), EXPECTED)
    assert (loaded.classes, loaded.recipe) == (("no", "yes"), RECIPE)
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged")


@settings(max_examples=250, deadline=None)
@given(place=st.integers(0, len(GOOD) - 1), value=st.integers(0, 255))
def test_a_changed_byte_is_noticed(folder, place, value):
    data = bytearray(GOOD)
    data[place] = value
    assert same_or_refused(folder, bytes(data)) or bytes(data) != GOOD


@settings(max_examples=100, deadline=None)
@given(end=st.integers(0, len(GOOD) - 1))
def test_a_truncated_file_is_refused(folder, end):
    assert not same_or_refused(folder, GOOD[:end])


@settings(max_examples=100, deadline=None)
@given(start=st.integers(0, len(GOOD)), end=st.integers(0, len(GOOD)), other=st.binary(max_size=40))
def test_a_file_with_a_part_replaced_is_noticed(folder, start, end, other):
    data = GOOD[: min(start, end)] + other + GOOD[max(start, end) :]
    assert same_or_refused(folder, data) or data != GOOD


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_at_all_are_refused(folder, data):
    assert not same_or_refused(folder, data)
    assert not same_or_refused(folder, len(data).to_bytes(8, "little") + data)


def test_a_changed_weight_is_refused(folder):
    data = bytearray(GOOD)
    data[-5] ^= 1
    assert not same_or_refused(folder, bytes(data))


def graphs(**changes):
    known = {"name": "mine", "num_features": 4, "recipe": RECIPE, "class_names": ("no", "yes")}
    known |= changes
    return SimpleNamespace(**known, target=Target(classes=known["class_names"]))


def test_graphs_with_other_features_are_refused(path):
    checkpoint.save(path, made(), **WORDS)
    loaded = checkpoint.load(path)
    loaded.check(graphs())
    loaded.check(graphs(recipe={**RECIPE, "classes": []}, class_names=()))  # new graphs have no labels
    loaded.check(graphs(recipe={}))  # made by hand: nothing to compare but the width
    loaded.check(graphs(recipe=MappingProxyType({**RECIPE, "labels": (("C", "N", "O", "S"),)})))
    with pytest.raises(CheckpointError, match=r"mine does not fit.*have 5 features, the model was trained on 4"):
        loaded.check(graphs(num_features=5))
    with pytest.raises(CheckpointError, match=r"labels = .*'P'.*the model's with .*'S'"):
        loaded.check(graphs(recipe={**RECIPE, "labels": [["C", "N", "O", "P"]]}))
    with pytest.raises(CheckpointError, match=r"features = 'degree'.*the model's with 'labels'"):
        loaded.check(graphs(recipe={**RECIPE, "features": "degree"}))


def test_a_real_set_of_graphs_fits_the_model_trained_on_it(path):
    from asapool.data import load

    real = load("synthetic:motifs?graphs=6")
    model = build(ModelConfig(hidden=8), real.num_features, real.num_classes, seed=0)
    checkpoint.save(path, model, classes=real.class_names, recipe=real.recipe, fingerprint=real.fingerprint)
    loaded = checkpoint.load(path)
    loaded.check(real, labels=True)
    batch = real.batch([4, 0, 5])
    assert loaded.model(batch.x, batch.ptr, batch.rowptr, batch.col, batch.weight).shape == (3, real.num_classes)
    assert loaded.fingerprint == real.fingerprint


def test_other_classes_are_refused_if_labels_are_used(path):
    checkpoint.save(path, made(), **WORDS)
    loaded = checkpoint.load(path)
    loaded.check(graphs(class_names=("yes", "no")))
    loaded.check(graphs(), labels=True)
    with pytest.raises(CheckpointError, match=r"classes are \('yes', 'no'\), the model's \('no', 'yes'\)"):
        loaded.check(graphs(class_names=("yes", "no")), labels=True)


@pytest.mark.parametrize(
    ("files", "step"),
    [
        (["config.toml"], "Finish its training with: asapool train --resume {0}"),
        (["runs.jsonl"], "It has the results of a cross-validation, and asapool cv keeps the models only with "
         "--keep-models. Repeat it with that option, or train a final model with asapool train"),
        (["runs.jsonl", "models/k.safetensors"], "Give one of those in its subfolder models, such as "
         "{0}/models/k.safetensors"),
        ([], "Give a run folder"),
    ],
)  # fmt: skip
def test_a_folder_without_a_model_is_one_sentence(tmp_path, files, step):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(CheckpointError) as caught:
        checkpoint.find(tmp_path)
    assert str(caught.value) == f"{tmp_path}: the folder contains no model.safetensors. {step.format(tmp_path)}"


def test_what_cannot_be_saved_gets_a_sentence(path):
    with pytest.raises(CheckpointError, match="2 outputs needs as many names"):
        checkpoint.save(path, made(), **{**WORDS, "classes": ["one"]})
    with pytest.raises(CheckpointError, match="only plain data: object is not plain data"):
        checkpoint.save(path, made(), **WORDS, extra={"thing": object()})
    assert not path.exists()


def test_wrong_content_with_a_right_checksum_gets_one_sentence():
    """A few hundred of them; python -m tests.models.fuzz_checkpoint 20000 tries more."""
    assert fuzz(280, seed=5)[0] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"recipe": {"features": "labels", "labels": [[None, 1]]}},
            r"recipe\.labels has a wrong value, \[\[None",
        ),
        ({"config": {"method": "topk", "ratio": 10**30}}, "ratio as a whole number must keep 1 to"),
        ({"config": {"method": "topk", "hidden": 10**9}}, r"model\.hidden must be at most 16,384"),
        ({"config": {"method": "topk", "levels": 100_000}}, r"model\.levels must be at most 64"),
        ({"classes": ["a", "a"]}, "classes has a wrong value"),
        ({"summary": None}, "summary has a wrong value, None"),
        ({"versions": {"asapool": "99.0.0"}, "summary": 1}, None),
    ],
)
def test_entries_of_a_wrong_kind_are_named(path, change, words):
    data = content_of(GOOD) | change
    data.pop("checksum")
    data["checksum"] = checkpoint.checksum(data, weights_of(GOOD))
    words = words or r"summary has a wrong value"
    refused(path, pack_tensors(weights_of(GOOD), metadata={checkpoint.KEY: json.dumps(data)}), words)


def test_float16_weights_are_refused(path):
    weights = {name: value.half() for name, value in weights_of(GOOD).items()}
    data = content_of(GOOD)
    data.pop("checksum")
    data["checksum"] = checkpoint.checksum(data, weights)
    data = pack_tensors(weights, metadata={checkpoint.KEY: json.dumps(data)})
    refused(path, data, r"must be torch\.float32, got torch\.float16")


def test_a_model_of_a_newer_version_says_so(path):
    data = content_of(GOOD)
    data.pop("checksum")
    data["versions"] = {"asapool": "99.0.0", "torch": "9"}
    for config, complaint in ((data["config"], None), ({"method": "quantum"}, "written by asapool 99.0.0.*update")):
        data["config"] = config
        data.pop("checksum", None)
        data["checksum"] = checkpoint.checksum(data, weights_of(GOOD))
        path.write_bytes(pack_tensors(weights_of(GOOD), metadata={checkpoint.KEY: json.dumps(data)}))
        if complaint is None:
            with pytest.warns(UserWarning, match=r"written by asapool 99\.0\.0, and this is"):
                checkpoint.load(path)
        else:
            with pytest.raises(CheckpointError, match=complaint):
                checkpoint.load(path)


def content_of(data):
    size = int.from_bytes(data[:8], "little")
    return json.loads(json.loads(data[8 : 8 + size])["__metadata__"][checkpoint.KEY])


def weights_of(data):
    return load_tensors(data)
