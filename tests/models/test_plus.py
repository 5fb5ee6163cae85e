"""asap+ and none+: their blocks by hand, their symmetries, their settings, and the fields of a batch they read."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from asapool.data import load
from asapool.errors import CheckpointError, ConfigError, DataError, InputError
from asapool.kernels import graph_from_rows
from asapool.models import ModelConfig, build, checkpoint
from asapool.models.batches import check_extras, cut
from asapool.models.config import ModelShape
from asapool.models.plus import PlusBlock
from asapool.training import predict
from tests.models.batches import pack, random_graphs, relabelled

SMILES = ("CCO", "c1ccccc1O", "CC(=O)N", "C#N", "CCCl", "OCC=C")


def eager(config, F=4, edges=0):
    """A model whose batch norms have seen something, in eval mode."""
    model = build(config, F, 3, seed=0, edge_channels=edges).double()
    g = torch.Generator().manual_seed(1)
    for name, value in model.named_buffers():
        if name.endswith("running_var"):
            value.copy_(torch.rand(value.shape, generator=g) + 0.5)
        elif name.endswith("running_mean"):
            value.copy_(torch.randn(value.shape, generator=g))
    return model.eval()


@pytest.fixture(scope="module")
def molecules():
    pytest.importorskip("rdkit")
    from asapool.estimator import pack as read

    return replace(read(list(SMILES), labels="ignored"), y=np.array([0, 1, 0, 1, 0, 1]), class_names=("no", "yes"))


def test_a_block_adds_its_output_to_its_input():
    config = ModelConfig(method="asap+", hidden=1, conv="gin", norm="none")
    block = PlusBlock(config, 1, 0).eval()
    for part in (block.conv.first, block.conv.second):
        torch.nn.init.ones_(part.weight)
        torch.nn.init.zeros_(part.bias)
    path = graph_from_rows(
        torch.tensor([0, 3]), torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1]), None, torch.float32
    )
    x = torch.tensor([[1.0], [5.0], [2.0]])
    assert block(x, path).view(-1).tolist() == [7, 13, 9]  # 1 + (1 + 5), 5 + (5 + 1 + 2), 2 + (2 + 5)
    block.residual = False
    assert block(x, path).view(-1).tolist() == [6, 8, 7]


def test_a_feature_without_variance_is_bounded():
    """A readout that was 0 in every training graph: (1 − 0) / √(0 + 10⁻⁵) = 316 without the bound."""
    free, bound = (
        eager(ModelConfig(method="none+", hidden=2, counts="none", readout_bound=b), F=1) for b in (0.0, 5.0)
    )
    for model in (free, bound):
        model.norm.running_mean.zero_()
        model.norm.running_var.fill_(1.0)
        model.norm.running_var[0] = 0.0  # mean readout of the feature
        model.norm.bias.data[1] = -7.0  # its max
    node = (torch.ones(1, 1).double(), torch.tensor([0, 1]), torch.tensor([0, 0]), torch.zeros(0, dtype=torch.long))
    v = free.embed(*node)[0]
    assert v[0].item() == pytest.approx(316.23, abs=0.01)
    assert v[1].item() == pytest.approx(-6.0, abs=0.01)
    assert torch.equal(bound.embed(*node)[0], v.clamp(-5, 5))
    assert bound.embed(*node)[0, :2].tolist() == [5.0, -5.0]


def test_configs_without_a_bound_are_written_as_before_there_was_one():
    old = ModelConfig(method="asap+")
    assert "readout_bound" not in old.to_dict()
    assert ModelConfig.from_dict(old.to_dict()) == old
    new = ModelConfig(method="asap+", readout_bound=5)
    assert new.to_dict()["readout_bound"] == 5.0
    assert ModelConfig.from_dict(new.to_dict()) == new


@pytest.mark.parametrize("method", ["asap+", "none+"])
def test_a_batch_is_its_graphs_one_by_one_in_any_order_of_nodes(method):
    model = eager(ModelConfig(method=method, hidden=6))
    graphs = random_graphs(3, (1, 2, 7, 12), weighted=True)
    with torch.no_grad():
        together = model(*pack(graphs))
        alone = torch.cat([model(*pack([graph])) for graph in graphs])
        moved = model(*pack(relabelled(graphs, 5)))
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(together, moved)


def test_backends_agree_and_gradients_reach_every_weight():
    packed = pack(random_graphs(2, (5, 9)))
    answers = []
    for backend in ("reference", "fused"):
        model = eager(ModelConfig(method="asap+", hidden=6, backend=backend))
        answers.append(model(*packed))
    torch.testing.assert_close(answers[0], answers[1])
    answers[1].logsumexp(1).sum().backward()
    still = [name for name, p in model.named_parameters() if p.grad is None and ".attention." not in name]
    assert still == []


def test_levels_are_read_out_as_the_settings_say():
    shape = ModelShape(in_channels=4, num_classes=2)
    widths = {
        (1, True, ("mean", "max", "sum")): 3 * (4 + 2 * 8),
        (2, True, ("mean", "max", "sum")): 3 * (4 + 3 * 8),
        (2, False, ("sum",)): 2 * 8,
    }
    for (levels, level0, readouts), width in widths.items():
        config = ModelConfig(method="asap+", hidden=8, levels=levels, level0=level0, readouts=readouts)
        assert build(config, shape.in_channels, 2, seed=0).encoder.out_channels == width


def test_the_hierarchy_is_that_of_its_poolings():
    model, packed = eager(ModelConfig(method="asap+", hidden=6)), pack(random_graphs(4, (12,)))
    assert [step.x.size(0) for step in model.hierarchy(*packed)] == [6, 3]
    with pytest.raises(ConfigError, match=r"'none\+' does not pool"):
        eager(ModelConfig(method="none+", hidden=6)).hierarchy(*packed)


def test_method_and_settings():
    plus, plain = ModelConfig(method="asap+"), ModelConfig(method="asap")
    assert (plus.levels, plus.conv, plus.readouts, plus.counts) == (2, "gin", ("mean", "max", "sum"), "wl")
    assert (plain.levels, plain.conv, plain.counts, plain.norm) == (3, "gcn", "none", "none")
    assert ModelConfig(method="asap+", levels=3, counts="none").levels == 3
    assert ModelConfig.from_dict(plus.to_dict()) == plus
    off = ModelConfig(method="none+", residual=False, level0=False, readouts=("mean", "max"), counts="none")
    assert ModelConfig.from_dict(off.to_dict()) == off
    # a run of 0.1.0 has the key that it had then
    assert "residual" not in plain.to_dict()
    assert set(plus.to_dict()) - set(plain.to_dict()) >= {"residual", "counts", "count_depth"}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"readouts": ()}, r"model\.readouts must be one or more of"),
        ({"readouts": ("mean", "mean")}, "each once"),
        ({"counts": "fp"}, r"model\.counts must be one of 'none', 'wl', 'ecfp'"),
        ({"count_depth": 17}, r"model\.count_depth must be at most 16"),
        ({"count_buckets": 2**21}, r"model\.count_buckets must be at most 1,048,576 for WL counts"),
        ({"count_buckets": 0}, r"model\.count_buckets must be a whole number of at least 1"),
        ({"norm": "instance"}, r"model\.norm must be one of"),
        ({"residual": 1}, r"model\.residual must be true or false"),
        ({"first_convs": 0}, r"model\.first_convs must be a whole number"),
        ({"count_dropout": 1.0}, r"model\.count_dropout must be a number in \[0, 1\)"),
        ({"readout_bound": -1.0}, r"model\.readout_bound must be a number 0 or more, got -1.0"),
    ],
)
def test_impossible_settings_are_refused(setting, words):
    with pytest.raises(ConfigError, match=words):
        ModelConfig(method="asap+", **setting)


def test_bonds_are_read_if_there_are_some(molecules):
    model = build(ModelConfig(method="asap+", hidden=6), molecules.num_features, 2, seed=0, edge_channels=6).eval()
    batch = cut(model, molecules, np.arange(6))
    assert batch.edge_attr.shape == (batch.col.numel(), 6)
    with torch.no_grad():
        plain = model(*batch.inputs, edge_attr=batch.edge_attr)
        assert not torch.allclose(plain, model(*batch.inputs, edge_attr=batch.edge_attr.flip(0)))
    with pytest.raises(InputError, match=r"edge_attr must have the shape \(edges, 6\).*got none"):
        model(*batch.inputs)
    wrong = batch.edge_attr.clone()
    wrong[3, 0] = float("nan")
    with pytest.raises(InputError, match="edge 3 has NaN"):
        model(*batch.inputs, edge_attr=wrong)
    with pytest.raises(InputError, match="one row of features per edge"):
        model(*batch.inputs, edge_attr=batch.edge_attr[1:])
    with pytest.raises(CheckpointError, match="edges have 0 features, the model was trained on 6"):
        check_extras(model, replace(molecules, edge_attr=None))
    without = build(ModelConfig(method="asap+", hidden=6, edge_features=False), 36, 2, seed=0, edge_channels=6)
    assert without.reads == ()
    assert cut(without, molecules, np.arange(6)).edge_attr is None


def test_ecfp_counts_come_with_the_batch_and_need_molecules(molecules):
    config = ModelConfig(method="none+", hidden=6, counts="ecfp", count_depth=2, count_buckets=128)
    model = build(config, molecules.num_features, 2, seed=0, edge_channels=6).eval()
    assert cut(model, molecules, np.arange(2)).graph_attr.sum(1).tolist()[0] == 6  # CCO: 3 atoms, 2 + 1 larger ones
    assert predict(model, molecules).shape == (6, 2)
    graphs = load("synthetic:cycles?graphs=4")
    other = build(config, graphs.num_features, 2, seed=0)
    with pytest.raises(DataError, match="ECFP needs molecules read from SMILES"):
        predict(other, graphs)


@pytest.mark.parametrize("counts", ["wl", "ecfp"])
def test_a_loaded_model_answers_to_the_last_bit(molecules, tmp_path, counts):
    config = ModelConfig(method="asap+", hidden=6, counts=counts, count_depth=2, count_buckets=64)
    model = build(config, molecules.num_features, 2, seed=3, edge_channels=6).eval()
    checkpoint.save(tmp_path / "m.safetensors", model, classes=("no", "yes"), recipe=molecules.recipe)
    loaded = checkpoint.load(tmp_path / "m.safetensors")
    assert (loaded.config, loaded.model.shape) == (config, model.shape)
    assert np.array_equal(predict(loaded.model, molecules), predict(model, molecules))
    with pytest.raises(CheckpointError, match="its edges have 0 features"):
        loaded.check(replace(molecules, edge_attr=None))
