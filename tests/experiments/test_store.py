"""The store: one record per Run whatever happens, a torn line costs nothing, and one writer at a time."""

import os
from dataclasses import replace

import pytest

from asapool.errors import DataError, TrainingError, WriteError
from asapool.experiments.fold import run
from asapool.experiments.record import failed
from asapool.experiments.store import FILE, Store
from tests.experiments.made_up import fill
from tests.experiments.small import graphs_of, plan_of

MACHINE = {"cpu": "abacus", "torch": "2"}


@pytest.fixture(scope="module")
def records():
    graphs = graphs_of()
    plan = plan_of(rows=("mlp",))
    return [run(graphs["cycles"], one) for one in plan.runs(graphs)[:3]]


def test_what_goes_in_comes_out(tmp_path, records):
    fill(tmp_path / "a" / "b", records)
    result = Store.read(tmp_path / "a" / "b")
    assert list(result) == [r.run.key for r in records]
    assert [r.to_line() for r in result.values()] == [r.to_line() for r in records]
    with Store.open(tmp_path / "a" / "b") as store:
        assert all(store.finished(r.run.key) for r in records)
        assert store.records()[records[0].run.key] == Store.read(tmp_path / "a" / "b", light=True)[records[0].run.key]
        assert store.records()[records[0].run.key].history is None


def test_a_finished_run_has_one_record_and_wins_over_failed_ones(tmp_path, records):
    one = records[0]
    with Store.open(tmp_path) as store:
        store.append(failed(one.run, "out of memory", MACHINE))
        assert not store.finished(one.run.key)
        store.append(replace(one, attempts=2))
        with pytest.raises(DataError, match="already finished"):
            store.append(one)
        with pytest.raises(DataError, match="already finished"):
            store.append(failed(one.run, "late", MACHINE))
    assert Store.read(tmp_path)[one.run.key].attempts == 2
    lines = (tmp_path / FILE).read_text().splitlines(keepends=True)
    assert len(lines) == 2
    (tmp_path / FILE).write_text("".join(reversed(lines)))  # as it may be in a file that was put together by hand
    assert Store.read(tmp_path)[one.run.key].finished


def test_a_torn_last_line_is_ignored_by_readers_and_cut_off_by_the_next_writer(tmp_path, records):
    fill(tmp_path, records[:2])
    whole = (tmp_path / FILE).read_bytes()
    last = records[2].to_line().encode() + b"\n"
    for torn in (1, len(last) // 2, len(last) - 1):
        (tmp_path / FILE).write_bytes(whole + last[:torn])
        assert len(Store.read(tmp_path)) == 2
        with Store.open(tmp_path) as store:
            assert len(store.records()) == 2
            assert (tmp_path / FILE).read_bytes() == whole
            store.append(records[2])
        assert (tmp_path / FILE).read_bytes() == whole + last
    (tmp_path / FILE).write_bytes(last[:-1])  # nothing but a torn line
    with Store.open(tmp_path) as store:
        assert store.records() == {}
    assert (tmp_path / FILE).read_bytes() == b""


def test_a_damaged_line_in_the_middle_is_named(tmp_path, records):
    fill(tmp_path, records)
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1][:50] + b"\n"
    (tmp_path / FILE).write_bytes(b"".join(lines))
    for read in (Store.read, lambda folder: Store.open(folder).__enter__()):
        with pytest.raises(DataError, match=r"runs\.jsonl, line 2: not a record"):
            read(tmp_path)


def test_one_writer_at_a_time_and_any_number_of_readers(tmp_path, records):
    with Store.open(tmp_path) as store:
        store.append(records[0])
        with pytest.raises(WriteError, match=f"process {os.getpid()} is working in this folder"):
            Store.open(tmp_path).__enter__()
        assert len(Store.read(tmp_path)) == 1


def test_a_folder_without_a_store_is_reported(tmp_path):
    with pytest.raises(DataError, match=r"contains no runs\.jsonl"):
        Store.read(tmp_path)


def test_a_full_disk_takes_nothing_away(tmp_path, records, monkeypatch):
    """The real thing is in tests/cli/test_reproduce.py; here the line is cut at every kind of place."""
    fill(tmp_path, records[:1])
    whole = (tmp_path / FILE).read_bytes()
    write = os.write
    with Store.open(tmp_path) as store:
        for part in (0, 1, 100):
            monkeypatch.setattr(os, "write", lambda handle, line, part=part: write(handle, line[:part]))
            with pytest.raises(TrainingError, match="No space left on device"):
                store.append(records[1])
            assert (tmp_path / FILE).read_bytes() == whole
            assert not store.finished(records[1].run.key)
        monkeypatch.undo()
        store.append(records[1])
    assert len(Store.read(tmp_path)) == 2


def test_a_damaged_end_of_the_last_line_is_reported_and_a_torn_line_is_not(tmp_path, records):
    folder = fill(tmp_path, records[:2])
    data = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(data[:-1] + b"\x0b")
    with pytest.raises(DataError, match="line 2: the end of the line is damaged"):
        Store.read(folder)
    (folder / FILE).write_bytes(data[:-20])
    assert len(Store.read(folder)) == 1


def test_a_second_record_with_other_scores_is_reported(tmp_path, records):
    folder = fill(tmp_path, records[:1])
    again = replace(records[0], seconds=9.0)
    with open(folder / FILE, "a") as file:
        file.write(again.to_line() + "\n")
    assert Store.read(folder)[records[0].run.key].seconds == records[0].seconds  # the same scores: the first stays
    other = replace(again, test=again.test | {"accuracy": 0.125})
    with open(folder / FILE, "a") as file:
        file.write(other.to_line() + "\n")
    with pytest.raises(DataError, match=r"lines 1 and 3: run .* has different test scores"):
        Store.read(folder)
