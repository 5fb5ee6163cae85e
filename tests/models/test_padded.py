"""A model on a padded batch gives the logits that it gives on the packed one."""

import pytest
import torch

from asapool.data import load
from asapool.errors import ConfigError
from asapool.kernels.dense import pad
from asapool.models import ModelConfig, build, method_names
from asapool.models.batches import cut, edge_channels
from asapool.models.methods import method
from asapool.models.padded import PaddedModel
from tests.graphs import with_random_parameters

pytest.importorskip("rdkit")
SMILES = ["CCO", "c1ccccc1C(=O)O", "C", "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "O=[N+]([O-])c1ccccc1", "N#CCCl", "C1CC1.O"]
VARIANTS = [
    {"method": "asap"},
    {"method": "asap", "semantics": "authors", "batch_norm": True, "jumping": True},
    {"method": "asap", "semantics": "pyg", "hops": 2, "ratio": 3},
    {"method": "asap", "max_neighbours": 2, "attention": "dynamic"},
    {"method": "asap+"},
    {"method": "asap+", "edge_features": False, "counts": "none", "norm": "graph", "readout_bound": 0.5},
    {"method": "asap+", "counts": "ecfp", "count_buckets": 64},
    {"method": "none+"},
    {"method": "none", "conv": "sage"},
    {"method": "topk", "conv": "gin"},
    {"method": "sagpool"},
    {"method": "mlp"},
]


def model_and_batch(**options):
    graphs = load(SMILES)
    config = ModelConfig(hidden=8, **options)
    made = build(config, graphs.num_features, 2, seed=0, edge_channels=edge_channels(graphs))
    model = with_random_parameters(made.double(), seed=1).eval()
    for name, buffer in model.named_buffers():
        if "running_var" in name:
            buffer.uniform_(0.5, 2)
    return model, cut(model, graphs, torch.arange(len(graphs)).numpy())


@pytest.mark.parametrize("options", VARIANTS, ids=lambda o: ",".join(map(str, o.values())))
def test_the_logits_are_those_of_the_packed_batch(options):
    model, batch = model_and_batch(**options)
    fields = batch.x.double(), batch.ptr, batch.rowptr, batch.col, batch.weight
    x, graph = pad(*fields, batch.edge_attr if "edge_attr" in model.reads else None)
    # the content of padding must not matter
    x = torch.where(graph.pattern.ptr.mask[:, :, None], x, 7.0)
    with torch.no_grad():
        expected = model(*fields, **model.more(batch))
        given = PaddedModel(model)(
            x, graph.weight + 0, batch.ptr.diff(), graph.edge_attr, model.more(batch).get("graph_attr")
        )
    assert expected.std() > 1e-4
    torch.testing.assert_close(given, expected, rtol=1e-9, atol=1e-9)


def test_every_method_either_reads_padded_batches_or_says_why_not():
    able = {name for name in method_names(builtin=True) if method(name).no_padding is None}
    assert able == {"asap", "asap+", "none", "none+", "topk", "sagpool", "mlp"}


@pytest.mark.parametrize("options", [{"method": "set2set"}, {"method": "asap", "assign": "members"}], ids=str)
def test_a_model_that_cannot_says_why(options):
    model, _ = model_and_batch(**options)
    with pytest.raises(ConfigError, match="cannot read padded batches"):
        PaddedModel(model)
