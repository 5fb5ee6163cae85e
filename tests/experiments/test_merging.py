"""Several places in one store: stores, compact files, folders of these; one record per Run, no contradiction."""

from dataclasses import replace

import pytest

from asapool.errors import DataError
from asapool.experiments.compact import compact, merge, read_compact, read_records, write_compact
from asapool.experiments.record import failed
from asapool.experiments.rendering import to_dict
from asapool.experiments.store import FILE, Store
from asapool.experiments.tables import make_table
from benchmarks import accuracy
from tests.experiments.made_up import fill, plan_of, records_of

MACHINE = {"cpu": "slide rule", "torch": "2"}
PLAN = plan_of(("asap", "topk"))
RECORDS = list(records_of(PLAN, {("asap", "NCI1"): [0.70, 0.72, 0.74]}).values())


def kept(folder, records):
    """The same as a compact file in a folder."""
    folder.mkdir()
    write_compact(folder / "NCI1.jsonl", records)
    return folder


def lines(folder):
    return {key: record.to_line() for key, record in Store.read(folder).items()}


def test_stores_merge_and_the_same_run_is_one_record(tmp_path):
    a, b, c = RECORDS
    fill(tmp_path / "one", [a, b, failed(c.run, "out of memory", MACHINE)])
    other_time = replace(b, seconds=99.0, machine={"cpu": "another"})
    fill(tmp_path / "two", [other_time, c])
    assert merge(tmp_path / "one", tmp_path / "two", into=tmp_path / "all") == 3
    assert lines(tmp_path / "all") == {r.run.key: r.to_line() for r in RECORDS}
    assert merge(tmp_path / "one", tmp_path / "two", into=tmp_path / "all") == 0  # nothing new


def test_a_failure_is_kept_where_there_is_nothing_better(tmp_path):
    fill(tmp_path / "one", [failed(RECORDS[0].run, "out of memory", MACHINE)])
    assert merge(tmp_path / "one", into=tmp_path / "all") == 1
    assert merge(fill(tmp_path / "two", RECORDS[:1]), into=tmp_path / "all") == 1
    assert Store.read(tmp_path / "all")[RECORDS[0].run.key].finished


def test_places_that_disagree_are_not_merged(tmp_path):
    first = fill(tmp_path / "one", RECORDS[:2])
    tiny = RECORDS[0].test["calibration_error"] + 1e-12  # the last digit of another processor
    alike = replace(RECORDS[0], test={**RECORDS[0].test, "calibration_error": tiny})
    assert merge(first, fill(tmp_path / "two", [alike]), into=tmp_path / "all") == 2
    wrong = replace(RECORDS[2], test={**RECORDS[2].test, "accuracy": 0.123}, machine=MACHINE)
    right = fill(tmp_path / "three", [RECORDS[2]])
    for number, place in enumerate((fill(tmp_path / "four", [wrong]), kept(tmp_path / "five", [wrong]))):
        into = tmp_path / f"new{number}"
        with pytest.raises(DataError, match=r"different test scores on abacus .* and slide rule \(torch 2\)"):
            merge(right, place, into=into)
        assert (into / FILE).read_bytes() == b""


def test_a_compact_file_or_a_folder_of_them_is_as_good_as_a_store(tmp_path):
    folder = kept(tmp_path / "results", RECORDS[:2])
    write_compact(folder / "more.jsonl", RECORDS[2:])
    store = fill(tmp_path / "store", RECORDS)
    assert read_records(folder / "more.jsonl") == read_compact(folder / "more.jsonl")
    assert read_records(store / FILE) == read_records(store) == Store.read(store)
    assert merge(folder, into=tmp_path / "all") == 3
    table = to_dict(make_table(PLAN, Store.read(tmp_path / "all")))
    assert table == to_dict(make_table(PLAN, Store.read(store)))
    assert [cell["folds"] for cell in table["cells"]] == [3, 0]


def test_of_a_compact_and_a_whole_record_the_whole_one_stays(tmp_path):
    bare = [replace(r, test={"accuracy": r.test["accuracy"]}, validation={"accuracy": 0.5}) for r in RECORDS]
    short, whole = kept(tmp_path / "results", bare), fill(tmp_path / "store", RECORDS)
    for places in ((short, whole), (whole, short)):
        into = tmp_path / f"{places[0].name} first"
        assert merge(*places, into=into) == 3
        assert lines(into) == lines(whole)
    assert merge(short, into=tmp_path / "all") == 3
    assert merge(whole, into=tmp_path / "all") == 0  # what is finished in a store is never replaced


@pytest.mark.parametrize("names", ["[Dg]*", pytest.param("*", marks=pytest.mark.slow)], ids=["some", "all"])
def test_the_committed_results_come_back_byte_for_byte(names, tmp_path):
    """results/ → store → benchmarks.accuracy --add, into an empty folder and into what is there already."""
    files = {path.name: path.read_bytes() for path in accuracy.RESULTS.glob(f"{names}.jsonl")}
    assert len(files) > 2
    committed, again = tmp_path / "results", tmp_path / "again"
    committed.mkdir()
    for name, text in files.items():
        (committed / name).write_bytes(text)
    merge(committed, into=tmp_path / "store")
    for _ in range(2):  # into nothing, then into itself
        accuracy.add([tmp_path / "store"], again)
        assert {path.name: path.read_bytes() for path in again.glob("*.jsonl")} == files
    assert compact(read_records(tmp_path / "store").values()) == compact(read_records(committed).values())


def test_what_is_no_place_is_reported(tmp_path):
    with pytest.raises(DataError, match="nowhere: there is no such folder or file"):
        read_records(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"contains no runs\.jsonl"):
        read_records(tmp_path)
    (tmp_path / "graphs.jsonl").write_text('{"edges": [[0, 1]]}\n')
    for place in (tmp_path, tmp_path / "graphs.jsonl"):
        with pytest.raises(DataError, match=r"graphs\.jsonl, line 1: not a record .* write it again from its store"):
            read_records(place)
