"""A few rows that cannot be read are left out with a note, where nobody waits for their answers."""

import pytest

from asapool.data import load, read
from asapool.data.loading import read_pieces
from asapool.data.mapped.convert import convert
from asapool.errors import ConfigError, DataError

NOTE = (
    "{path}: left out 4 of 400 rows, which cannot be read (line 11: 'C(' is not SMILES that RDKit can read; line 21: "
    "the SMILES is empty; line 31: expected 2 fields, got 3 (quote fields that contain a separator); and 1 more). "
    "To refuse such a table, use --no-skip-invalid (skip_invalid=False)"
)


def table(path, bad, rows=400):
    """Alkanes of two classes; bad: line of the file → what stands there instead."""
    lines = [bad.get(line, f"{'C' * (line % 9 + 1)},{'ab'[line % 2]}") for line in range(2, rows + 2)]
    path.write_text("\n".join(["smiles,label", *lines, ""]))
    return path


FOUR = {11: "C(,a", 21: ",b", 31: "CC,a,b", 401: "C(C)(C)(C)(C)C,a"}
FIVE = FOUR | {41: "C(,b"}


def test_a_few_are_left_out_of_a_table_to_learn_from(tmp_path):
    path = table(tmp_path / "m.csv", FOUR)
    reading = read(path)
    assert (len(reading.graphs), [row.line for row in reading.skipped]) == (396, [31, 11, 21, 401])
    assert (reading.notes, reading.noted) == ((NOTE.format(path=path),), True)
    assert reading.counts()["skipped_rows"] == 4
    assert read(path, skip_invalid=True).notes == ()


def test_more_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"line 11: .* 5 of 400 molecules cannot be read \(lines 11, 21, 31, 41, 401\)"):
        read(table(tmp_path / "m.csv", FIVE))
    with pytest.raises(DataError, match=r"line 11: .* 1 of 20 molecules cannot be read\. .*\(--skip-invalid\)"):
        read(table(tmp_path / "s.csv", {11: "C(,a"}, rows=20))
    assert len(read(table(tmp_path / "h.csv", {11: "C(,a"}, rows=100)).graphs) == 99


def test_none_are_left_out_where_it_would_not_be_noticed(tmp_path):
    path = table(tmp_path / "m.csv", FOUR)
    for options in ({"skip_invalid": False}, {"recipe": load(path, skip_invalid=True).recipe}):
        with pytest.raises(DataError, match="line 31: expected 2 fields, got 3"):
            read(path, **options)
    with pytest.raises(DataError, match="line 31: "):
        load(path)  # returns no notes
    with pytest.raises(DataError, match="1 of 200 molecules"):
        read(["C"] * 199 + ["C("])  # may belong to 200 labels
    with pytest.raises(ConfigError, match="skip_invalid must be true or false"):
        read(path, skip_invalid="no")


def test_a_table_to_score_by_is_judged_at_its_end(tmp_path):
    path = table(tmp_path / "m.csv", FOUR)
    recipe = load(path, skip_invalid=True).recipe
    readings = list(read_pieces(path, recipe=recipe, labels="optional", chunk=90))
    assert sum(len(reading.graphs) for reading in readings) == 396
    assert [reading.notes for reading in readings] == [(), (), (), (), (), (NOTE.format(path=path),)]
    assert all(reading.noted for reading in readings)
    with pytest.raises(DataError, match="5 of 400 molecules cannot be read"):
        list(read_pieces(table(path, FIVE), recipe=recipe, labels="optional", chunk=90))
    with pytest.raises(DataError, match="line 11: "):
        list(read_pieces(table(path, {11: "C(,a"}), recipe=recipe, labels="ignored", chunk=90))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_converted_table_leaves_out_the_same_rows(tmp_path, workers):
    path = table(tmp_path / "m.csv", FOUR)
    mapped, memory = convert(path, tmp_path / "m.graphs", chunk=90, workers=workers), read(path, labels="optional")
    assert mapped.graphs.fingerprint == memory.graphs.fingerprint
    assert (sorted(mapped.skipped), mapped.notes, mapped.noted) == (sorted(memory.skipped), memory.notes, True)
    with pytest.raises(DataError, match="5 of 400 molecules cannot be read"):
        convert(table(path, FIVE), tmp_path / "n.graphs", chunk=90, workers=workers)
    with pytest.raises(DataError, match="line 31: "):
        convert(table(path, FOUR), tmp_path / "o.graphs", chunk=90, workers=workers, skip_invalid=False)
