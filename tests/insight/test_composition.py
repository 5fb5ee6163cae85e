"""Composed assignments on a path of eight nodes, worked out by hand."""

import numpy as np
import pytest

from asapool.errors import ConfigError
from asapool.insight import Hierarchy, Level
from asapool.insight.importance import attention_importance

NONE = np.zeros(0, np.int64)


def level(before, kept, medoid, clusters, fitness, edges=()):
    """A level from {member: attention} per kept cluster, and (source, target, weight) per edge."""
    entries = [(k, v, a) for k, members in enumerate(clusters) for v, a in members.items()]
    cluster, member, attention = zip(*entries, strict=True)
    phi = np.zeros(before)
    phi[list(kept)] = fitness
    s, t, w = zip(*edges, strict=True) if edges else ((), (), ())
    return Level(
        kept=np.array(kept), medoid=np.array(medoid), fitness=phi, cluster=np.array(cluster), member=np.array(member),
        attention=np.array(attention), source=np.array(s, np.int64), target=np.array(t, np.int64),
        weight=np.array(w, float),
    )  # fmt: skip


def path_of_eight():
    """0 - 1 - … - 7 pooled to the clusters around 1, 3, 4 and 6, and then to those around 1 and 6."""
    a = np.arange(7)
    first = level(
        8, [1, 3, 4, 6], [1, 3, 4, 6],
        [{0: 0.25, 1: 0.5, 2: 0.25}, {2: 0.5, 3: 0.25, 4: 0.25},
         {3: 0.5, 4: 0.25, 5: 0.25}, {5: 0.5, 6: 0.25, 7: 0.25}],
        [1.0, 0.5, 0.5, 1.0],
        [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 2.0), (2, 1, 2.0), (2, 3, 1.0), (3, 2, 1.0), (0, 0, 3.0)],
    )  # fmt: skip
    second = level(4, [0, 3], [1, 6], [{0: 0.5, 1: 0.5}, {2: 0.25, 3: 0.75}], [0.5, 0.25])
    return Hierarchy(
        id="path", data="by hand", method="asap", classes=("no", "yes"), probability=np.array([0.25, 0.75]),
        target=1, nodes=8,
        source=np.concatenate([a, a + 1]), target_node=np.concatenate([a + 1, a]), weight=np.ones(14),
        levels=(first, second), importance={},
    )  # fmt: skip


def test_the_shares_of_two_levels_are_the_product_of_both():
    composed = path_of_eight().assignment(2).toarray()
    # around 1: half of {0: 1/4, 1: 1/2, 2: 1/4} and half of {2: 1/2, 3: 1/4, 4: 1/4}
    assert composed[:, 0].tolist() == [0.125, 0.25, 0.375, 0.125, 0.125, 0, 0, 0]
    # around 6: a quarter of {3: 1/2, 4: 1/4, 5: 1/4} and three quarters of {5: 1/2, 6: 1/4, 7: 1/4}
    assert composed[:, 1].tolist() == [0, 0, 0, 0.125, 0.0625, 0.4375, 0.1875, 0.1875]


def test_every_cluster_of_every_level_shares_out_exactly_one():
    reported = path_of_eight()
    for depth in range(3):
        assert reported.assignment(depth).sum(axis=0).tolist() == [1.0] * reported.connectivity[depth].nodes


def test_level_zero_is_the_graph_itself_and_a_level_too_many_is_refused():
    reported = path_of_eight()
    assert reported.assignment(0).toarray().tolist() == np.eye(8).tolist()
    with pytest.raises(ConfigError, match="level must be 0 to 2 for graph 'path', got 3"):
        reported.assignment(3)


def test_connectivity_counts_pairs_once_and_no_loops():
    first, pooled, last = path_of_eight().connectivity
    assert first == (8, 7, 1, 0.25)  # 7 of 28 pairs
    assert pooled == (4, 3, 1, 0.5)  # 3 of 6 pairs; the loop does not count
    assert last == (2, 0, 2, 0.0)


def test_attention_importance_follows_the_flow_through_both_levels():
    reported = path_of_eight()
    a = attention_importance(8, reported.levels)
    # node 0: level 1: 1/4 · φ 1 over 4 clusters; level 2: that 1/4 · attention 1/2 · φ 1/2 over 2 clusters
    assert a[0] == pytest.approx(0.25 / 4 + 0.25 * 0.5 * 0.5 / 2)
    # node 7: 1/4 · 1 / 4, then 1/4 · 3/4 · 1/4 / 2
    assert a[7] == pytest.approx(0.25 / 4 + 0.25 * 0.75 * 0.25 / 2)
    assert a.sum() == pytest.approx(
        3 / 4 + (0.75 * 0.5 + 0.875 * 0.25) / 2
    )  # all φ, then all φφ': 0.5·1 + 0.5·0.5 and 0.25·0.5 + 0.75·1


def test_without_aggregation_only_medoids_go_on():
    reported = path_of_eight()
    a = attention_importance(8, reported.levels, "none")
    assert np.flatnonzero(a).tolist() == [1, 3, 4, 6]
    assert a[1] == pytest.approx(1 / 4 + 1 * 0.5 / 2)
    assert a[3] == pytest.approx(0.5 / 4)


def test_members_come_strongest_first():
    assert path_of_eight().levels[0].members(1) == {2: 0.5, 3: 0.25, 4: 0.25}
    assert list(path_of_eight().levels[0].members(0)) == [1, 0, 2]
