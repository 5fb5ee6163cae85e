"""The paper's tables are whole, bear out its claims, and fit their plans."""

import pytest

from asapool.experiments import paper
from asapool.experiments.plan import load_plan
from asapool.experiments.plan_file import plan_names
from asapool.training.config import preset


def test_the_tables_are_whole():
    assert len(list(paper.cells("table2"))) == 35
    assert [len(list(paper.cells(name))) for name in paper.ABLATIONS] == [6, 6, 6, 4, 2]
    base = {paper.claim("NCI1", *cell) for cell in (("both", "table-aggregation"), ("m2t", "table-attention"),
            ("leconv", "table-fitness"), ("absent", "table-edges"))}  # fmt: skip
    assert base == {paper.PaperNumber(70.7, 2.3)}  # soft edges came last
    assert paper.claim("Mutagenicity", "asap") is None


def test_the_paper_s_own_numbers_bear_out_its_claims():
    """ASAP is best in all five columns, and its gain over SAGPool and SortPool is the one that the words say."""
    means = {row: [mean for mean, _ in cells] for row, cells in paper.COMPARISON.items()}
    deviations = {row: [deviation for _, deviation in cells] for row, cells in paper.COMPARISON.items()}
    for row in (*paper.GLOBAL, *paper.HIERARCHICAL):
        assert all(a > b for a, b in zip(means["asap"], means[row], strict=True))
    for row in paper.HIERARCHICAL:
        assert all(a < b for a, b in zip(deviations["asap"], deviations[row], strict=True))
    gains = {words.pairs[0][1]: words.least for words in paper.claims("table2") if words.kind == "gain"}
    for row, least in gains.items():
        assert 100 * (sum(means["asap"]) / sum(means[row]) - 1) == pytest.approx(least, abs=0.06)


def test_the_plans_are_the_paper_s_tables():
    assert {"table2", "table-hyper", *paper.ABLATIONS} <= set(plan_names())
    for name in ("table2", *paper.ABLATIONS):
        plan = load_plan(name)
        for row, column, _ in paper.cells(name):
            columns = [cell.column for cell in plan.cells if cell.row == row]
            assert column in columns or paper.STAND_INS.get(columns[-1]) == column or name == "figure-ratio"
        assert plan.metric == ("test" if name == "table2" else "validation")
        assert len(plan.seeds) == 20
        assert {cell.model.semantics for cell in plan.cells if cell.model.method == "asap"} == {"authors"}


def test_the_figure_is_about_nci1_and_others_on_request():
    assert set(load_plan("figure-ratio").columns) == {"NCI1"}
    asked = load_plan("figure-ratio", datasets=["NCI1", "Mutagenicity"])
    assert set(asked.columns) == {"NCI1", "Mutagenicity"}
    assert sorted({cell.model.ratio for cell in asked.cells}) == [k / 10 for k in range(1, 10)]


def test_the_ablations_change_one_thing_and_share_the_rest():
    models = {}
    for name in ("table-aggregation", "table-attention", "table-fitness", "table-edges", "figure-ratio"):
        for cell in load_plan(name).cells:
            if cell.column == "NCI1":
                assert cell.model.method == "asap"
                models[name, cell.row] = cell.model
    base = models["table-edges", "absent"]
    shared = [("table-aggregation", "both"), ("table-attention", "m2t"), ("table-fitness", "leconv")]
    assert all(models[key] == base for key in shared)  # one training serves all four cells
    assert not base.soft_edges
    assert models["table-aggregation", "none"].aggregate == "none"
    assert models["figure-ratio", "k = 0.5"] == models["table-edges", "present"]


def test_the_grid_of_the_plan_is_the_paper_s_and_holds_the_authors_choice():
    plan = load_plan("table-hyper")
    grid = {(c.model.hidden, c.train.lr, c.model.attention_dropout) for c in plan.cells if c.column == "DD"}
    expected = {(h, lr, d) for h in paper.GRID["hidden"] for lr in paper.GRID["lr"]
                for d in paper.GRID["attention_dropout"]}  # fmt: skip
    assert grid == expected
    assert plan.choose
    assert {c.train.weight_decay for c in plan.cells} == set(paper.GRID["weight_decay"])
    for name in paper.SETS:
        theirs = preset(name)
        assert (theirs["model"]["hidden"], theirs["train"]["lr"], theirs["model"]["attention_dropout"]) in expected
