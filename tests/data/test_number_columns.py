"""Columns of numbers: which they are, and how files of predictions write them."""

import json

import numpy as np
import pytest

from asapool.data import Target, load
from asapool.data.number_columns import NumberColumns
from asapool.training.prediction_files import Further, save_predictions


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-2", "", None], int),
        (["1", "2.5", "1e-3", ".5", "3."], float),
        ([1, 2.5, float("nan")], float),
        (["", None], None),
        (["007", "12"], None),  # an identifier
        (["12345678901234567890"], None),  # would change as a number
        (["9007199254740993", "0.5"], None),
        (["1", "NA"], None),
        (["nan"], None),
        (["1,5"], None),
        (["1e999"], None),
        ([True], None),
    ],
)
def test_columns_of_numbers_are_found(cells, kind):
    for size in (1, len(cells)):
        columns = NumberColumns(["c"])
        for start in range(0, len(cells), size):
            columns.update({"c": cells[start : start + size]})
        assert columns.types == ({} if kind is None else {"c": kind})


KEPT = {
    "whole": ["1", "", "3", "4"],
    "real": ["0.123456789", "2", "3", ""],
    "late": ["1", "2", "3", "x"],  # text in the second set only
    "word": ["a", "1", "2", "3"],
    "empty": ["", "", "", ""],
}


@pytest.mark.parametrize("names", [list(KEPT), ["word"]])
def test_kept_columns_of_numbers_are_numbers_in_parquet_and_json_lines(tmp_path, names):
    from pyarrow.parquet import read_table

    graphs = load("synthetic:cycles?graphs=4")
    sets = [(graphs.subset(slice(k, k + 2)), np.full((2, 2), 0.5)) for k in (0, 2)]

    def further(graphs, p):
        return Further({name: [KEPT[name][k] for k in graphs.places] for name in names}, {})

    for ending in ("csv", "jsonl", "parquet"):
        counts = save_predictions(tmp_path / f"o.{ending}", sets, Target(classes=("0", "1")), further)
        assert counts.graphs == 4
    expected = KEPT | {"whole": [1, None, 3, 4], "real": [0.123456789, 2.0, 3.0, None]}
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    table = read_table(tmp_path / "o.parquet")
    for name in names:
        assert [line[name] for line in lines] == table[name].to_pylist() == expected[name]
    types = {"whole": "int64", "real": "double", "late": "string", "word": "string", "empty": "string"}
    assert {name: str(table.schema.field(name).type) for name in names} == {name: types[name] for name in names}
    assert [line["predicted"] for line in lines] == table["predicted"].to_pylist() == ["0"] * 4
    rows = [line.split(",") for line in (tmp_path / "o.csv").read_text().splitlines()]
    for name in names:
        assert [row[rows[0].index(name)] for row in rows[1:]] == KEPT[name]
