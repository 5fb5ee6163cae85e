"""Every tree of up to 14 nodes."""

import networkx as nx
import pytest

from asapool.theory.exhaustive import all_trees, census, path_exceptions, tree_code, without_leaves
from asapool.theory.graphs import path_graph, starlike_tree


@pytest.fixture(scope="module")
def rows():
    return census(14)


def test_the_number_of_trees_is_the_known_one(rows):
    assert [row.trees for row in rows if row.h == 1] == [1, 1, 1, 2, 3, 6, 11, 23, 47, 106, 235, 551, 1301, 3159]


def test_lemma_1_the_best_grows_by_at_most_one(rows):
    assert {row.step for row in rows} == {0, 1}


def test_lemma_4_the_balanced_starlike_tree_is_best(rows):
    assert all(row.best == row.formula == row.starlike for row in rows)


def test_the_printed_lemma_4_fails_for_odd_h_and_tiny_trees_only(rows):
    wrong = {(row.N, row.h): (row.printed, row.best) for row in rows if row.printed != row.best}
    assert all(h % 2 or h >= 2 * N for N, h in wrong)
    assert wrong[7, 3] == (4, 3)
    assert wrong[2, 4] == (0, 1)


def test_lemma_2_fails_for_every_pair_and_for_each_tree_but_holds_for_some(rows):
    by = {(row.N, row.h): row for row in rows}
    star, path = by[5, 4].lemma2_every  # K_{1,3} is an optimum tree of 4 nodes, but no part of the path of 5
    assert tree_code(_lists(star)) == tree_code(starlike_tree([1, 1, 1]))
    assert tree_code(_lists(path)) == tree_code(path_graph(5))
    assert tree_code(_lists(by[7, 3].lemma2_each)) == tree_code(path_graph(7))
    assert tree_code(_lists(by[8, 4].lemma2_each)) == tree_code(starlike_tree([3, 3, 1]))
    assert {(N, h) for (N, h), row in by.items() if row.lemma2_each and N < 10} == {(7, 3), (8, 4), (9, 3)}
    assert all(row.lemma2_some for row in rows)
    assert not any(row.lemma2_every for row in rows if row.h == 2)  # the star is the only optimum tree


def test_optimum_trees_are_not_unique(rows):
    assert next(row for row in rows if (row.N, row.h) == (8, 4)).optima > 1


def test_codes_tell_trees_apart_and_do_not_see_labels():
    trees = list(all_trees(8))
    assert len({tree_code(tree) for tree in trees}) == 23
    for seed, tree in enumerate(trees):
        order = nx.utils.create_random_state(seed).permutation(8)
        renamed = [[] for _ in range(8)]
        for i, around in enumerate(tree):
            renamed[order[i]] = [int(order[j]) for j in around]
        assert tree_code(renamed) == tree_code(tree)


def test_cutting_leaves():
    assert without_leaves(starlike_tree([3, 3, 1])) == {tree_code(path_graph(7)), tree_code(starlike_tree([3, 2, 1]))}


def test_paths():
    assert path_exceptions(40) == []


def _lists(edges):
    lists = [[] for _ in range(len(edges) + 1)]
    for i, j in edges:
        lists[i].append(j)
        lists[j].append(i)
    return lists
