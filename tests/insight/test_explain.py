"""explain: the levels are the model's own, any input gives the same answer, and importance means what it says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import asapool
from asapool.data import GraphSet, load
from asapool.errors import CheckpointError, ConfigError, DataError
from asapool.insight.importance import attention_importance, log_odds
from asapool.insight.inputs import find_graph
from asapool.models import ModelConfig, build, checkpoint, method_names
from asapool.training import predict

METHODS = method_names(trainer="gradient", builtin=True)

GRAPHS = load("synthetic:motifs?graphs=6&nodes=9")


def classifier(method="asap", graphs=GRAPHS, **settings):
    return build(ModelConfig(method=method, hidden=8, **settings), graphs.num_features, 2, seed=1, typical_nodes=14)


def margin(model, graphs):
    batch = graphs.batch([0])
    with torch.no_grad():
        return log_odds(model.eval()(batch.x, batch.ptr, batch.rowptr, batch.col, batch.weight), 0).item()


def test_levels_are_those_of_the_model():
    model = classifier()
    reported, batch = asapool.explain(model, GRAPHS, 2), GRAPHS.batch([2])
    steps = model.eval().hierarchy(batch.x, batch.ptr, batch.rowptr, batch.col, batch.weight)
    before = np.arange(14)
    for level, step in zip(reported.levels, steps, strict=True):
        before = before[step.perm.numpy()]
        assert level.medoid.tolist() == before.tolist()
        assert np.allclose(level.S.toarray(), step.S.to_dense().detach().numpy())
        assert np.allclose(level.fitness, step.fitness.detach().numpy())
        A = np.zeros((len(level), len(level)))
        A[level.target, level.source] = level.weight
        assert np.allclose(A, step.adjacency.to_dense().detach().numpy())
    assert [len(level) for level in reported.levels] == [7, 4, 2]
    for depth in range(4):
        assert np.allclose(reported.assignment(depth).sum(axis=0), 1)


@pytest.mark.parametrize("method", METHODS)
def test_the_probability_is_the_prediction_and_every_method_has_an_importance(method):
    model = classifier(method)
    reported = asapool.explain(model, GRAPHS, 3)
    assert np.allclose(reported.probability, predict(model, GRAPHS, [3])[0])
    assert {"gradient", "occlusion"} <= set(reported.importance)
    if method in ("asap", "topk", "sagpool", "asap+"):
        assert len(reported.levels) == (2 if method == "asap+" else 3)
        assert set(reported.importance) == {"attention", "gradient", "neighbourhood", "substitution", "occlusion"}
        flow = attention_importance(reported.nodes, reported.levels)  # members count too, not centres alone
        assert np.allclose(reported.importance["attention"], flow)
    else:
        assert reported.levels == ()
        assert "no levels to show" in reported.note
        with pytest.raises(ConfigError, match="no levels to show"):
            reported.assignment(1)


def test_selected_nodes_are_clusters_of_their_own():
    level = asapool.explain(classifier("topk"), GRAPHS, 0).levels[0]
    assert level.member.tolist() == level.kept.tolist()
    assert level.attention.tolist() == [1.0] * 7
    assert (np.diff(level.kept_fitness) <= 0).all()


def test_all_forms_of_a_graph_and_of_a_model_give_the_same(tmp_path):
    model = classifier()
    checkpoint.save(tmp_path / "m.safetensors", model, classes=GRAPHS.class_names, recipe=GRAPHS.recipe)
    first = asapool.explain(model, GRAPHS, 4).to_json()
    alone = GRAPHS.subset([4])
    for way in (
        tmp_path / "m.safetensors",
        str(tmp_path / "m.safetensors"),
        checkpoint.load(tmp_path / "m.safetensors"),
    ):
        assert asapool.explain(way, alone).to_json() == first
    for graph in (GRAPHS.to_pyg(4), GRAPHS.to_networkx(4)):
        again = asapool.explain(tmp_path / "m.safetensors", graph)
        assert again.label == "house"
        for kind, scores in asapool.Hierarchy.from_json(first).importance.items():
            assert np.allclose(again.importance[kind], scores)


def test_occlusion_is_what_the_answer_loses_without_the_node():
    model, one = classifier(), GRAPHS.subset([0])
    reported = asapool.explain(model, one, target="house")
    graph = one.to_networkx(0)
    for v in (0, 5, 13):
        rest = graph.copy()
        rest.remove_node(v)
        packed = GraphSet.from_networkx([rest], node_attributes=["x"])
        assert reported.importance["occlusion"][v] == pytest.approx(
            margin(model, one) - margin(model, packed), abs=1e-5
        )
    zeroed = one.x.copy()
    zeroed[5] = 0
    blank = asapool.explain(model, one, target="house", occlude="zero").importance["occlusion"][5]
    assert blank == pytest.approx(margin(model, one) - margin(model, one.with_fields(x=zeroed)), abs=1e-5)


def test_gradient_times_input_is_the_slope_of_fading_a_node_in():
    model, one = classifier(), GRAPHS.subset([0])
    reported = asapool.explain(model, one, target="house")
    e = 1e-2
    for v in (2, 11):
        ends = []
        for s in (1 + e, 1 - e):
            x = one.x.copy()
            x[v] *= s
            ends.append(margin(model, one.with_fields(x=x)))
        assert reported.importance["gradient"][v] == pytest.approx((ends[0] - ends[1]) / (2 * e), abs=2e-3)


def test_the_other_class_turns_the_signs_around():
    model = classifier()
    house, ring = (asapool.explain(model, GRAPHS, 0, target=name) for name in ("house", 1))
    for kind in ("gradient", "occlusion"):
        assert np.allclose(house.importance[kind], -ring.importance[kind], atol=1e-6)
    assert house.importance["attention"].tolist() == ring.importance["attention"].tolist()


def test_the_model_is_left_as_it_was():
    model = classifier().train()
    frozen = next(model.parameters()).requires_grad_(False)
    asapool.explain(model, GRAPHS, 0)
    assert model.training
    assert not frozen.requires_grad
    assert sum(p.requires_grad for p in model.parameters()) == len(list(model.parameters())) - 1
    assert all(p.grad is None for p in model.parameters())


def test_relabelled_nodes_are_explained_alike():
    model, data = build(ModelConfig(hidden=8), 3, 2, seed=1), GRAPHS.to_pyg(1)
    data.x = torch.rand(
        14, 3, generator=torch.Generator().manual_seed(1)
    )  # no two nodes alike: ties go to the lower number
    order = torch.randperm(14, generator=torch.Generator().manual_seed(0))
    place = torch.argsort(order)
    moved = data.clone()
    moved.x, moved.edge_index = data.x[order], place[data.edge_index]
    here, there = asapool.explain(model, data), asapool.explain(model, moved)
    for kind in ("attention", "gradient", "occlusion"):
        assert np.allclose(here.importance[kind][order.numpy()], there.importance[kind], atol=1e-5)


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_smallest_graphs_have_an_explanation(nodes):
    import networkx as nx

    graph = nx.path_graph(nodes)
    nx.set_node_attributes(graph, [1.0, 0.5], "x")
    model = build(ModelConfig(hidden=4), 2, 2, seed=0)
    reported = asapool.explain(model, graph)
    assert [len(level) for level in reported.levels] == [1, 1, 1]
    assert all(np.isfinite(scores).all() for scores in reported.importance.values())
    assert reported.to_svg(1).startswith("<svg")


def test_a_fitted_estimator_is_explained_as_the_model_that_it_saves(tmp_path):
    estimator = asapool.ASAPClassifier(epochs=1, random_state=0).fit(GRAPHS)
    estimator.save(tmp_path / "model.safetensors")
    direct, saved = (asapool.explain(model, GRAPHS, 2) for model in (estimator, tmp_path / "model.safetensors"))
    assert direct.to_json() == saved.to_json()
    assert direct.answer == estimator.predict(GRAPHS.subset([2]))[0]
    values = asapool.ASAPRegressor(epochs=1, random_state=0).fit(GRAPHS, np.arange(6.0))
    assert set(asapool.explain(values, GRAPHS.to_pyg(2)).importance) == set(direct.importance)
    with pytest.raises(CheckpointError, match="does not fit the model ASAPClassifier: its nodes have"):
        asapool.explain(estimator, load("synthetic:cycles?graphs=6"), 0)


def test_what_does_not_fit_is_refused_in_a_sentence(tmp_path):
    model = classifier()
    for args, error, says in (
        ((model, GRAPHS), ConfigError, "has 6 graphs; say which one"),
        ((model, GRAPHS.to_pyg(0), 1), ConfigError, "index selects from a GraphSet"),
        ((model, 7), DataError, "explain takes a GraphSet"),
        ((7, GRAPHS, 0), ConfigError, "explain takes a trained model"),
        ((asapool.ASAPClassifier(), GRAPHS, 0), ConfigError, "got ASAPClassifier that is not fitted; call fit first"),
        (
            (asapool.ASAPooling(4), GRAPHS, 0),
            ConfigError,
            r"got ASAPooling; .* own model have a method explain\(x, edge",
        ),
        ((tmp_path / "no.safetensors", GRAPHS, 0), CheckpointError, "there is no such file"),
        ((build(ModelConfig(), 3, 2), GRAPHS, 0), CheckpointError, "features per node, but the model was trained on 3"),
    ):
        with pytest.raises(error, match=says):
            asapool.explain(*args)
    with pytest.raises(ConfigError, match="importance must be one of"):
        asapool.explain(model, GRAPHS, 0, importance=["shap"])
    with pytest.raises(ConfigError, match="target must be one of 'house', 'ring', got 'barn'"):
        asapool.explain(model, GRAPHS, 0, target="barn")
    with pytest.raises(DataError, match=r"has no graph '6'; its graphs are 0 to 5$"):
        find_graph(GRAPHS, "6")


def test_a_graph_goes_by_its_place_in_the_source_or_by_its_id():
    named = replace(GRAPHS, named=True, ids=("a", "b", "b", "4", "0", "5"))
    assert [find_graph(named, word) for word in ("1", "a", "5", "graph=4", "id=4", "graph=0")] == [1, 0, 5, 4, 3, 0]
    for word, says in (
        ("4", r"'4' could be graph 3 \(id '4'\) and graph 4 \(id '0'\)\. Say which one is meant: graph=3 or graph=4"),
        ("b", r"'b' could be graph 1 \(id 'b'\) and graph 2 \(id 'b'\)"),
        ("c", "has no graph 'c'; its graphs are 0 to 5, or by id 'a', 'b', 'b', …"),
        ("id=1", "has no graph 'id=1'"),
        ("graph=a", "has no graph 'graph=a'"),
    ):
        with pytest.raises(DataError, match=says):
            find_graph(named, word)
    some = named.subset([5, 2])
    assert [find_graph(some, word) for word in ("5", "2")] == [0, 1]


def test_without_names_the_lines_of_a_file_are_no_second_numbers(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,label\nC,0\nC(,1\nCC,1\nCCC,0\nCCCC,1\n")
    graphs = load(tmp_path / "m.csv", skip_invalid=True)
    assert graphs.ids == ("2", "4", "5", "6")
    assert [find_graph(graphs, word) for word in ("0", "2", "3", "4")] == [0, 1, 2, 3]
    assert find_graph(graphs, "id=2") == 0
    with pytest.raises(DataError, match=r"has no graph '1'; its graphs are 0 to 4$"):
        find_graph(graphs, "1")  # it was left out
    model = build(ModelConfig(hidden=4), graphs.num_features, 2, seed=0)
    assert asapool.explain(model, graphs, 3).id == "4"  # its page says what --graph takes
