"""JSON lines: the schema, the round trip, streaming, and what is refused."""

import json

import numpy as np
import pytest

from asapool.data import GraphSet, load, read, stream
from asapool.data.jsonlines import write_jsonl
from asapool.data.loading import read_pieces
from asapool.errors import DataError
from tests.data.sources import dense, random_set

PATH = {"id": "p", "nodes": 3, "edges": [[0, 1], [1, 2]], "features": [[1, 0], [0, 1], [1, 0]], "label": "path"}
LOOP = {"id": "l", "nodes": 1, "edges": [[0, 0]], "features": [[0.5, 2]], "label": "loop"}


def write(path, *lines):
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_the_two_graphs(tmp_path):
    graphs = load(write(tmp_path / "two.jsonl", PATH, LOOP))
    assert (graphs.name, graphs.ids) == ("two", ("p", "l"))
    assert (graphs.class_names, graphs.y.tolist()) == (("loop", "path"), [1, 0])
    assert dense(graphs, 0).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert dense(graphs, 1).tolist() == [[1]]
    assert graphs.x.tolist() == [[1, 0], [0, 1], [1, 0], [0.5, 2]]
    assert graphs.recipe == {"version": 1, "kind": "graph", "features": "attributes", "attributes": ["x0", "x1"],
                             "classes": ["loop", "path"]}  # fmt: skip


def test_directions_weights_labels_truth_and_text(tmp_path):
    arrow = {"nodes": ["C", "N"], "edges": [[0, 1, 2.5]], "directed": True, "edge_features": [[7]], "truth": [0, 1],
             "text": "CN", "label": 1}  # fmt: skip
    bond = {"nodes": ["C", "O"], "edges": [[1, 0, 4]], "edge_features": [[9]], "label": 2.0}
    graphs = load(write(tmp_path / "g.jsonl", arrow, "", bond))
    assert dense(graphs, 0).tolist() == [[0, 0], [2.5, 0]]  # 0 -> 1 is in row 1
    assert dense(graphs, 1).tolist() == [[0, 4], [4, 0]]
    assert graphs.edge_attr.tolist() == [[7], [9], [9]]
    assert graphs.feature_names == ("label=C", "label=N", "label=O")
    assert graphs.x.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert (graphs.truth.tolist(), graphs.source_text, graphs.class_names) == ([0, 1, 0, 0], ("CN", ""), ("1", "2"))


def test_labels_and_features_together_and_neither(tmp_path):
    both = [{"nodes": ["a", "b"], "features": [[1], [2]], "label": k} for k in (0, 1)]
    assert load(write(tmp_path / "both.jsonl", *both)).feature_names == ("x0", "label=a", "label=b")
    bare = [{"nodes": 3, "edges": [[0, 1]], "label": k} for k in (0, 1)]
    assert load(write(tmp_path / "bare.jsonl", *bare)).feature_names == ("degree=0", "degree>=1")


@pytest.mark.parametrize("weighted", [True, False])
def test_a_set_survives_the_round_trip(tmp_path, weighted):
    graphs = random_set(5, weighted=weighted)
    write_jsonl(graphs, tmp_path / "r.jsonl")
    back = load(tmp_path / "r.jsonl", labels="optional")
    assert (back.fingerprint, back.name, back.recipe) == (graphs.fingerprint, graphs.name, graphs.recipe)


