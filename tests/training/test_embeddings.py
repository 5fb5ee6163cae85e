"""Vectors of graphs: they are what the head reads, for every network, and files hold them with the id first."""

import csv

import numpy as np
import pytest
import torch

from asapool.data import GraphSet, load
from asapool.errors import ConfigError
from asapool.models import ModelConfig, build, method_names
from asapool.models.batches import cut
from asapool.training.embeddings import Vectors, embed, embed_nodes, save_vectors, vectors_of
from asapool.training.predictions import logits_of


@pytest.fixture(scope="module")
def graphs():
    return load("synthetic:cycles?graphs=6")


@pytest.mark.parametrize("name", method_names(trainer="gradient", builtin=True))
def test_the_head_makes_the_logits_of_the_vectors(graphs, name):
    model = build(ModelConfig(method=name, hidden=8), graphs.num_features, 2, seed=0, typical_nodes=14).eval()
    v = torch.from_numpy(embed(model, graphs))
    assert v.shape[0] == 6
    head = model.head if hasattr(model, "head") else lambda v: model.lin2(model.lin1(v).relu())
    torch.testing.assert_close(head(v), logits_of(model, cut(model, graphs, np.arange(6))))
    assert {name.split(".")[0] for name in model.state_dict() if model.is_head(name)} <= {"head", "lin1", "lin2"}
    assert any(model.is_head(name) for name in model.state_dict())


def test_a_model_that_is_no_network_has_no_vectors(graphs):
    with pytest.raises(ConfigError, match="computes no vector of a graph"):
        embed(build(ModelConfig(method="majority"), graphs.num_features, 2), graphs)


def test_the_sum_of_features_worked_out_by_hand():
    """mlp: r = ReLU(W Σ x + b); with W = (1, -1), b = (0, 5) and Σ x = 3 that is (3, 2)."""
    trio = GraphSet(x=np.ones((3, 1)), ptr=[0, 3], rowptr=[0, 0, 0, 0], col=[])
    model = build(ModelConfig(method="mlp", hidden=2), 1, 2, seed=0)
    with torch.no_grad():
        model.encoder.lin.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        model.encoder.lin.bias.copy_(torch.tensor([0.0, 5.0]))
    assert embed(model, trio).tolist() == [[3.0, 2.0]]


@pytest.mark.parametrize("name", ["asap", "asap+", "topk", "sagpool"])
def test_pooled_nodes_are_the_rows_of_the_hierarchy(graphs, name):
    from asapool.insight import explain

    model = build(ModelConfig(method=name, hidden=8, levels=2), graphs.num_features, 2, seed=0).eval()
    for level in (1, 2):
        graph, node, x = embed_nodes(model, graphs, level)
        for g in (0, 5):
            seen = explain(model, graphs, g, importance=()).levels[level - 1]
            assert sorted(node[graph == g].tolist()) == sorted(seen.medoid.tolist())
        assert x.shape == (len(graph), 8)
    with pytest.raises(ConfigError, match="level must lie in 1 to 2"):
        embed_nodes(model, graphs, 3)


def test_a_method_without_levels_says_why(graphs):
    model = build(ModelConfig(method="none", hidden=8), graphs.num_features, 2, seed=0)
    with pytest.raises(ConfigError, match="does not pool, so it has no pooled nodes"):
        embed_nodes(model, graphs, 1)


@pytest.mark.parametrize("level", [None, 1])
def test_every_format_holds_the_same_rows(graphs, tmp_path, level):
    from pyarrow.parquet import read_table

    model = build(ModelConfig(hidden=4), graphs.num_features, 2, seed=0)
    whole = vectors_of(model, graphs, level)
    for name in ("v.csv", "v.npz", "v.parquet"):
        halves = (vectors_of(model, graphs.subset(part), level) for part in (range(3), range(3, 6)))
        assert save_vectors(tmp_path / name, halves) == whole.x.shape
    table = read_table(tmp_path / "v.parquet")
    assert table.column_names == whole.names
    assert table.column_names[0] == "id"
    with np.load(tmp_path / "v.npz") as file:
        arrays = dict(file)
    rows = list(csv.reader((tmp_path / "v.csv").read_text().splitlines()))
    first = len(whole.names) - whole.x.shape[1]
    assert rows[0] == whole.names
    assert [row[0] for row in rows[1:]] == arrays["id"].tolist() == table["id"].to_pylist() == list(whole.id)
    np.testing.assert_allclose(arrays["x"], whole.x, atol=1e-6)
    np.testing.assert_allclose(np.array([row[first:] for row in rows[1:]], np.float32), arrays["x"], rtol=1e-7)
    np.testing.assert_array_equal(np.stack([c.to_numpy() for c in table.columns[first:]], axis=1), arrays["x"])
    if level is not None:
        assert [int(row[1]) for row in rows[1:]] == arrays["node"].tolist() == whole.node.tolist()


def test_nothing_is_left_behind_when_writing_fails(tmp_path):
    def broken():
        yield Vectors(("a",), None, np.ones((1, 2), np.float32))
        raise ConfigError("no more")

    for name in ("v.csv", "v.npz", "v.parquet"):
        with pytest.raises(ConfigError, match="no more"):
            save_vectors(tmp_path / name, broken())
    assert not list(tmp_path.iterdir())
