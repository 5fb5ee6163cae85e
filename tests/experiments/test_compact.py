"""Compact files: nothing that a table needs is lost, nothing else is kept, and adding changes no other line."""

import json
from dataclasses import replace

import pytest

from asapool.errors import DataError
from asapool.experiments.compact import compact, read_compact, together, write_compact
from asapool.experiments.rendering import to_dict
from asapool.experiments.store import Store
from asapool.experiments.tables import make_table
from asapool.models import ModelConfig
from benchmarks import accuracy
from tests.experiments.made_up import fill, plan_of, records_of

ASAP = [0.70, 0.72, 0.74, 0.74, 0.76, 0.78]


def made(values=None):
    plan = plan_of(("asap", "topk"))
    return plan, records_of(plan, values or {("asap", "NCI1"): ASAP, ("topk", "NCI1"): [*ASAP[:3], "no memory"]})


def test_the_table_of_the_compact_file_is_that_of_the_records(tmp_path):
    plan, records = made()
    write_compact(tmp_path / "NCI1.jsonl", records.values())
    again = read_compact(tmp_path / "NCI1.jsonl")
    assert to_dict(make_table(plan, again)) == to_dict(make_table(plan, records))
    assert {key: record.run for key, record in again.items()} == {key: r.run for key, r in records.items()}
    first = next(iter(again.values()))
    assert (first.history, first.probabilities, first.machine["cpu"]) == (None, None, "abacus")
    assert "confusion" not in (tmp_path / "NCI1.jsonl").read_text()


def test_the_order_is_that_of_the_content_and_adding_changes_no_line():
    _, records = made()
    text = compact(records.values())
    assert text == compact(reversed(records.values()))
    fewer = compact([record for record in records.values() if record.run.seed == 1])
    assert set(fewer.splitlines()) <= set(text.splitlines())


def test_only_settings_that_are_not_usual_are_written():
    _, records = made()
    line = json.loads(compact(records.values()).splitlines()[1])
    assert line["model"] == {"method": "asap", "hidden": 8}
    assert line["train"] == {}


def test_a_changed_line_is_noticed(tmp_path):
    _, records = made()
    path = tmp_path / "a.jsonl"
    path.write_text(compact(records.values()).replace('"hidden":8', '"hidden":16', 1))
    with pytest.raises(DataError, match=r"a\.jsonl, line 2: the run is .* but the line says"):
        read_compact(path)
    path.write_text('{"version":9,"machines":{}}\n')
    with pytest.raises(DataError, match="line 1: not a record"):
        read_compact(path)


def test_of_two_records_the_finished_one_stays_and_a_contradiction_is_refused():
    _, records = made()
    key, record = next(iter(records.items()))
    failed = replace(record, test=None, validation=None, failure="lost")
    assert together({key: failed}, {key: record})[key] is record
    assert together({key: record}, {key: failed})[key] is record
    short = replace(record, test={"accuracy": record.test["accuracy"]}, validation=None)
    assert together({key: short}, {key: record})[key] is record  # it knows more
    other = replace(record, test=record.test | {"accuracy": 0.1}, machine={"cpu": "slide rule"})
    with pytest.raises(DataError, match=r"different test scores on abacus \(torch .*\) and slide rule \(torch .*\)"):
        together({key: record}, {key: other})


@pytest.fixture
def table2_store(tmp_path):
    """A store with the Runs of two rows of table2 on NCI1, one seed, and made-up accuracies."""
    from asapool.experiments.plan import load_plan

    plan = load_plan("table2", datasets=["NCI1"], methods=["asap", "topk"], seeds=1)
    values = {("asap", "NCI1"): [0.71] * 10, ("topk", "NCI1"): [0.60] * 10}
    with Store.open(tmp_path / "store") as store:
        for record in records_of(plan, values).values():
            store.append(record)
    return tmp_path / "store"


def test_the_page_says_what_the_store_says(table2_store, tmp_path):
    results = tmp_path / "results"
    accuracy.add([table2_store], results)
    (results / "notes").mkdir()
    (results / "notes" / "table2.md").write_text("Why *topk* is low.\n")
    (results / "notes" / "odds.md").write_text("## Odds and ends\n")
    assert [path.name for path in results.glob("*.jsonl")] == ["NCI1.jsonl"]
    output = accuracy.page(results, *accuracy.read(results))
    assert "| asap | NCI1 | 71.00 | – | 0.00 | 1 × 10 | 71.48 ± 0.42 | −0.48 | outside |" in output
    assert "| topk | NCI1 | 60.00 | – | 0.00 | 1 × 10 | 67.02 ± 2.25 | −7.02 | outside | −11.00 |" in output
    assert "| ASAP has the highest accuracy on every data set | **not enough runs** | – | `table2` |" in output
    assert "| mlp | NCI1 |" not in output  # neither we nor the paper have it
    assert output.index("Why *topk* is low.") < output.index("## Odds and ends") < output.index("## Measure it again")
    missing = (
        "table-plus",
        "table-plus-folds",
        "ablation-plus",
        "pooling-helps",
        "pooling-range",
        "table-rates",
        "table-semantics",
        "table-agg",
    )
    assert "Not measured yet: `" + "`, `".join(missing) in output  # one shared row is no table
    assert "| 20 | 0.0 | abacus | 1 |" in output
    before = (results / "NCI1.jsonl").read_bytes()
    accuracy.add([table2_store], results)
    assert (results / "NCI1.jsonl").read_bytes() == before


def test_where_one_data_set_contradicts_none_is_written(tmp_path):
    """NCI1 comes after DD: its old record must be held against the new one before the file of DD is touched."""
    plan = plan_of(("asap",), columns=("DD", "NCI1"))
    first = records_of(plan, {("asap", "NCI1"): ASAP, ("asap", "DD"): ASAP[:3]})
    second = records_of(plan, {("asap", "NCI1"): [0.1] * 6, ("asap", "DD"): ASAP})
    results = tmp_path / "results"
    accuracy.add([fill(tmp_path / "first", first.values())], results)
    before = {path.name: path.read_bytes() for path in results.iterdir()}
    assert set(before) == {"DD.jsonl", "NCI1.jsonl"}
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "table3.json").write_text('{"rows": [{"name": "DD"}]}')
    with pytest.raises(DataError, match="different test scores"):
        accuracy.add([fill(tmp_path / "second", second.values())], results)
    assert {path.name: path.read_bytes() for path in results.iterdir()} == before


def test_the_recipe_goes_on_from_the_committed_results():
    """What is there already is taken over first, or it would be trained again and perhaps contradict itself."""
    lines = accuracy.AGAIN.split("```")[1].strip().splitlines()
    assert lines[0].startswith("asapool results results --merge OUT ")
    assert all(" --out OUT" in line for line in lines[1:-1])
    assert lines[-1] == "python -m benchmarks.accuracy --add OUT"


def test_the_committed_results_can_be_read():
    """Every line of results/ is a Run of today's settings, and ASAP on PROTEINS is among them."""
    files = sorted(accuracy.RESULTS.glob("*.jsonl"))
    records = together(*map(read_compact, files))
    assert any(r.run.data == "PROTEINS" and r.run.model.method == "asap" for r in records.values())
    assert all(isinstance(record.run.model, ModelConfig) for record in records.values())
