"""Plans: what they train and in which order, the files they come from, and the words they refuse."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from asapool.errors import CheckpointError, ConfigError, DataError
from asapool.experiments.compact import read_compact, together
from asapool.experiments.plan import Plan, load_graphs, load_plan
from asapool.experiments.plan_file import plan_names
from asapool.experiments.reproducing import known, load_plans, names_of
from asapool.models import ModelConfig
from asapool.training import TrainConfig
from asapool.training.config import AUTHORS_SEEDS, preset
from asapool.training.settings import overlay
from tests.experiments.made_up import Prints
from tests.experiments.small import graphs_of, plan_of

RESULTS = Path(__file__).parents[2] / "results"
SEARCHED = ["DD", "PROTEINS", "NCI1", "NCI109", "Mutagenicity"]
OWN = """
[plan]
name = "mine"
title = "My molecules"
seeds = [3, 4]
folds = 5
protocol = "stratified"

[model]
hidden = 16

[train]
epochs = 7

[[data]]
name = "cycles"
source = "synthetic:cycles?graphs=30"
train = { lr = 0.5 }

[[data]]
name = "NCI1"
on_request = true

[[row]]
name = "wide"
model = { hidden = 32 }
train = { lr = 0.25 }

[[row]]
name = "topk"
model = { method = "topk", ratio = [0.8, 0.5, 0.5] }
train = { epochs = 9 }
"""


@pytest.fixture
def plan_file(tmp_path):
    (tmp_path / "mine.toml").write_text(OWN)
    return tmp_path / "mine.toml"


def test_seeds_are_outermost_then_folds_then_cells():
    graphs = graphs_of("a", "b")
    plan = plan_of(columns=("a", "b"))
    order = [(r.seed, r.fold, r.model.method, r.data) for r in plan.runs(graphs)]
    assert order[:5] == [
        (8971, 0, "mlp", "a"), (8971, 0, "mlp", "b"), (8971, 0, "asap", "a"), (8971, 0, "asap", "b"),
        (8971, 1, "mlp", "a"),
    ]  # fmt: skip
    assert [seed for seed, *_ in order] == [8971] * 12 + [7] * 12
    assert [r.fold for r in plan.runs_of(plan.cells[0], graphs)] == [0, 1, 2, 0, 1, 2]


def test_cells_with_the_same_settings_share_their_runs():
    graphs = graphs_of()
    plan = plan_of(rows=("mlp",))
    twice = replace(plan, cells=(*plan.cells, replace(plan.cells[0], row="again")))
    assert len(twice.runs(graphs)) == len(plan.runs(graphs)) == 6


def test_a_plan_becomes_plain_data_and_back(plan_file):
    plan = load_plan(plan_file)
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    with pytest.raises(CheckpointError, match="not a plan"):
        Plan.from_dict({"cells": [{}]})


def test_a_file_of_ones_own(plan_file):
    plan = load_plan(plan_file)
    assert (plan.name, plan.title, plan.metric, plan.seeds, plan.folds, plan.protocol) == (
        "mine", "My molecules", "test", (3, 4), 5, "stratified",
    )  # fmt: skip
    assert plan.columns == ("cycles",)  # NCI1 only where it is named
    wide, topk = plan.cells
    assert (wide.model.method, wide.model.hidden, wide.model.semantics, wide.train.epochs) == ("asap", 32, "paper", 7)
    assert (topk.model.method, topk.model.hidden, topk.model.ratio) == ("topk", 16, (0.8, 0.5, 0.5))
    assert (topk.train.epochs, topk.train.lr) == (9, 0.5)
    assert wide.train.lr == 0.25  # a row wins over its data set, that over [train]


def test_a_row_may_set_something_on_one_data_set_alone(plan_file):
    """Last of all: over the row, which lies over the data set."""
    rate = "train = { lr = 0.25 }"
    plan_file.write_text(OWN.replace(rate, rate + "\non = { nci1 = { train = { lr = 0.125 } } }"))
    cells = load_plan(plan_file, datasets=["cycles", "NCI1"], methods=["wide", "topk"]).cells
    assert [(c.row, c.column, c.train.lr) for c in cells] == [
        ("wide", "cycles", 0.25), ("wide", "NCI1", 0.125), ("topk", "cycles", 0.5), ("topk", "NCI1", 0.01),
    ]  # fmt: skip


def test_options_cut_it_down(plan_file):
    plan = load_plan(plan_file, datasets=["nci1", "cycles"], methods=["topk"], seeds=1, folds=4, epochs=2)
    assert (plan.columns, plan.rows, plan.seeds, plan.folds) == (("NCI1", "cycles"), ("topk",), (3,), 4)
    assert {cell.train.epochs for cell in plan.cells} == {2}
    assert plan.cells[0].train.batch_size == 128
    assert plan.cells[0].source.source == "NCI1"
    assert load_plan(plan_file, methods=["asap"]).rows == ("wide",)  # a row is chosen by its method too
    assert load_plan("table-plus", methods=["asap+"]).rows == ("asap+",)  # unless a row has that name


def test_semantics_are_those_of_asap_alone(plan_file):
    wide, topk = load_plan(plan_file, semantics="authors").cells
    assert (wide.model.semantics, topk.model.semantics) == ("authors", "paper")  # topk: its default, untouched
    by_row = load_plan("table-semantics", semantics="authors", smoke=True)
    rows = {"authors": "authors", "paper": "paper", "pyg": "pyg", "paper with dynamic attention": "paper"}
    assert {c.row: c.model.semantics for c in by_row.cells} == rows


def test_files_beside_the_plan_are_found_from_anywhere(plan_file, tmp_path, monkeypatch):
    (tmp_path / "m.csv").write_text("smiles,active\nCCO,0\nCCN,1\n")
    plan_file.write_text(OWN.replace("synthetic:cycles?graphs=30", "m.csv"))
    monkeypatch.chdir("/")
    assert load_plan(plan_file).cells[0].source.source == str(tmp_path / "m.csv")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[[row]]", "[[rows]]", "'rows' is not a table. Use one of plan, data, model, train, row"),
        ('title = "', 'titel = "', "'titel' is not a setting of .plan.. Use one of name, title, metric"),
        ('source = "', 'sauce = "', "'sauce' is not a setting of ..data.."),
        ("model = { hidden = 32 }", "modle = { hidden = 32 }", "'modle' is not a setting of ..row.."),
        ("hidden = 32 }", "hidden = 32 }\non = { MUTAG = {} }", "settings on 'MUTAG', which is not a"),
        ("hidden = 32 }", "hidden = 32 }\non = { NCI1 = { lr = 1 } }", "'lr' is not a setting of on.NCI1 of a ..row.."),
        ("hidden = 32 }", "hidden = 32 }\nensemble = 0", "ensemble of a ..row.. must be an integer of at least 1"),
        ("hidden = 16", "hiden = 16", "did you mean model.hidden"),
        ("epochs = 7", "epoch = 7", "train.epoch is not a setting"),
        ("[3, 4]", "[3, 3]", "seeds must be different"), ("[3, 4]", "[-1]", "list of numbers from 0"),
        ("folds = 5", "folds = 2", "folds must be at least 3"), ('"stratified"', '"random"', "plan.protocol must be"),
        ("folds = 5", "folds = 'x'", "plan.folds must be an integer"),
        ("folds = 5", "folds = 5\nreference = 'x'", "plan.reference must be the name of a row .wide, topk., got 'x'"),
        ('name = "topk"', 'name = "wide"', "two cells 'wide'"), ('name = "mine"', 'name = "../x"', "file names"),
        ("[plan]", "[plan", "is not TOML"), ("on_request = true", "on_request = 1", "on_request must be true or false"),
        ('[[data]]\nname = "NCI1"', "[[data]]", "the name of a ..data.. must be"),
    ],
)  # fmt: skip
def test_mistakes_in_a_file_are_refused_in_a_sentence(plan_file, old, new, says):
    plan_file.write_text(OWN.replace(old, new, 1) if old != "[[row]]" else OWN.replace(old, new))
    with pytest.raises(ConfigError, match=says):
        load_plan(plan_file)


def test_a_row_may_be_an_ensemble(plan_file):
    plan_file.write_text(OWN.replace("hidden = 32 }", "hidden = 32 }\nensemble = 3", 1))
    plan = load_plan(plan_file)
    assert [cell.ensemble for cell in plan.cells] == [3, 1]
    assert Plan.from_dict(plan.to_dict()) == plan


def test_unknown_words_are_refused_with_the_known_ones(plan_file, tmp_path):
    for options, says in (
        ({"datasets": ["MUTAG"]}, "has no data set 'MUTAG'. It has cycles, NCI1"),
        ({"methods": ["gat"]}, "has no method 'gat'. It has wide, asap, topk"),
        ({"seeds": 3}, "has 2 seeds, not 3"),
    ):
        with pytest.raises(ConfigError, match=says):
            load_plan(plan_file, **options)
    with pytest.raises(ConfigError, match=r"there is no plan 'table9'. Use .*table2"):
        load_plan("table9")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_plan(tmp_path / "absent.toml")


@pytest.mark.parametrize("name", [name for name in plan_names() if "-plus" not in name and "pooling" not in name])
def test_the_plans_of_the_paper_are_the_authors_protocol_on_all_twenty_seeds(name):
    plan = load_plan(name, semantics="authors")
    assert (plan.name, plan.seeds, plan.folds, plan.protocol) == (name, AUTHORS_SEEDS, 10, "authors")
    assert {cell.train.epochs for cell in plan.cells} == {100}
    semantics = {c.model.semantics for c in plan.cells if c.model.method == "asap"}
    assert semantics <= ({"authors", "paper", "pyg"} if name == "table-semantics" else {"authors"})


def test_presets_lie_under_the_plan():
    cells = {c.column: c for c in load_plan("table2", methods=["asap"], semantics="authors").cells}
    dd = cells["DD"]
    assert (dd.model.hidden, dd.train.batch_size, dd.model.attention_dropout) == (16, 64, 0.3)
    assert cells["NCI1"].model.hidden == 128
    assert cells["NCI1"].model.semantics == "authors"


def test_settings_of_other_methods_are_those_with_the_best_validation_accuracy():
    """On the first two folds of the first seed, in results/; in a tie those that are closest to the authors'."""
    records = together(*(read_compact(path) for path in sorted(RESULTS.glob("*.jsonl")))).values()
    scores = {}
    for one in records:
        run = one.run
        if (run.seed, run.protocol, run.folds) == (AUTHORS_SEEDS[0], "authors", 10) and run.fold < 2:
            scores.setdefault((run.data, run.model, run.train), {})[run.fold] = one.validation["accuracy"]
    searched = load_plan("table-rates", datasets=SEARCHED).cells
    checked = 0
    for cell in load_plan("table2", datasets=SEARCHED).cells:
        variants = [c for c in searched if (c.column, c.model.method) == (cell.column, cell.model.method)]
        known = [(c, scores.get((c.column, c.model, c.train), {})) for c in variants]
        if cell.row == "asap" or not all(len(folds) == 2 for _, folds in known):
            continue
        means = {(c.model, c.train): round(sum(folds.values()) / 2, 9) for c, folds in known}
        assert means[cell.model, cell.train] == max(means.values()), (cell.row, cell.column)
        checked += 1
    assert checked == 40  # eight methods on five data sets


