"""explain --against: importance for one class rather than another, flips found by search, similar graphs."""

import json

import numpy as np
import pytest
import torch

import asapool
from asapool.data import GraphSet, load
from asapool.errors import ConfigError
from asapool.insight import contrast
from asapool.insight.contrasting import common_nodes, similarities
from asapool.insight.flipping import branches, flip
from asapool.insight.importance import frozen
from asapool.models import GraphModel, ModelConfig, build
from asapool.models.config import ModelShape
from asapool.reports.contrast_page import contrast_page


class EdgesCount(GraphModel):
    """z = (edges − 2.5, Σ x): class 0 for graphs with many edges (both directions count as one)."""

    def __init__(self):
        super().__init__(ModelConfig(), ModelShape(in_channels=1, num_classes=2))

    def forward(self, x, ptr, rowptr, col, weight=None):
        """Logits."""
        edges = (rowptr[ptr[1:]] - rowptr[ptr[:-1]]) / 2
        total = torch.zeros(len(ptr) - 1).index_add(0, torch.repeat_interleave(ptr.diff()), x[:, 0])
        return torch.stack([edges - 2.5 + 0 * total, total], dim=1)


def test_the_fewest_removals_that_leave_the_graph_whole_are_found():
    import networkx as nx

    cycle = GraphSet.from_networkx([nx.cycle_graph(4)])  # 4 edges, no features that count: 4 − 2.5 > 0
    cycle = cycle.with_fields(x=np.zeros((4, 1), np.float32))
    model = EdgesCount()
    with frozen(model):
        # removing one node takes two edges and leaves a path: 2 − 2.5 < 0
        result = flip(model, cycle, 0, 1)
    assert result.flipped
    assert result.connected
    assert len(result.nodes) == 1
    assert result.edges == ()
    assert result.probability[1] == pytest.approx(1 / (1 + np.exp(-0.5)))
    full = GraphSet.from_networkx([nx.complete_graph(9)]).with_fields(x=np.zeros((9, 1), np.float32))
    with frozen(model):
        never = flip(model, full, 0, 1)  # without four nodes ten edges are left
    assert not never.flipped
    assert len(never.nodes) == 4


def test_branches_hang_on_one_edge():
    import networkx as nx

    nitro = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (5, 6), (6, 7), (6, 8)])
    ends = np.array([(a, b) for a, b in nitro.edges] + [(b, a) for a, b in nitro.edges]).T
    assert branches(9, *ends) == [frozenset({6, 7, 8})]


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    path = tmp_path_factory.mktemp("contrast") / "m.csv"
    texts = ["O=[N+]([O-])c1ccccc1", "Cc1ccc([N+](=O)[O-])cc1", "Cc1ccccc1", "CCO", "CCN", "Clc1ccccc1"]
    path.write_text("smiles,label\n" + "".join(f"{t},{'ab'['N+' in t]}\n" for t in texts))
    graphs = load(path)
    return build(ModelConfig(hidden=8, levels=1), graphs.num_features, 2, seed=0), graphs


def test_similar_graphs_and_what_they_have_in_common(molecules):
    _, graphs = molecules
    alike = similarities(graphs, 0)
    assert alike[0] == 1.0
    from rdkit import Chem, DataStructs
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    generator = GetMorganGenerator(radius=2, fpSize=2048)
    prints = [generator.GetCountFingerprint(Chem.MolFromSmiles(text)) for text in graphs.source_text]
    np.testing.assert_allclose(alike, [DataStructs.TanimotoSimilarity(prints[0], fp) for fp in prints])
    shared, matched = common_nodes(graphs, 0, 1)
    assert len(shared) == len(matched) == 9  # all of nitrobenzene
    plain = load("synthetic:cycles?graphs=6&nodes=6")
    assert similarities(plain, 2)[2] == 1.0
    assert common_nodes(plain, 0, 1) == ((), ())


def test_importance_is_about_one_class_rather_than_another():
    graphs = load("synthetic:multipartite?graphs=6&nodes=8")
    model = build(ModelConfig(hidden=8, levels=1), graphs.num_features, 3, seed=0)
    one = {k: asapool.explain(model, graphs, 0, target=0, against=k).importance for k in (1, 2)}
    other = asapool.explain(model, graphs, 0, target=1, against=2).importance
    for kind in ("gradient", "occlusion"):  # z0 − z2 = (z0 − z1) + (z1 − z2)
        np.testing.assert_allclose(one[2][kind], one[1][kind] + other[kind], atol=1e-4)


def test_the_page_and_json(molecules):
    model, graphs = molecules
    names = graphs.class_names
    answer = asapool.explain(model, graphs, 0, importance=[]).answer
    other = names[1 - names.index(answer)]
    result = contrast(model, graphs, 0, other)
    assert result.hierarchy.about == f"{answer} rather than {other}"
    assert [n.label for n in result.nearest] == [answer, other]
    plain = json.loads(result.to_json())
    assert plain["against"] == other
    assert asapool.Hierarchy.from_json(json.dumps(plain["hierarchy"])).against == names.index(other)
    page = contrast_page([result], graphs, [0])
    assert f"for {other}</span>" in page
    assert "Most similar graph of a" in page
    with pytest.raises(ConfigError, match="is compared with its own class"):
        contrast(model, graphs, 0, answer)
    with pytest.raises(ConfigError, match="against must be one of"):
        contrast(model, graphs, 0, "x")
