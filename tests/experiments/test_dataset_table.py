"""Statistics of data sets counted by hand, with the paper's beside."""

import networkx as nx

from asapool.data import GraphSet
from asapool.experiments import paper
from asapool.experiments.paper_tables import DataRow, table3


def two_graphs():
    paths = [nx.path_graph(3), nx.path_graph(2)]
    return GraphSet.from_networkx(paths, labels=["a", "b"])


def test_two_paths_by_hand():
    table = table3({"mine": two_graphs()})
    assert table.rows[0].ours == (2, 2, 2.5, 1.5)
    assert table.rows[0].paper is None
    assert "| mine | 2 | 2 | 2.50 | 1.50 | – |" in table.to_markdown()


def test_a_name_of_the_paper_brings_its_numbers_and_the_difference():
    (row,) = table3({"NCI1": two_graphs()}).rows
    assert row.paper == paper.STATISTICS["NCI1"]
    assert row.difference == (2 - 4110, 0, -27.37, -30.8)
    assert row.verdict == "different"
    same = DataRow(name="DD", ours=paper.STATISTICS["DD"], paper=paper.STATISTICS["DD"])
    assert same.verdict == "the same"


def test_other_data_are_not_compared():
    table = table3({"Mutagenicity": two_graphs()})
    assert (table.rows[0].other, table.rows[0].difference, table.rows[0].verdict) == ("FRANKENSTEIN", None, None)
    assert "FRANKENSTEIN 4337, 2, 16.90, 17.88 (other data)" in table.to_markdown()
    assert table.to_dict()["rows"][0]["paper"]["graphs"] == 4337
    assert table.to_csv().splitlines()[1] == "Mutagenicity,2,2,2.50,1.50,4337,2,16.90,17.88,FRANKENSTEIN,"
