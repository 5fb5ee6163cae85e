"""docs/explanations.md says what was measured, and its example runs."""

import json
import re
import textwrap

import numpy as np

import asapool
from asapool.models import ModelConfig, build, checkpoint
from benchmarks import faithfulness, motif_recovery
from benchmarks.explanations import PAGE, RESULTS, precision, table_of


def test_the_table_is_that_of_the_results():
    assert table_of(json.loads(RESULTS.read_text())) in PAGE.read_text()


def test_the_tables_of_motifs_and_of_faithfulness_are_those_of_the_results():
    for script in (faithfulness, motif_recovery):
        assert script.table_of(json.loads(script.RESULTS.read_text())) in script.PAGE.read_text()


def test_precision_counts_the_true_among_the_first():
    truth, chance = np.array([1, 0, 1, 0]), np.random.default_rng(0)
    assert precision(truth, np.array([4.0, 3.0, 2.0, 1.0]), chance) == 0.5
    assert precision(truth, np.array([4.0, 1.0, 2.0, 1.0]), chance) == 1.0


def test_the_example_runs(tmp_path, monkeypatch):
    graphs = asapool.load("nci-alerts")
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    model = build(ModelConfig(hidden=4), graphs.num_features, 2, seed=0)
    path = tmp_path / "runs" / "demo" / "model.safetensors"
    checkpoint.save(path, model, classes=graphs.class_names, recipe=graphs.recipe)
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S).group(1)
    exec(code, {})
    assert (tmp_path / "level1.png").read_bytes().startswith(b"\x89PNG")


def test_the_example_of_the_forecast_runs():
    text = (PAGE.parent / "theory.md").read_text()
    lines = re.search(r"((?:    .*\n|\n)+)\nit forecasts that", text).group(1)
    code = textwrap.dedent(lines).replace('"PROTEINS"', '"synthetic:cycles?graphs=4"')
    *before, last = code.strip().splitlines()
    names = {}
    exec("\n".join(before), names)
    levels = eval(last, names)
    assert [(level.method, level.level) for level in levels if level.level == 3] == [("topk", 3), ("asap", 3)]
    assert all(level.nodes > 0 for level in levels)


def test_the_example_of_the_receptive_spans_has_the_numbers_of_the_text():
    text = (PAGE.parent / "theory.md").read_text()
    lines = re.search(r"no node sees both.\n\n((?:    .*\n|\n)+)\nWith these convolutions", text).group(1)
    *before, pooled, plain = textwrap.dedent(lines).strip().splitlines()
    names = {}
    exec("\n".join(before), names)
    assert (round(eval(pooled, names)[-1], 1), eval(plain, names)[-1]) == (12.1, 8.0)
    assert "spans 8 hops; with two ASAP poolings 12.1" in text