def test_mutagenicity_takes_the_place_of_a_frankenstein_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("ASAPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ASAPOOL_DATA", raising=False)
    assert load_plan("table2", data_root=tmp_path).columns[-1] == "Mutagenicity"
    assert load_plan("table2", data_root=tmp_path, datasets=["FRANKENSTEIN"]).columns == ("FRANKENSTEIN",)
    assert load_plan("table2", data_root=tmp_path, datasets=["Mutagenicity"]).cells[0].model.hidden == 32
    (tmp_path / "FRANKENSTEIN.zip").touch()
    assert load_plan("table2", data_root=tmp_path).columns[-1] == "FRANKENSTEIN"


def test_the_ablations_share_their_common_cell():
    """Both, M2T, LEConv and Absent are one set of training runs, as in the paper."""
    plans = load_plans(["table-aggregation", "table-attention", "table-fitness", "table-edges"], smoke=True)
    graphs = load_graphs(plans)
    names = {"table-aggregation": "both", "table-attention": "m2t", "table-fitness": "leconv", "table-edges": "absent"}
    runs = [
        [run.key for cell in plan.cells if cell.row == names[plan.name] for run in plan.runs_of(cell, graphs)]
        for plan in plans
    ]
    assert len(runs[0]) == 6
    assert runs[0] == runs[1] == runs[2] == runs[3]