def test_undirected_sets_list_each_edge_once(tmp_path):
    graphs = load("synthetic:cycles?graphs=4")
    write_jsonl(graphs, tmp_path / "c.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert sum(len(line["edges"]) for line in lines[1:]) == len(graphs.col) // 2
    assert load(tmp_path / "c.jsonl").fingerprint == graphs.fingerprint
    assert load(tmp_path / "c.jsonl", recipe=graphs.recipe).fingerprint == graphs.fingerprint


def test_a_recipe_gives_new_lines_the_same_columns(tmp_path):
    old = load(write(tmp_path / "old.jsonl", {"nodes": ["C", "N"], "label": "a"}, {"nodes": ["O"], "label": "b"}))
    new = load(write(tmp_path / "new.jsonl", {"nodes": ["O", "C"]}), recipe=json.loads(json.dumps(old.recipe)))
    assert new.x.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert (new.y.tolist(), new.class_names) == ([-1], ("a", "b"))
    with pytest.raises(DataError, match="new: node label 'Xe' does not occur"):
        load(write(tmp_path / "new.jsonl", {"nodes": ["Xe"]}), recipe=old.recipe)


BAD = {
    "not JSON": ('{"nodes": 3', r"bad.jsonl, line 3: not JSON \(.*One JSON object per line"),
    "a list": ("[1, 2]", r"line 3: expected a JSON object, got list"),
    "deep nesting": ("[" * 100_000, r"line 3: not JSON"),
    "a mistyped key": ({"nodes": 1, "lable": 1}, r"line 3: unknown key 'lable', expected some of directed, edge_f"),
    "no nodes key": ({"edges": []}, r"line 3: 'nodes' is missing"),
    "no nodes": ({"nodes": 0, "features": []}, r"line 3: the graph has no nodes"),
    "nodes as text": ({"nodes": "three"}, r"line 3: 'nodes' must be a whole number up to 10,000,000 or a list"),
    "far too many nodes": ({"nodes": 10**12}, r"line 3: 'nodes' must be a whole number"),
    "an edge to nowhere": (PATH | {"edges": [[0, 3]]}, r"line 3: an edge names node 3, but nodes are 0 to 2"),
    "an edge to -1": (PATH | {"edges": [[0, -1]]}, r"line 3: an edge names node -1"),
    "half an edge": (PATH | {"edges": [[0]]}, r"line 3: 'edges' must be a list of \[a, b\]"),
    "edges of two kinds": (PATH | {"edges": [[0, 1], [1, 2, 3]]}, r"line 3: 'edges' must be a list"),
    "edges of text": (PATH | {"edges": [["0", "1"]]}, r"line 3: 'edges' must be a list"),
    "edges between nodes": (PATH | {"edges": [[0, 0.5]]}, r"line 3: the ends of an edge must be whole numbers"),
    "an edge both ways": (
        PATH | {"id": "x", "edges": [[0, 1], [1, 0]]}, r"line 3: the undirected edge 0-1 is listed in both directions"),
    "an infinite weight": (PATH | {"edges": [[0, 1, 1e300]]}, r"line 3: an edge weight is NaN or infinite"),
    "a feature too few": (PATH | {"features": [[1, 0]]}, r"line 3: 'features' must have one list per .*got 1"),
    "ragged features": (PATH | {"features": [[1], [1, 2], [1]]}, r"line 3: 'features' must be lists of numbers"),
    "features of another width": (
        PATH | {"features": [[1], [2], [3]]}, r"line 3: 1 features per node, but .*line 1 has 2"),
    "NaN": (json.dumps(PATH).replace("[1, 0]", "[NaN, 0]"), r"line 3: a node feature is NaN or infinite"),
    "truth of 2": (PATH | {"truth": [0, 1, 2]}, r"line 3: 'truth' must be a list of 3 numbers 0 or 1"),
    "an id twice": (PATH, r"line 3: id 'p' was used before, at .*bad.jsonl, line 1"),
    "a label list": (PATH | {"label": [1]}, r"line 3: 'label' must be text or a number"),
    "a measured label": (
        PATH | {"id": 3, "label": 0.5}, r"bad, graph 2: expected a class, got the measured value '0.5'"),
    "bytes": ('{"nodes": 1, "id": "\udce9"}', r"line 3: not (UTF-8|JSON)"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_lines_are_refused_with_their_number(tmp_path, case):
    line, sentence = BAD[case]
    text = "".join((part if isinstance(part, str) else json.dumps(part)) + "\n" for part in (PATH, LOOP, line))
    (tmp_path / "bad.jsonl").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=sentence):
        load(tmp_path / "bad.jsonl")


def test_files_without_graphs(tmp_path):
    with pytest.raises(DataError, match=r"e.jsonl: the file is empty. One JSON object per line"):
        load(write(tmp_path / "e.jsonl", "", " "))
    with pytest.raises(DataError, match="there are no graphs"):
        load(write(tmp_path / "h.jsonl", {"asapool": 1}))
    with pytest.raises(DataError, match=r"line 1: version 9 of the schema, expected 1\. Update"):
        load(write(tmp_path / "v.jsonl", {"asapool": 9}))
    with pytest.raises(DataError, match="one: only one graph is labelled"):
        load(write(tmp_path / "one.jsonl", PATH))
    with pytest.raises(DataError, match="none: there are no class labels"):
        load(write(tmp_path / "none.jsonl", {"nodes": 1}))


def test_lines_that_cannot_be_read_are_skipped_on_request(tmp_path):
    reading = read(write(tmp_path / "s.jsonl", PATH, "{", LOOP, {"nodes": 0}), skip_invalid=True)
    graphs, skipped = reading.graphs, reading.skipped
    assert graphs.ids == ("p", "l")
    assert [row.line for row in skipped] == [2, 4]
    assert skipped[1].reason.startswith("the graph has no nodes")


def test_graphs_keep_their_index_which_is_the_default_id(tmp_path):
    bare = {name: value for name, value in PATH.items() if name != "id"}
    path = write(tmp_path / "s.jsonl", bare, "{", {**LOOP, "id": None}, "", bare)
    graphs = load(path, skip_invalid=True)
    assert (graphs.places.tolist(), graphs.ids, graphs.named) == ([0, 2, 3], ("0", "2", "3"), False)
    pieces = list(stream(path, recipe=graphs.recipe, chunk=1, skip_invalid=True))
    assert [(p.places.tolist(), p.ids) for p in pieces] == [([0], ("0",)), ([2], ("2",)), ([3], ("3",))]


def test_ids_may_repeat_in_data_to_predict(tmp_path):
    recipe = load(write(tmp_path / "two.jsonl", PATH, LOOP)).recipe
    path = write(tmp_path / "s.jsonl", PATH, LOOP, PATH)
    assert load(path, recipe=recipe).ids == ("p", "l", "p")
    for chunk in (1, 10):
        assert [i for piece in stream(path, recipe=recipe, chunk=chunk) for i in piece.ids] == ["p", "l", "p"]


def test_streaming_gives_the_same_graphs_in_pieces(tmp_path):
    graphs = load("synthetic:motifs?graphs=11")
    write_jsonl(graphs, tmp_path / "m.jsonl")
    pieces = list(stream(tmp_path / "m.jsonl", recipe=graphs.recipe, chunk=4))
    assert [len(piece) for piece in pieces] == [4, 4, 3]
    assert np.array_equal(np.concatenate([piece.x for piece in pieces]), graphs.x)
    assert [i for piece in pieces for i in piece.ids] == list(graphs.ids)


def test_streaming_skips_what_the_recipe_cannot_read(tmp_path):
    old = load(write(tmp_path / "old.jsonl", {"nodes": ["C"], "label": "a"}, {"nodes": ["O"], "label": "b"}))
    new = write(tmp_path / "new.jsonl", {"nodes": ["C"]}, {"nodes": ["Xe"]}, "{", {"nodes": ["O"]})
    readings = list(read_pieces(new, recipe=old.recipe, chunk=10, skip_invalid=True))
    pieces, skipped = [r.graphs for r in readings], [row for r in readings for row in r.skipped]
    assert [piece.x.tolist() for piece in pieces] == [[[1, 0], [0, 1]]]
    assert sorted(row.line for row in skipped) == [2, 3]
    with pytest.raises(DataError, match="'Xe'"):
        list(stream(write(tmp_path / "new.jsonl", {"nodes": ["Xe"]}), recipe=old.recipe))


def test_streaming_keeps_only_one_piece_in_memory(tmp_path):
    import tracemalloc

    line = json.dumps({"nodes": 200, "edges": [[k, k + 1] for k in range(199)]}) + "\n"

    def peak(lines):
        (tmp_path / "long.jsonl").write_text(line * lines)
        tracemalloc.start()
        for _ in stream(tmp_path / "long.jsonl", chunk=50):
            pass
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    peak(50)
    assert peak(1000) < 1.5 * peak(150)


def test_finished_sets_keep_their_recipe(tmp_path):
    graphs = load("synthetic:cycles?graphs=4")
    write_jsonl(graphs, tmp_path / "c.jsonl")
    with pytest.raises(DataError, match=r"features are already made \(degree\), so features='constant' does not apply"):
        load(tmp_path / "c.jsonl", features="constant")
    with pytest.raises(DataError, match="made by another recipe than the one given"):
        load(tmp_path / "c.jsonl", recipe={**graphs.recipe, "max_degree": 7})
    assert load(tmp_path / "c.jsonl", recipe={**graphs.recipe, "classes": ["path", "cycle"]}).y.tolist() == [1, 0, 1, 0]
    assert isinstance(load(graphs), GraphSet)


def test_lists_of_targets_of_different_lengths_are_refused(tmp_path):
    path = tmp_path / "m.jsonl"
    targets = ("[1.0, 2.0]", "null", "[1.0]", "[3.0, null]")
    path.write_text("".join(f'{{"nodes": 1, "target": {target}}}\n' for target in targets))
    with pytest.raises(
        DataError, match=r"m.jsonl, line 3: 'target' is a list of 1, but in line 1 a list of 2\. Give every"
    ):
        load(path)
    reading = read(path, skip_invalid=True)
    assert [line for line, _ in reading.skipped] == [3]
    np.testing.assert_array_equal(reading.graphs.y, [[1, 2], [np.nan, np.nan], [3, np.nan]])
    assert len(load(path, labels="ignored")) == 4
    path.write_text('{"nodes": 1, "target": 1.5}\n{"nodes": 1, "target": [2.5]}\n')
    with pytest.raises(DataError, match=r"line 2: 'target' is a list of 1, but in line 1 one value\."):
        load(path)
