"""How far a network sees, by hand on a path."""

import numpy as np
import pytest

from asapool.errors import AsapoolError
from asapool.insight import receptive_spans
from asapool.theory.graphs import path_graph
from tests.insight.test_forecasting import packed

LONG = packed(path_graph(61))


def test_without_pooling_every_convolution_adds_a_hop_to_both_sides():
    assert receptive_spans(*LONG, method="none") == [4, 6, 8]
    assert receptive_spans(*LONG, method="none", first_convs=4, level_convs=2, levels=1) == [8, 12]


def test_clusters_see_their_members_and_pooled_edges_span_three_hops():
    """All kept. Two hops, three with the members; pooled neighbours are up to 3 apart, so 6; members again, so 9; their
    neighbours are up to 9 apart, so 18 hops to both sides.
    """
    assert receptive_spans(*LONG, ratio=1.0) == [4, 12, 36]


def test_topk_sees_no_further_than_without_pooling():
    assert receptive_spans(*LONG, method="topk", ratio=1.0) == [4, 6, 8]
    some = receptive_spans(*LONG, method="topk", ratio=0.5)
    assert 4 <= some[1] <= 6
    assert some[2] <= 8


def test_nothing_is_seen_of_another_piece_and_a_single_node_spans_nothing():
    two = packed([[1], [0], [3], [2]], [[]])
    assert receptive_spans(*two, ratio=1.0, levels=1) == [0.5, 0.5]


def test_the_same_seed_draws_the_same_nodes():
    assert receptive_spans(*LONG, seed=3) == receptive_spans(*LONG, seed=3)
    assert receptive_spans(*LONG, seed=3) != receptive_spans(*LONG, seed=4)


def test_bad_settings_are_refused():
    for wrong in ({"method": "diffpool"}, {"levels": 0}, {"ratio": 0.0}, {"first_convs": -1}):
        with pytest.raises(AsapoolError):
            receptive_spans(*LONG, **wrong)
    with pytest.raises(AsapoolError, match="ptr must increase"):
        receptive_spans(LONG[0], LONG[1], np.array([0, 3]))