def test_smoke_is_small_and_never_looks_like_the_data():
    plan = load_plan("table2", smoke=True)
    assert plan.columns[0] == "DD (synthetic)"
    assert (len(plan.seeds), plan.folds) == (1, 3)
    assert {(c.train.epochs, c.model.hidden) for c in plan.cells} == {(1, 4)}


def test_all_is_every_table_and_words_are_looked_up_in_all_of_them():
    names = names_of("all")
    assert names[:3] == ["table1", "table2", "table3"]
    assert set(names) < set(known())
    only = load_plans(names, datasets=["PROTEINS"], methods=["asap"], smoke=True)
    assert [plan.name for plan in only] == ["table2", "table-hyper"]  # the others know no PROTEINS
    assert load_plans(["table1"], datasets=["x"]) == []
    with pytest.raises(ConfigError, match=r"there is no data set 'MUTAG' in the plan. It has DD, PROTEINS"):
        load_plans(names, datasets=["MUTAG"])
    with pytest.raises(ConfigError, match="there is no method 'gat'"):
        load_plans(names, methods=["gat"])
    with pytest.raises(ConfigError, match="leave nothing to do"):
        load_plans(["table-fitness", "table2"], datasets=["PROTEINS"], methods=["gcn"])
    with pytest.raises(ConfigError, match=r"there is no 'table9' to reproduce. Use one of table1, table2"):
        names_of("table9")


