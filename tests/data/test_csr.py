"""Edges become sorted rows; duplicates are summed; directions are kept."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asapool.data.csr import is_symmetric, mirrored, owners, pack_edges, pointer, spans, transposed

EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9)), max_size=30)


@given(EDGES)
def test_rows_hold_the_sums_of_the_edges_into_them(edges):
    want = np.zeros((6, 6))
    for source, target, weight in edges:
        want[target, source] += weight
    source, target, weight = (np.array([e[k] for e in edges], np.int64) for k in range(3))
    weight = weight.astype(np.float32)
    rowptr, col, got, attr = pack_edges(source, target, 6, weight, weight[:, None])
    have = np.zeros((6, 6))
    have[owners(rowptr), col] = got
    assert np.array_equal(have, want)
    assert np.array_equal(attr[:, 0], got)
    assert len(col) == np.count_nonzero(want)
    assert all((np.diff(col[a:b]) > 0).all() for a, b in pairwise(rowptr))


@given(EDGES)
def test_reversing_edges_twice_changes_nothing(edges):
    source, target, weight = (np.array([e[k] for e in edges], np.int64) for k in range(3))
    packed = pack_edges(source, target, 6, weight.astype(np.float32))
    back = transposed(*transposed(*packed))
    assert all(np.array_equal(a, b) for a, b in zip(packed[:3], back[:3], strict=True))
    both = pack_edges(*mirrored(source, target)[:2], 6)
    assert is_symmetric(both.rowptr, both.col)


def test_an_edge_listed_once_has_no_weight_and_twice_has_two():
    once = pack_edges(np.array([0]), np.array([1]), 2)
    twice = pack_edges(np.array([0, 0]), np.array([1, 1]), 2)
    assert once.weight is None
    assert twice.weight.tolist() == [2.0]
    assert once.col.tolist() == twice.col.tolist() == [0]


def test_symmetry_looks_at_weights_and_attributes():
    rowptr, col = np.array([0, 1, 2]), np.array([1, 0])
    assert is_symmetric(rowptr, col)
    assert not is_symmetric(rowptr, col, np.array([1, 2], np.float32))
    assert not is_symmetric(rowptr, col, None, np.array([[1], [2]], np.float32))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6)), max_size=20))
def test_spans_are_ranges_one_after_the_other(pairs):
    starts, lengths = (np.array([p[k] for p in pairs], np.int64) for k in range(2))
    assert spans(starts, lengths).tolist() == [v for s, n in pairs for v in range(s, s + n)]
    assert owners(pointer(lengths)).tolist() == [k for k, (_, n) in enumerate(pairs) for _ in range(n)]
