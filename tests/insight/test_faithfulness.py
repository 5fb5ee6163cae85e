"""explain --check: curves and fidelities as worked out by hand on a model whose answer is a sum over nodes."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch

from asapool.data import GraphSet, load
from asapool.data.targets import Target
from asapool.errors import ConfigError
from asapool.insight.aspects import Aspect
from asapool.insight.faithfulness import check_importance, faithful, importance_of, precision_at, rank_correlation
from asapool.insight.importance import KINDS, frozen
from asapool.models import ModelConfig, build
from asapool.reports.explain_page import check_csv, check_page


class Sum(torch.nn.Module):
    """z = (0, Σ x): a node supports class 1 by its only feature."""

    num_classes, reads, target = 2, (), None

    def forward(self, x, ptr, rowptr, col, weight=None):
        """Logits."""
        total = torch.stack([x[a:b, 0].sum() for a, b in pairwise(ptr)])
        return torch.stack([torch.zeros_like(total), total], dim=1)

    def more(self, batch):
        """Nothing besides."""
        return {}


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def test_curves_and_fidelities_by_hand():
    # five nodes without edges; the second supports the class alone, the third opposes it
    x = np.array([[0.0], [3.0], [-1.0], [0.0], [0.0]])
    graphs = GraphSet(x=x, ptr=[0, 5], rowptr=[0] * 6, col=[])
    result = faithful(Sum(), graphs, [np.array([0.1, 0.9, 0.0, 0.2, 0.3])])
    # top 20% is node 1: without it −1 is left, alone it gives 3, and it alone keeps the class
    assert result["fidelity_plus"][0] == pytest.approx(sigmoid(2) - sigmoid(-1))
    assert result["fidelity_minus"][0] == pytest.approx(sigmoid(2) - sigmoid(3))
    assert result["sparsity"][0] == pytest.approx(0.9)
    # shares 0.1 … 0.9 of five nodes remove 1, 1, 2, 2, 3, 3, 4, 4, 4 nodes (one is left): node 2 goes last
    assert result["deletion_curve"][0].tolist() == pytest.approx([sigmoid(-1)] * 9)
    assert result["insertion_curve"][0].tolist() == pytest.approx([sigmoid(3)] * 9)
    worst = faithful(Sum(), graphs, [np.array([0.1, 0.0, 0.9, 0.2, 0.3])])  # node 2 first, node 1 last
    assert worst["fidelity_plus"][0] == pytest.approx(sigmoid(2) - sigmoid(3))
    assert worst["sparsity"][0] == 0.0


def test_small_measures():
    assert precision_at(np.array([1, 0, 1, 0]), np.array([0.9, 0.8, 0.7, 0.1])) == 0.5
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])) == -1.0
    assert rank_correlation(np.ones(3), np.arange(3.0)) == 0.0


@pytest.fixture(scope="module")
def checked():
    graphs = load("synthetic:motifs?graphs=8&nodes=7")
    models = [build(ModelConfig(hidden=8, levels=2), graphs.num_features, 2, seed=s) for s in (0, 1)]
    return models, graphs, check_importance(models[0], graphs, sample=5, others=models)


def test_every_kind_has_a_row_and_a_model_agrees_with_itself(checked):
    models, graphs, result = checked
    assert [row.kind for row in result.rows] == [
        "attention", "gradient", "occlusion", "neighbourhood", "substitution", "random"
    ]  # fmt: skip
    assert all(row.precision is not None and 0 <= row.deletion <= 1 for row in result.rows)
    alone = check_importance(models[0], graphs, sample=5, others=models[:1])
    assert [row.stability for row in alone.rows] == [1.0, 1.0, 1.0, 1.0, 1.0, None]
    assert result.rows[0].stability < 1
    with frozen(models[0]):
        scores = importance_of(models[0], graphs.subset([0]), ["gradient"])["gradient"][0]
    import asapool

    np.testing.assert_allclose(scores, asapool.explain(models[0], graphs, 0).importance["gradient"], rtol=1e-5)


def test_its_page_and_its_files(checked):
    _, _, result = checked
    assert json.loads(result.to_json())["graphs"] == 5
    lines = check_csv(result).splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("kind,graphs,deletion,deletion_error")
    page = check_page(result)
    assert "Random order" in page
    assert "fidelity+ ↑" in page


class Values(Sum):
    """Two outputs z = (Σ x, −Σ x / 2), which stand for values or for yes/no tasks."""

    def __init__(self, kind):
        super().__init__()
        scale = {"mean": (10.0, 0.0), "scale": (2.0, 4.0)} if kind == "regression" else {"classes": ("no", "yes")}
        self.target = Target(kind=kind, names=("a [m]", "b"), **scale)

    def forward(self, x, ptr, rowptr, col, weight=None):
        """Outputs."""
        total = super().forward(x, ptr, rowptr, col)[:, 1]
        return torch.stack([total, -total / 2], dim=1)


FIVE = GraphSet(x=np.array([[0.0], [3.0], [-1.0], [0.0], [0.0]]), ptr=[0, 5], rowptr=[0] * 6, col=[])


def test_changes_of_a_value_by_hand():
    # ŷ = 10 + 2 Σ x = 14; node 1 adds 6, node 2 subtracts 2. By size: 1, 2, then the three that add nothing
    aspect = Aspect.of(np.array([[2.0, -1.0]]), Values("regression").target)
    (ranking,) = aspect.ranking("gradient", [np.array([0.0, 6.0, -2.0, 0.0, 0.0])])
    assert ranking.tolist() == [0.0, 6.0, 2.0, 0.0, 0.0]
    result = faithful(Values("regression"), FIVE, [ranking], aspect)
    # shares 0.1 … 0.9 take 1, 1, 2, 2, 3, 3, 4, 4, 4 nodes: without node 1 ŷ is 8, without nodes 1 and 2 it is 10
    assert result["deletion_curve"][0].tolist() == pytest.approx([6, 6, 4, 4, 4, 4, 4, 4, 4])
    # node 1 alone gives 16, both together 14
    assert result["insertion_curve"][0].tolist() == pytest.approx([2, 2, 0, 0, 0, 0, 0, 0, 0])
    assert result["deletion"][0] == pytest.approx(40 / 9)
    assert (result["fidelity_plus"][0], result["fidelity_minus"][0]) == pytest.approx((6, 2))
    assert "sparsity" not in result
    # the second task: ŷ = −2 Σ x, so that the same removals change it by as much
    second = faithful(Values("regression"), FIVE, [ranking], Aspect.of(np.array([[2.0, -1.0]]), aspect.target, 1))
    assert second["deletion_curve"][0].tolist() == pytest.approx([6, 6, 4, 4, 4, 4, 4, 4, 4])


def test_a_task_that_is_answered_by_no_is_checked_for_no():
    aspect = Aspect.of(np.array([[2.0, -1.0]]), Values("multilabel").target, 1)  # p(yes) = σ(−1): the answer is no
    gradient = np.array([0.0, -1.5, 0.5, 0.0, 0.0])  # of yes: node 1 opposes it, so it supports no
    (ranking,) = aspect.ranking("gradient", [gradient])
    assert ranking.tolist() == [0.0, 1.5, -0.5, 0.0, 0.0]
    assert aspect.ranking("attention", [gradient])[0] is gradient  # has no sign
    result = faithful(Values("multilabel"), FIVE, [ranking], aspect)
    # p(no) = σ(Σ x / 2): whole 2, without node 1 −1 is left, node 1 alone has 3
    assert result["fidelity_plus"][0] == pytest.approx(sigmoid(1) - sigmoid(-0.5))
    assert result["fidelity_minus"][0] == pytest.approx(sigmoid(1) - sigmoid(1.5))
    assert result["sparsity"][0] == pytest.approx(0.9)


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_values_and_tasks_are_checked_by_name(checked, kind):
    _, graphs, _ = checked
    model = build(ModelConfig(hidden=8, levels=1), graphs.num_features, 2, seed=0)
    model.target = Values(kind).target
    first, second = (check_importance(model, graphs, sample=4, target=name, others=[model]) for name in (None, "b"))
    assert [row.kind for row in first.rows] == [*KINDS, "random"]
    assert (first.target, first.unit, second.target) == ("a [m]", "m" if kind == "regression" else "", "b")
    assert [row.stability for row in second.rows] == [1.0] * 5 + [None]
    assert first.rows[1].deletion != second.rows[1].deletion
    for checked_task, quantity in ((first, "change of a [m]"), (second, "change of b")):
        words = quantity if kind == "regression" else f"p of the predicted yes or no of {checked_task.target}"
        page = check_page(checked_task)
        assert f"method asap · {words}<" in page
        axis = "p of the prediction" if kind == "multilabel" else "change, m" if checked_task is first else "change"
        assert f">{axis}</text>" in page
    plain = json.loads(second.to_json())
    assert (plain["target_kind"], plain["target"]) == (kind, "b")
    assert (plain["rows"][0]["sparsity"] is None) == (kind == "regression")
    with pytest.raises(ConfigError, match="target must be one of 'a \\[m\\]', 'b'"):
        check_importance(model, graphs, target="c")


def test_a_class_can_be_named(checked):
    models, graphs, _ = checked
    both = [check_importance(models[0], graphs, target=name, importance=["gradient"]).rows[1] for name in (0, "ring")]
    assert both[0].kind == "random"
    assert both[0].deletion + both[1].deletion == pytest.approx(1)  # the same order, and p of either class


def test_neighbourhoods_by_hand():
    # a path 0 – 1 – 2 – 3 with x = (1, 2, 4, 8) and log odds Σ x: a removal costs the sum of what it takes
    from asapool.insight.importance import neighbourhood_importance

    graphs = GraphSet(
        x=np.array([[1.0], [2.0], [4.0], [8.0]]), ptr=[0, 4], rowptr=[0, 1, 3, 5, 6], col=[1, 0, 2, 1, 3, 2]
    )
    scores = neighbourhood_importance(Sum(), graphs.batch([0]), 1)
    # N[0] = {0, 1} costs 3, N[1] costs 7, N[2] costs 14, N[3] costs 12
    assert scores.tolist() == pytest.approx(
        [1 + (3 + 7) / 2, 2 + (3 + 7 + 14) / 3, 4 + (7 + 14 + 12) / 3, 8 + (14 + 12) / 2]
    )


def path(x):
    """A path of the given features, one per node."""
    N = len(x)
    col = [j for i in range(N) for j in (i - 1, i + 1) if 0 <= j < N]
    return GraphSet(x=np.array(x)[:, None], ptr=[0, N], rowptr=[0, *range(1, 2 * N - 2, 2), 2 * N - 2], col=col)


def test_substitution_by_hand():
    # the log odds are Σ x; the ends have the degree 1 and typical features 1, the others 2: node 2 alone differs, by 3
    from asapool.insight.importance import substitution_importance

    scores = substitution_importance(Sum(), path([1.0, 2.0, 5.0, 2.0, 1.0]).batch([0]), 1)
    # N[0] = {0, 1}: no substitution, removal 3/2; N[1] = {0, 1, 2}: 3 + 8/3; N[2] = {1, 2, 3}: 3 + 9/3; symmetric
    end, beside, middle = 3 / 2, 3 + 8 / 3, 3 + 9 / 3
    assert scores.tolist() == pytest.approx(
        [(end + beside) / 2, (end + beside + middle) / 3, (2 * beside + middle) / 3,
         (end + beside + middle) / 3, (end + beside) / 2]
    )  # fmt: skip


def test_substitution_in_small_graphs():
    from asapool.insight.importance import substitution_importance

    # each neighbourhood is the whole graph, so it counts as the node alone; of two features the first is typical
    # for both, as they are equally near to the mean: node 1 loses 2 by substitution and 3 by removal
    pair = substitution_importance(Sum(), path([1.0, 3.0]).batch([0]), 1)
    assert pair.tolist() == pytest.approx([((0 + 1) + (2 + 3)) / 2] * 2)
    one = GraphSet(x=np.array([[4.0]]), ptr=[0, 1], rowptr=[0, 0], col=[])
    assert substitution_importance(Sum(), one.batch([0]), 1).tolist() == [4.0]


def test_typical_features_of_continuous_values_are_the_most_central_ones():
    from asapool.insight.importance import typical_features

    x = torch.tensor([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0], [7.0, 7.0]])  # all differ: (1, 1) is nearest to (2, 2)
    assert typical_features(x, torch.tensor([2, 2, 2, 4])).tolist() == [[1.0, 1.0]] * 3 + [[7.0, 7.0]]