def test_graphs_that_cannot_give_the_folds_are_refused_before_training(plan_file):
    with pytest.raises(ConfigError, match="folds must lie between 3 and the 24 graphs"):
        load_graphs([load_plan(plan_file, smoke=True, folds=25)])
    with pytest.raises(DataError, match="too few for 20 folds"):
        load_graphs([load_plan(plan_file, folds=20)])


def test_one_name_for_two_sources_is_refused(plan_file):
    plan = load_plan(plan_file)
    with pytest.raises(ConfigError, match="has another source in another plan"):
        load_graphs([plan, load_plan(plan_file.with_name("mine.toml"), smoke=True), _moved(plan)])


def _moved(plan):
    other = replace(plan.cells[0].source, source="synthetic:cycles?graphs=31")
    return replace(plan, cells=tuple(replace(cell, source=other) for cell in plan.cells))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("source = 3", "[[data]] 'd': data.source must be a path or a name in quotes, got 3"),
        ('source = ["a"]', "[[data]] 'd': data.source must be a path or a name in quotes, got ['a']"),
        ('source = ""', "[[data]] 'd': data.source must be a path or a name in quotes, got ''"),
        (f'source = "{"a" * 300}"', f"[[data]] 'd': data.source: '{'a' * 60}'… cannot be looked for ("),
        (f'data_root = "{"a" * 300}"', f"data_root of a [[data]]: '{'a' * 60}'… cannot be looked for ("),
        ("data_root = 5", "[[data]] 'd': data_root must be text, got 5. Write it in quotes"),
        ("encoding = 7", "[[data]] 'd': encoding must be text, got 7. Write it in quotes"),
        ("smiles = 1", "[[data]] 'd': smiles must be text, got 1. Write it in quotes"),
        ("target = true", "[[data]] 'd': target must be text, got True. Write it in quotes"),
        ('id_column = ["id"]', "[[data]] 'd': id_column must be text, got ['id']. Write it in quotes"),
        ('skip_invalid = "no"', "[[data]] 'd': skip_invalid must be true or false, without quotes, got 'no'"),
        ("features = 2", "[[data]] 'd': features must be one of 'auto', "),
    ],
)
def test_values_of_a_data_set_that_are_of_a_wrong_kind_are_refused_in_a_sentence(tmp_path, setting, message):
    path = tmp_path / "mine.toml"
    path.write_text(f'[[data]]\nname = "d"\n{setting}\n')
    with pytest.raises(ConfigError) as refused:
        load_plan(path)
    assert str(refused.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(("table", "what"), [("[plan]", "plan.name"), ("[[data]]", "the name of a [[data]]")])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, table, what):
    path = tmp_path / "mine.toml"
    path.write_text(f'{table}\nname = "{"n" * 300}"\n')
    with pytest.raises(ConfigError) as refused:
        load_plan(path)
    assert str(refused.value) == f"{path}: {what} may have at most 200 bytes, got 300. Choose a shorter one"


