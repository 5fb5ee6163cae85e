"""motifs: substructures are cut out, named, removed and counted as worked out by hand."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.stats import fisher_exact

import asapool
from asapool.data import GraphSet, load
from asapool.errors import ConfigError, DataError
from asapool.insight.copies import all_log_odds, answers_without
from asapool.insight.importance import frozen, log_odds, logits_of
from asapool.insight.substructures.cutting import Pieces, cluster_pieces, from_sets, match_pieces
from asapool.insight.substructures.measuring import adjusted, enrichment, fisher, variants_of
from asapool.insight.substructures.naming import atoms_of, fragment_names, hashes, molecules_of
from asapool.models import ModelConfig, build
from asapool.models.batches import cut

SMILES = ["Nc1ccccc1", "CNc1ccccc1", "O=[N+]([O-])c1ccccc1", "CC(=O)O", "CC(=O)OC", "C[Hg]Cl"]


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    path = tmp_path_factory.mktemp("molecules") / "m.csv"
    path.write_text("smiles,label\n" + "".join(f"{text},{k % 2}\n" for k, text in enumerate(SMILES * 2)))
    return load(path)


def model_for(graphs, method="asap", **settings):
    edges = 0 if graphs.edge_attr is None else graphs.edge_attr.shape[1]
    config = ModelConfig(method=method, hidden=8, levels=2, **settings)
    return build(config, graphs.num_features, graphs.num_classes, seed=0, typical_nodes=8, edge_channels=edges)


def names_of(graphs, sets):
    mols = molecules_of(graphs)
    bonds = graphs.edge_attr[:, :5].argmax(axis=1)
    return fragment_names(graphs, mols, atoms_of(graphs, mols), from_sets(graphs, *zip(*sets, strict=True)), bonds)


def test_fragments_have_canonical_names_with_the_hydrogens_of_closed_atoms(molecules):
    sets = [(0, [0, 1, 2, 6]), (1, [1, 2, 3, 7]), (2, [0, 1, 2, 3]), (3, [0, 1, 2, 3]), (4, [0, 1, 2, 3]), (5, [1, 2])]
    assert names_of(molecules, sets) == [
        "[NH2]c(c)c", "Nc(c)c", "O=[N+]([O-])c", "O=C([CH3])[OH]", "OC(=O)[CH3]", "Cl[Hg]"
    ]  # fmt: skip


def test_every_name_is_a_pattern_that_finds_its_own_atoms(molecules):
    from rdkit import Chem

    pieces = cluster_pieces(model_for(molecules).eval(), molecules)
    mols = molecules_of(molecules)
    names = fragment_names(molecules, mols, atoms_of(molecules, mols), pieces, None)
    assert len(names) > 20
    for p, name in enumerate(names):
        g = int(pieces.graph[p])
        own = {v - int(molecules.ptr[g]) for v in pieces.nodes(p)}
        assert own in map(set, mols[g].GetSubstructMatches(Chem.MolFromSmarts(name), uniquify=False)), name


def test_clusters_are_what_explain_shows(molecules):
    model = model_for(molecules).eval()
    pieces = cluster_pieces(model, molecules, share=0.0, max_nodes=5)
    listed = {(int(pieces.graph[p]), frozenset(v - int(molecules.ptr[pieces.graph[p]]) for v in pieces.nodes(p)))
              for p in range(len(pieces))}  # fmt: skip
    expected = set()
    for g in range(len(molecules)):
        h = asapool.explain(model, molecules, g, importance=[])
        for depth in range(1, 3):
            columns = h.assignment(depth).tocsc()
            for k in range(columns.shape[1]):
                nodes = frozenset(columns.indices[columns.indptr[k] : columns.indptr[k + 1]].tolist())
                if 1 < len(nodes) <= 5 and len(nodes) < h.nodes:
                    expected.add((g, nodes))
    assert listed == expected


def test_hashes_see_structure_and_labels_and_not_the_numbering():
    # two paths of three nodes numbered differently, a triangle, and a path whose middle has another label
    graphs = GraphSet.from_networkx(_triples())
    pieces = from_sets(graphs, range(4), [[0, 1, 2]] * 4)
    a, b, triangle, labelled = hashes(graphs, pieces, np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0])).tolist()
    assert a == b
    assert len({a, triangle, labelled}) == 3


def _triples():
    import networkx as nx

    return [
        nx.Graph(edges) for edges in ([(0, 1), (1, 2)], [(1, 0), (0, 2)], [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)])
    ]


@pytest.mark.parametrize("method", ["asap", "asap+"])
def test_a_removal_gives_the_answer_to_the_smaller_graph(molecules, method):
    model = model_for(molecules, method)
    pieces = from_sets(molecules, [2, 4, 0], [[0, 1, 2], [3, 4], [0]])
    with frozen(model):
        after = answers_without(model, molecules, pieces.graph, pieces.ptr, pieces.node)
        kept = answers_without(model, molecules, pieces.graph, pieces.ptr, pieces.node, keep=True)
        for row, (g, nodes) in enumerate([(2, [0, 1, 2]), (4, [3, 4]), (0, [0])]):
            N = int(np.diff(molecules.ptr)[g])
            rest = [v for v in range(N) if v not in nodes]
            for answers, chosen in ((after, rest), (kept, nodes)):
                part = induced_set(molecules, g, chosen)
                expected = logits_of(model, cut(model, part, np.zeros(1, np.int64)))[0]
                np.testing.assert_allclose(answers[row], expected.numpy(), rtol=1e-4, atol=1e-5)


def induced_set(graphs, g, nodes):
    """The subgraph as a set of one, built entry by entry."""
    a = int(graphs.ptr[g])
    place = {a + v: k for k, v in enumerate(nodes)}
    rowptr, col, entries = [0], [], []
    for v in nodes:
        for e in range(graphs.rowptr[a + v], graphs.rowptr[a + v + 1]):
            if int(graphs.col[e]) in place:
                col.append(place[int(graphs.col[e])])
                entries.append(e)
        rowptr.append(len(col))
    return GraphSet(
        x=graphs.x[[a + v for v in nodes]], ptr=[0, len(nodes)], rowptr=rowptr, col=np.array(col, np.int64),
        edge_attr=graphs.edge_attr[entries], class_names=graphs.class_names,
    )  # fmt: skip


def test_a_contribution_is_the_mean_loss_of_log_odds(molecules):
    model = model_for(molecules)
    result = asapool.motifs(model, molecules, query="[N+](=O)[O-]")
    (row,) = result
    assert (row.graphs, row.measured, result.source) == (2, 2, "query")
    with frozen(model):
        whole = log_odds(logits_of(model, cut(model, molecules, np.array([2]))), 1).item()
        part = induced_set(molecules, 2, [3, 4, 5, 6, 7, 8])
        rest = log_odds(logits_of(model, cut(model, part, np.zeros(1, np.int64))), 1).item()
    assert row.contribution[1] == pytest.approx(whole - rest, abs=1e-4)
    assert row.contribution[0] == pytest.approx(-row.contribution[1], abs=1e-4)
    assert row.examples[0].nodes == (0, 1, 2)


def test_enrichment_by_hand_and_by_scipy():
    # 3 of 4 graphs with it are in the class, 1 of 6 without: (3.5 · 5.5)/(1.5 · 1.5)
    ratio, p = enrichment(np.array([4]), np.array([3]), 10, 4)
    assert ratio[0] == pytest.approx(3.5 * 5.5 / (1.5 * 1.5))
    assert p[0] == pytest.approx(fisher_exact([[3, 1], [1, 5]]).pvalue)
    rng = np.random.default_rng(0)
    for a, b, c, d in rng.integers(0, 40, size=(30, 4)).tolist():
        assert fisher(a, b, c, d) == pytest.approx(fisher_exact([[a, b], [c, d]]).pvalue, rel=1e-9), (a, b, c, d)
    assert adjusted(np.array([0.01, 0.02, 0.03, 0.5])).tolist() == pytest.approx([0.04, 0.04, 0.04, 0.5])


def test_log_odds_of_three_classes():
    z = torch.randn(5, 3, dtype=torch.float64)
    expected = torch.stack([log_odds(z, c) for c in range(3)], dim=1)
    np.testing.assert_allclose(all_log_odds(z.numpy()), expected.numpy())


def test_a_weaker_motif_in_the_same_places_is_a_variant(molecules):
    result = asapool.motifs(model_for(molecules), molecules, min_graphs=2)
    first, second = result.rows[0], result.rows[0]
    here = Pieces(np.array([0, 2]), np.ones(2, np.int64), np.array([0, 2, 4]), np.array([0, 1, 20, 21]))
    there = replace(here, graph=np.array([1, 3]))
    start = np.array([0, 0, 20, 20])
    assert [m.variant_of for m in variants_of([first, second], [here, here], start)] == [None, first.name]
    assert [m.variant_of for m in variants_of([first, second], [here, there], start)] == [None, None]


def test_rows_are_complete_and_sorted(molecules):
    result = asapool.motifs(model_for(molecules), molecules, min_graphs=2)
    assert result.outputs == ("0", "1")
    best = [max(abs(m.strength(c)) for c in range(2)) for m in result]
    assert best == sorted(best, reverse=True)
    for m in result:
        assert m.graphs >= 2
        assert all(low <= mean <= high for low, mean, high in zip(m.low, m.contribution, m.high, strict=True))
    plain = json.loads(result.to_json())
    assert [row["name"] for row in plain["rows"]] == [m.name for m in result]
    assert result.to_csv().splitlines()[0].startswith("name,nodes,level,graphs,measured,variant_of,contribution:0")
    again = asapool.motifs(model_for(molecules), molecules, min_graphs=2)
    assert again.to_json() == result.to_json()


def test_methods_without_clusters_get_brics_fragments_or_a_reason(molecules):
    result = asapool.motifs(model_for(molecules, "mlp"), molecules, min_graphs=2)
    assert result.source == "BRICS"
    assert "BRICS" in result.note
    assert "[OH]" not in "".join(m.name for m in result if m.nodes == 1)
    graphs = load("synthetic:motifs?graphs=6&nodes=7")
    for method in ("mlp", "topk"):
        with pytest.raises(ConfigError, match=r"no clusters to cut out, .* Use a model with the method asap"):
            asapool.motifs(model_for(graphs, method), graphs)


def test_a_query_for_other_graphs_is_a_name_of_the_table():
    graphs = load("synthetic:motifs?graphs=12&nodes=7")
    model = model_for(graphs)
    first = asapool.motifs(model, graphs).rows[0]
    (row,) = asapool.motifs(model, graphs, query=first.name)
    assert (row.name, row.graphs) == (first.name, first.graphs)
    with pytest.raises(ConfigError, match="no cluster of synthetic:motifs has the hash 'x'"):
        asapool.motifs(model, graphs, query="x")


def test_mistakes_are_refused(molecules):
    model = model_for(molecules)
    for options, error, says in (
        ({"query": "C1("}, ConfigError, "is not SMARTS"), ({"query": "[Au]"}, DataError, r"no graph contains '\[Au\]'"),
        ({"min_graphs": 0}, ConfigError, "min_graphs must be"), ({"share": 2}, ConfigError, "share must lie"),
    ):  # fmt: skip
        with pytest.raises(error, match=says):
            asapool.motifs(model, molecules, **options)


def test_matches_are_joined_within_a_graph(molecules):
    from rdkit import Chem

    pieces = match_pieces(molecules, molecules_of(molecules), Chem.MolFromSmarts("C=O"))
    assert pieces.graph.tolist() == [3, 4, 9, 10]
    assert all(len(set(a) & set(b)) == 0 for a, b in combinations([pieces.nodes(p) for p in range(4)], 2))


def test_measured_values_and_yes_no_tasks(tmp_path):
    texts = ["Nc1ccccc1", "CNc1ccccc1", "O=[N+]([O-])c1ccccc1", "CC(=O)OC"] * 3
    (tmp_path / "r.csv").write_text("smiles,value\n" + "".join(f"{t},{k * 0.37:.2f}\n" for k, t in enumerate(texts)))
    graphs = load(tmp_path / "r.csv", target="value")
    model = build(ModelConfig(hidden=8, levels=1), graphs.num_features, 1, seed=0)
    model.target = replace(graphs.target, mean=(2.0,), scale=(3.0,))
    result = asapool.motifs(model, graphs, query="[N+](=O)[O-]")
    (row,) = result
    assert (result.kind, result.outputs) == ("regression", ("value",))
    with frozen(model):
        whole = logits_of(model, cut(model, graphs, np.array([2]))).item()
        rest = logits_of(model, cut(model, induced_set(graphs, 2, [3, 4, 5, 6, 7, 8]), np.zeros(1, np.int64))).item()
    assert row.contribution[0] == pytest.approx(3 * (whole - rest), abs=1e-4)
    have = np.arange(12) % 4 == 2
    y = graphs.y[:, 0]
    assert row.enrichment[0] == pytest.approx(y[have].mean() - y[~have].mean())