def test_the_grid_is_the_old_48_lines():
    """Names, order and keys: training runs of 0.1.0 belong to the same cells."""
    lines = [
        (f"hidden {h}, lr {lr}, dropout {d}", {"model": {"hidden": h, "attention_dropout": d}, "train": {"lr": lr}})
        for h in (16, 32, 64, 128) for lr in (0.01, 0.001) for d in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    ]  # fmt: skip
    plan, prints = load_plan("table-hyper", datasets=["NCI1"], seeds=1), Prints(["NCI1"])
    assert list(plan.rows) == [name for name, _ in lines]
    for cell, (_, line) in zip(plan.cells, lines, strict=True):
        tables = overlay(preset("NCI1"), {"model": {"semantics": "authors"}}, line)
        by_hand = replace(
            cell, model=ModelConfig.from_dict(tables["model"]), train=TrainConfig.from_dict(tables["train"])
        )
        assert [r.key for r in plan.runs_of(cell, prints)] == [r.key for r in plan.runs_of(by_hand, prints)]
    assert plan.runs_of(plan.cells[0], prints)[0].key == "27c71506a8f067bf"  # as 0.1.0 had it
    rates = load_plan("table-rates", datasets=["NCI1"], seeds=1)
    assert rates.rows[:3] == ("topk, lr 0.01", "topk, lr 0.001", "sagpool, lr 0.01")


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ("{ model = { hidden = 4 } }", "model.hidden must be a list of at least one value, got 4"),
        ("{ model = { hidden = [] } }", "at least one value"),
        ("{ model = { levels = [1] } }", "must contain {levels} once"),
        ("{ optimiser = { lr = [1] } }", "'optimiser' is not a table of the grid"), ("{}", "has no settings"),
        ("{ model = { hiden = [1] } }", "must contain {hiden}"),
    ],
)  # fmt: skip
def test_a_grid_with_a_mistake_is_refused(tmp_path, grid, says):
    path = tmp_path / "mine.toml"
    path.write_text(f'data = ["NCI1"]\n[[row]]\nname = "{{hidden}}"\ngrid = {grid}\n')
    with pytest.raises(ConfigError, match=re.escape(says)):
        load_plan(path)
    path.write_text("a = " + "[" * 5000)
    with pytest.raises(ConfigError, match="nested too deeply"):
        load_plan(path)
